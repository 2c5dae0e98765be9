"""Quantization for the BM1880 of ops on bytes that mean themselves: comparisons, choices, logic, casts and moves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from nets import Net
from test_quantize import feed, quantize, real_outputs

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Value
from bmcompiler.runtime import Session
from bmcompiler.target import find_target

SHAPE = (2, 3, 4, 5)
METHODS = ("equal", "less", "less_equal", "greater", "greater_equal")
ORDERS = METHODS[1:]
Nets = Callable[[Net], list[Value]]


def inputs(n: Net, dtype: str) -> tuple[Value, Value]:
    """Two, of which the second one is to be broadcast; a model file has no bool."""
    given = "u8" if dtype == "bool" else dtype
    values = n.input(*SHAPE, dtype=given, name="a"), n.input(2, 1, 4, 1, dtype=given, name="b")
    a, b = values if given == dtype else (n.cast(value, dtype=dtype) for value in values)
    return a, b


def net(n: Net, values: list[Value]) -> Module:
    """Finished."""
    return n.done(*(n.cast(value, dtype="u8") if value.dtype == "bool" else value for value in values))


def compared(dtype: str) -> Nets:
    def build(n: Net) -> list[Value]:
        a, b = inputs(n, dtype)
        constant = n.constant(np.arange(5).reshape(1, 1, 1, 5) % 2, {"i8": "int8", "u8": "uint8"}.get(dtype, "bool"))
        return [n.compare(a, other, method=method) for method in METHODS for other in (b, constant)]

    return build


def logic(dtype: str) -> Nets:
    def build(n: Net) -> list[Value]:
        a, b = inputs(n, dtype)
        return [n.bit_not(a), n.bit_and(a, b), n.bit_or(b, a), n.bit_xor(a, b)]

    return build


def casts(dtype: str) -> Nets:
    def build(n: Net) -> list[Value]:
        a, _ = inputs(n, dtype)
        return [n.cast(a, dtype=other) for other in ("i8", "u8", "bool", "f32") if other != dtype]

    return build


def moves(dtype: str) -> Nets:
    def build(n: Net) -> list[Value]:
        a, b = inputs(n, dtype)
        joined = n.concat(a, n.tile(b, reps=(1, 3, 1, 5)), axis=1)
        return [
            n.permute(joined, order=(0, 2, 1, 3)),
            n.slice(a, starts=(0, 1, 0, 0), ends=(2, 3, 4, 5), steps=(1,) * 4),
        ]

    return build


def bounds(n: Net) -> list[Value]:
    """Floats on both sides of a constant."""
    a, _ = inputs(n, "f32")
    compared = [n.compare(a, n.fill(0.3, 1), method=method) for method in ORDERS]
    return [
        n.cast(value, dtype="f32") for value in (*compared, n.compare(n.fill(0.3, 1, 1, 1, 1, 1), a, method="less"))
    ]


def steps(n: Net) -> list[Value]:
    """Floats as bytes with a scale of their own, and back."""
    a, _ = inputs(n, "f32")
    scale, zero = n.fill(1 / 32, 1), n.constant([3], "int8")
    return [n.dequantize_linear(n.quantize_linear(a, scale, zero, dtype="i8"), scale, zero)]


def choices(n: Net) -> list[Value]:
    """Of constants, of a tensor and a constant, of two tensors, by what another one of them decides."""
    a, b = inputs(n, "f32")
    small = n.compare(a, n.fill(0.3, 1), method="less")
    pairs = [(n.fill(1.0, 1), n.fill(-0.5, 1)), (a, n.fill(0.25, 1)), (n.fill(1.5, 1), b), (b, a), (a, b)]
    return [n.where(small, *pair) for pair in pairs]


NETS: dict[str, Nets] = {
    **{f"compared {dtype}": compared(dtype) for dtype in ("i8", "u8", "bool")},
    **{f"logic {dtype}": logic(dtype) for dtype in ("i8", "u8", "bool")},
    **{f"casts {dtype}": casts(dtype) for dtype in ("i8", "u8", "bool", "f32")},
    **{f"moves {dtype}": moves(dtype) for dtype in ("i8", "bool")},
    "bounds": bounds,
    "steps": steps,
    "choices": choices,
}


def drawn(module: Module, count: int) -> dict[str, np.ndarray]:
    """Numbers over the range of each type; floats lie on steps that eight bits have."""
    random = np.random.default_rng(5)
    found = {}
    for name, value in zip(module.main.input_names, module.main.arguments):
        shape, kind = (count, *value.shape[1:]), value.type.numpy
        if value.type.is_float:
            found[name] = (random.integers(-64, 64, shape) / 32).astype(np.float32)
            found[name].flat[0] = 2.0
        else:
            limits = np.iinfo(kind)
            found[name] = random.integers(limits.min, limits.max, shape, kind, endpoint=True)
            found[name][..., ::2] %= 2
    return found


@pytest.mark.parametrize("name", NETS)
def test_bytes_mean_on_the_chip_what_they_mean(name: str) -> None:
    """No op is the host's, bytes are equal, floats within a step, and the chip computes what the interpreter does."""
    module, plain = (net(n, NETS[name](n)) for n in (Net(), Net()))
    data, target = drawn(module, 4), find_target("bm1880")
    quantize(module, target=target, data=data)
    left = {op.label: op.attributes["place.cpu"] for op in module.main.ops if "place.cpu" in op.attributes}
    assert not left
    one = {n: data[n][: v.shape[0]] for n, v in zip(module.main.input_names, module.main.arguments)}
    fed = feed(module, one)
    exact, found = run_module(module, fed), Session(target.compile([module], 2).model).run(fed, raw=True)
    got = real_outputs(module, one)
    for output, want in run_module(plain, one).items():
        assert found[output].tobytes() == exact[output].tobytes()
        step = np.abs(want).max() / 64 if want.dtype.kind == "f" else 0
        assert np.abs(got[output].astype(float) - want.astype(float)).max() <= step, output


@pytest.mark.parametrize(
    ("method", "second"), [("equal", "number"), *((m, s) for m in METHODS for s in ("computed", "constant"))]
)
def test_floats_that_are_nearly_alike_are_compared_by_the_host(method: str, second: str) -> None:
    n = Net()
    a, b = inputs(n, "f32")
    other = {"computed": b, "constant": n.w(2, 1, 4, 1), "number": n.fill(0.5, 1)}[second]
    module = net(n, [n.compare(a, other, method=method)])
    quantize(module, target=find_target("bm1880"), data=drawn(module, 4))
    reasons = [op.attributes["place.cpu"] for op in module.main.ops if "place.cpu" in op.attributes]
    assert any("eight bits do not tell values apart that are nearly alike" in reason for reason in reasons)
