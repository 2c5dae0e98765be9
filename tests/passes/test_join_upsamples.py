"""Feature maps are joined before they are enlarged, where a chip is faster so."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.join_upsamples import JoinUpsamples
from bmcompiler.passmanager import PassContext


def joined(scales: list[tuple[int, int]], channels: int = 24, *, read: bool = False) -> list[TensorOp]:
    """The ops after the pass for maps of 80 x 80 enlarged so; values stay. read: the first one by others, too."""
    b = Builder.new("net")

    def enlarged(number: int, scale: tuple[int, int]) -> Value:
        x = b.input(f"x{number}", TensorType((1, channels, 80 // scale[0], 80 // scale[1]), "f32"))
        return b.upsample(x, scale=scale) if scale != (1, 1) else x

    values = [enlarged(*each) for each in enumerate(scales)]
    outputs = [b.concat(*values, axis=1), *([b.relu(values[0])] if read else [])]
    module = b.outputs(outputs, [f"y{number}" for number in range(len(outputs))])
    return _after(module)


def _after(module: Module) -> list[TensorOp]:
    rng = np.random.default_rng(5)
    inputs = {f"x{i}": rng.standard_normal(x.shape).astype(np.float32) for i, x in enumerate(module.main.arguments)}
    before = run_module(module, inputs)
    JoinUpsamples().run(module, PassContext(target=TARGET))
    verify_module(module)
    for name, array in run_module(module, inputs).items():
        np.testing.assert_array_equal(before[name], array)
    return [op for op in module.main.ops if isinstance(op, TensorOp)]


def test_all_are_joined_in_steps() -> None:
    ops = joined([(8, 8), (4, 4), (2, 2), (1, 1)])
    assert [op.scale for op in ops if op.opname == "upsample"] == [(2, 2)] * 3
    assert [op.type.shape[1:3] for op in ops if op.opname == "concat"] == [(48, 20), (72, 40), (96, 80)]


def test_each_axis_has_its_own_scale() -> None:
    ops = joined([(4, 2), (2, 4), (1, 1)])
    assert [op.scale for op in ops if op.opname == "upsample"] == [(2, 1), (1, 2), (2, 2)]


@pytest.mark.parametrize(
    "scales", [[(2, 2), (1, 1), (2, 2)], [(2, 2), (5, 5)], [(8, 8), (1, 1)], [(1, 1), (2, 2), (4, 4)]]
)
def test_what_stands_apart_has_no_scale_in_common_or_moves_in_any_case_stays(scales: list[tuple[int, int]]) -> None:
    assert sum(op.opname == "concat" for op in joined(scales)) == 1


def test_what_others_read_stays() -> None:
    assert [op.type.shape[1:3] for op in joined([(2, 2), (2, 2)], read=True) if op.opname == "concat"] == [(48, 80)]
