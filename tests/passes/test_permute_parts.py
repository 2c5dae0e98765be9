"""Permutes of concatenations: in parts where these lie one behind the other then, with the same elements."""

from __future__ import annotations

import numpy as np
import pytest
from nets import names

import bmcompiler
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.codegen.memory import parts_of_others
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.permute_parts import PermuteParts
from bmcompiler.passmanager import PassContext
from bmcompiler.runtime import Session

SIZES = (2704, 676, 169)


def net(
    axis: int = 2,
    order: tuple[int, ...] = (0, 2, 1),
    sizes: tuple[int, ...] = SIZES,
    images: int = 1,
    too: bool = False,
) -> Module:
    """Rows of detections of three heads; too: the concatenation is an output as well."""
    b = Builder.new("net")
    shapes = [(images, 6, size) if axis == 2 else (images, size, 6) for size in sizes]
    parts = [b.input(f"x{i}", TensorType(shape, "f32")) for i, shape in enumerate(shapes)]
    joined = b.concat(*map(b.relu, parts), axis=axis)
    result = b.permute(joined, order=order)
    return b.outputs([result, joined], ["y", "z"]) if too else b.outputs([result], ["y"])


def changed(module: Module) -> bool:
    return PermuteParts().run(module, PassContext(target=TARGET)).modified


def test_parts_are_permuted_into_their_places() -> None:
    module, rng = net(), np.random.default_rng(1)
    inputs = {f"x{i}": rng.standard_normal((1, 6, size), np.float32) for i, size in enumerate(SIZES)}
    before = run_module(module, inputs)["y"]
    assert changed(module)
    verify_module(module)
    assert names(module)[-4:] == ["permute", "permute", "permute", "concat"]
    concat = module.main.returned[0].op
    assert concat is not None and set(concat.operands) <= set(parts_of_others(module.main, module.main.ops))
    np.testing.assert_array_equal(run_module(module, inputs)["y"], before)
    result = bmcompiler.compile_module(net(), target="bm1684", quantize="f32")
    np.testing.assert_array_equal(Session(result.model).run(inputs)["y"], before)


@pytest.mark.parametrize(
    "module",
    [
        net(axis=1),  # parts are runs of bytes before, not behind
        net(images=2),  # they are so neither before nor behind
        net(order=(1, 2, 0)),
        net(too=True),
        net(sizes=(50,) * 70),  # each alone takes longer, element by element
    ],
)
def test_what_gains_nothing_stays(module: Module) -> None:
    before = names(module)
    assert not changed(module) and names(module) == before
