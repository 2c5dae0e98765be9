"""Phases of feature maps become their pixels: a copy for each phase, in local memory or in global memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bmcompiler.backends.bm1684.build import Build, extents, side_fields
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.isa import Direction
from bmcompiler.backends.bm1684.kernels.base import (
    BYTES_PER_CYCLE,
    TILE_CYCLES,
    activation_in,
    activation_out,
    dims4,
    is_activation,
    item_bytes,
    pass_cycles,
    plane,
    words_of,
)
from bmcompiler.backends.bm1684.kernels.local_copies import copy_words, fits_fields
from bmcompiler.backends.bm1684.layout import Shape, aligned_strides
from bmcompiler.backends.lanes.kernels.moves import CopyKernel
from bmcompiler.codegen.pieces import Fill, Piece, dense
from bmcompiler.codegen.strided_copy import Dim
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.shape import Interleave


class InterleaveKernel(CopyKernel):
    """interleave: a strided copy per phase.

    In local memory the TIU copies phases that begin at lane 0, all lanes at once, and transfers the others.
    """

    ops = (Interleave,)

    def pieces(self, op: TensorOp) -> Iterator[Piece | Fill]:
        n, c, h, w = dims4(op.result)
        (down, across), by, to = op.scale, dense(op.x.shape), dense(op.type.shape)
        sizes, steps = (n, c, h // down, w // across), (to[0], to[1], down * to[2], across)
        for channel, row, column in _phases(op):
            dims = [Dim(*dim) for dim in zip(sizes, by, steps)]
            yield Piece(op.result, row * to[2] + column, op.x, channel * by[1], dims)

    def whole(self, op: TensorOp) -> TileWork | None:
        return self.boxed(op, tuple((0, size) for size in op.type.shape))

    def boxed(self, op: TensorOp, box: Box) -> TileWork | None:
        item = item_bytes(op.result)
        if item not in (1, 2, 4) or not is_activation(op.x) or box[1] != (0, op.channels):
            return None
        if any(place * item % 4 and place != op.type.shape[0] for place in box[0]):
            return None  # images that share words stay together
        work = _work(op, box)
        return work if fits_fields(extents(box)) and fits_fields(op.x.shape) and self.machine.fits(work) else None


class _Phase(NamedTuple):
    """The channels from `channel` on make the rows `row` and columns `column` of each cell of the result."""

    channel: int
    row: int
    column: int


def _phases(op: TensorOp) -> Iterator[_Phase]:
    down, across = op.scale
    pitch = op.x.shape[1] // (down * across)
    for number in range(down * across):
        yield _Phase(number * pitch, *divmod(number, across))


def _work(op: TensorOp, box: Box) -> TileWork:
    """What makes `box` of the result."""
    item = item_bytes(op.result)
    rows, columns = ((lo // step, -(-hi // step)) for (lo, hi), step in zip(box[2:], op.scale))
    source: Box = (box[0], (0, op.x.shape[1]), rows, columns)
    before, after = words_of(extents(source), item), words_of(extents(box), item)
    by, to = aligned_strides(before), aligned_strides(after)
    steps = (to[0], to[1], op.scale[0] * to[2], op.scale[1])

    def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        touched = [plane(ins[0], before)], [plane(outs[0], after)]
        for phase in _phases(op):
            (y0, y1), (x0, x1) = _cells(op, box, phase)
            shape = (before[0], op.channels, y1 - y0, x1 - x0)
            if min(shape) < 1:
                continue
            beyond, lane = divmod(phase.channel, CHIP.lanes)
            y, x = y0 * op.scale[0] + phase.row - box[2][0], x0 * op.scale[1] + phase.column - box[3][0]
            start = ins[0] + 4 * (beyond * by[1] + (y0 - rows[0]) * by[2] + x0 - columns[0])
            end = outs[0] + 4 * (y * to[2] + x)
            if not lane:
                copy_words(build, shape, (start, by), (end, steps), touched)
                continue
            build.gdma(
                touched[0],
                touched[1],
                direction=Direction.LOCAL_TO_LOCAL,
                stride_enable=1,
                src_addr=local_address(start, lane),
                dst_addr=local_address(end),
                **side_fields("src", shape, by),
                **side_fields("dst", shape, steps),
            )

    inputs = (activation_in(op.x, dims4(op.x), source),)
    out = activation_out(op.result, dims4(op.result), box)
    part = (before[0], op.channels, *before[2:])
    return TileWork(inputs, (out,), (), compute, sum(_cycles(part, phase) for phase in _phases(op)))


def _cells(op: TensorOp, box: Box, phase: _Phase) -> tuple[tuple[int, int], tuple[int, int]]:
    """The rows and columns of the operand from which a phase makes what is in `box`."""
    places = zip(box[2:], op.scale, (phase.row, phase.column))
    rows, columns = ((-(-(lo - at) // step), -(-(hi - at) // step)) for (lo, hi), step, at in places)
    return rows, columns


def _cycles(part: Shape, phase: _Phase) -> int:
    n, c, h, w = part
    return TILE_CYCLES + 4 * n * c * h * w // BYTES_PER_CYCLE if phase.channel % CHIP.lanes else pass_cycles(part)
