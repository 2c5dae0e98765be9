"""A part of a result that is computed in local memory may begin anywhere: the second half fits where the first does."""

from __future__ import annotations

import pytest
from lane_nets import Net
from test_recorded_programs import of_shape

from bmcompiler.ir.keys import WEIGHT
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import find_target, unsupported_reason

HALVES = {"bm1684": 200, "bm1684x": 200, "bm1880": 50}
"""Chips, and at least how many pairs of halves are computed so."""


@pytest.mark.parametrize("chip", HALVES)
def test_both_halves_are_computed_or_none(chip: str) -> None:
    target, met = find_target(chip), 0
    for name, module in of_shape((4, 128, 32, 32)):
        for op in (op for op in module.main.ops if isinstance(op, TensorOp) and op.name != WEIGHT):
            shape = op.results[0].shape
            boxed = None if unsupported_reason(target, op) else getattr(target.kernel_for(op), "boxed", None)
            if boxed is None or len(op.results) != 1 or len(shape) != 4:
                continue
            for axis in (axis for axis, size in enumerate(shape) if size > 2 and size % 2 == 0):
                half, all_of = shape[axis] // 2, [(0, size) for size in shape]
                sides = [(*all_of[:axis], cut, *all_of[axis + 1 :]) for cut in ((0, half), (half, 2 * half))]
                first, second = map(boxed, [op, op], sides)
                assert (first is None) == (second is None), (name, axis)
                met += first is not None
    assert met >= HALVES[chip]


@pytest.mark.parametrize("chip", HALVES)
def test_parts_of_more_than_a_command_has_fit_where_each_does(chip: str) -> None:
    most, net = 4032, Net([(1, 3 * 4096, 4, 8)], 0, "i8")  # commands have up to 4095 channels
    op = net.b.relu(net.inputs[0]).op
    boxed = find_target(chip).kernel_for(op).boxed  # type: ignore[union-attr, arg-type]
    for first in (0, 4096, 8192):
        assert boxed(op, ((0, 1), (first, first + most), (0, 4), (0, 8))) is not None, first
    if chip != "bm1684x":  # whose commands have more
        assert boxed(op, ((0, 1), (4096, 8192), (0, 4), (0, 8))) is None
