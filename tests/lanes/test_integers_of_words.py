"""Sums, products, quotients and rests of 32-bit integers on chips that may know floats alone."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.plugins.registry import lookup
from bmcompiler.target import find_target

ENDS = [
    *(0, 1, -1, 2, -2, 3, 7, -7, 65535, 65536, -65536, 1000003),
    *(2**31 - 1, -(2**31), 2**31 - 2, 1 - 2**31, 2**24, 2**24 + 1, -1 - 2**24, 2**30, -(2**30)),
]
OPS = {
    "sum": ("add", {"wrap": True}),
    "difference": ("sub", {"wrap": True}),
    "product": ("mul", {"wrap": True}),
    "quotient": ("div", {}),
    "rest": ("mod", {}),
    "rest like the dividend": ("mod", {"fmod": True}),
}


def pairs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    whole, short = rng.integers(-(2**31), 2**31, (3, 200)), rng.integers(-300, 300, 200)
    a = np.concatenate([np.repeat(ENDS, len(ENDS)), whole[0], whole[1]])
    return a.astype(np.int32), np.concatenate([np.tile(ENDS, len(ENDS)), whole[2], short]).astype(np.int32)


def meant(name: str, a: int, b: int) -> int:
    """In numbers without end."""
    if name in ("sum", "difference", "product"):
        exact = {"sum": a + b, "difference": a - b, "product": a * b}[name]
    elif not b:
        return 0
    else:
        cut = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        exact = {"quotient": cut, "rest": a % b}.get(name, a - cut * b)
    return (exact + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize("name", OPS)
def test_integers_are_exact(name: str, chip: str) -> None:
    kind, attributes = OPS[name]
    a, b = pairs()
    builder, type = Builder.new("net"), TensorType(a.shape, "i32")
    made = builder.create(kind, [builder.input("a", type), builder.input("b", type)], attributes).result
    result = bmcompiler.compile_module(builder.outputs([made], ["y"]), target=chip, quantize="f32", check="never")
    assert {layer.where for layer in result.rows} <= {chip, "view"}
    (found,) = lookup("bmcompiler.devices", chip, "device")().load(result.model)[0].run([a, b])
    wanted = [meant(name, int(x), int(y)) for x, y in zip(a, b)]
    np.testing.assert_array_equal(found.reshape(-1), wanted)
    (evaluated,) = run_module(result.module, {"a": a, "b": b}, target=find_target(chip)).values()
    np.testing.assert_array_equal(evaluated.reshape(-1), wanted)
