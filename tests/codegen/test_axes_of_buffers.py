"""Buffers of tiles depend on the axes that they say: on more, results would be wrong, on fewer, tiles load in vain."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

import pytest
from mode_layers import layers_in_modes
from test_recorded_programs import of_shape, samples

from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.codegen.kernels import LocalKernel
from bmcompiler.codegen.tiling import AXES, Axis, Box
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import find_target, unsupported_reason

SHAPE = (3, 140, 24, 40)
"""Several tiles in each axis."""
EACH = 5
"""One of so many layers in modes."""


def local_ops(chip: str) -> Iterator[tuple[TensorOp, LocalKernel[TensorOp]]]:
    """Ops that a chip computes in tiles."""
    target = find_target(chip)
    for _, module in chain(samples(), of_shape(SHAPE), islice(layers_in_modes(), 0, None, EACH)):
        for op in module.main.ops:
            if isinstance(op, TensorOp) and op.name != WEIGHT and unsupported_reason(target, op) is None:
                kernel = target.kernel_for(op)
                kernel = kernel.form(op) if isinstance(kernel, FormsKernel) else kernel
                if isinstance(kernel, LocalKernel):
                    yield op, kernel


def first_tile(grid: tuple[Axis, ...]) -> Box:
    return tuple((0, min(axis.step, axis.size) if axis.cuts else axis.size) for axis in grid)


def last_tiles(grid: tuple[Axis, ...]) -> Iterator[tuple[str, Box]]:
    """The last tile in each axis that has more than one."""
    first = first_tile(grid)
    for index, (name, axis) in enumerate(zip(AXES, grid)):
        size = first[index][1]
        if size < axis.size:
            at = (axis.size - 1) // size * size
            yield name, (*first[:index], (at, min(at + size, axis.size)), *first[index + 1 :])


@pytest.mark.parametrize(("chip", "least"), [("bm1880", 90), ("bm1684", 350), ("bm1684x", 400)])
def test_a_buffer_has_other_contents_where_an_axis_of_its_own_moves(chip: str, least: int) -> None:
    asked = 0
    for op, kernel in local_ops(chip):
        grid = kernel.grid(op)
        here = kernel.work(op, first_tile(grid)).inputs
        for axis, box in last_tiles(grid):
            for one, other in zip(here, kernel.work(op, box).inputs):
                if one.contents is None or other.contents is None:
                    continue
                moves = one.contents != other.contents
                assert moves == (axis in one.axes), f"{op.short_name}: {axis} of {one.axes}"
                asked += 1
    assert asked >= least
