"""Phases of feature maps become their pixels: a copy for each phase, in local memory or in global memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import dims4, is_activation, item_bytes
from bmcompiler.backends.lanes.kernels.moves.global_copies import CopyKernel
from bmcompiler.backends.lanes.kernels.moves.local_copies import copy_cycles
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.pieces import Fill, Piece, dense
from bmcompiler.codegen.schedule import Moved, emit_tiles
from bmcompiler.codegen.strided_copy import Dim
from bmcompiler.codegen.tiling import Axis, Box, TileWork, Tiling
from bmcompiler.ops.places.shape import Interleave


class InterleaveKernel(CopyKernel[Interleave]):
    """interleave: a strided copy per phase.

    In local memory the execution units copy phases that begin at lane 0, all lanes at once, and transfers the others.
    There it is done in tiles too, where the single pixels of a phase take longer in global memory.
    """

    ops = (Interleave,)

    def uses_local_memory(self, op: Interleave) -> bool:
        return self._tiling(op) is not None

    def emit(self, op: Interleave, build: Any) -> Moved:
        tiling, tiler = self._tiling(op), self.machine.tiler
        if tiling is None:
            return super().emit(op, build)
        return emit_tiles(build, self._grid(op), lambda box: _work(self.machine, op, box), tiling, tiler)

    def estimate(self, op: Interleave) -> int | None:
        tiling = self._tiling(op)
        return self._in_global(op) if tiling is None else self._in_tiles(op, tiling)

    def _grid(self, op: Interleave) -> tuple[Axis, ...]:
        (n, c, h, w), (down, across) = dims4(op.result), op.scale
        images = self.chip.image_slots(item_bytes(op.result))
        return Axis(n, images, self.chip.most_images), Axis(c, cuts=False), Axis(h, down), Axis(w, across)

    def _tiling(self, op: Interleave) -> Tiling | None:
        """Of tiles in local memory, None where they are no faster."""
        if item_bytes(op.result) not in (1, 2, 4) or not is_activation(op.x) or not self.chip.fits_fields(op.x.shape):
            return None
        key = op.name, op.scale, op.x.shape, op.type.shape, op.type.dtype
        found = self.machine.tiler.choose(self._grid(op), lambda box: _work(self.machine, op, box), key)
        return found if found is not None and self._in_tiles(op, found) < self._in_global(op) else None

    def _in_tiles(self, op: Interleave, tiling: Tiling) -> int:
        return self.machine.tiler.estimate(self._grid(op), lambda box: _work(self.machine, op, box), tiling)

    def _in_global(self, op: Interleave) -> int:
        """Cycles of the copies of the phases, whose pixels are rows or single ones."""
        (n, c, h, w), item, cycles = dims4(op.result), item_bytes(op.result), self.machine.cycles
        runs, run = (n * c * h, w) if op.scale[1] == 1 else (n * c * h * w, 1)
        return cycles.load(runs, run * item) + cycles.store(runs, run * item)

    def pieces(self, op: Interleave) -> Iterator[Piece | Fill]:
        n, c, h, w = dims4(op.result)
        (down, across), by, to = op.scale, dense(op.x.shape), dense(op.type.shape)
        sizes, steps = (n, c, h // down, w // across), (to[0], to[1], down * to[2], across)
        for channel, row, column in _phases(op):
            dims = [Dim(*dim) for dim in zip(sizes, by, steps)]
            yield Piece(op.result, row * to[2] + column, op.x, channel * by[1], dims)

    def whole(self, op: Interleave) -> TileWork | None:
        return self.boxed(op, tuple((0, size) for size in op.type.shape))

    def boxed(self, op: Interleave, box: Box) -> TileWork | None:
        item = item_bytes(op.result)
        if item not in (1, 2, 4) or not is_activation(op.x) or box[1] != (0, op.channels):
            return None
        if any(place % self.chip.image_slots(item) and place != op.type.shape[0] for place in box[0]):
            return None  # images that share words stay together
        work, fits = _work(self.machine, op, box), self.chip.fits_fields
        return work if fits(extents(box)) and fits(op.x.shape) and self.machine.fits(work) else None


class _Phase(NamedTuple):
    """The channels from `channel` on make the rows `row` and columns `column` of each cell of the result."""

    channel: int
    row: int
    column: int


def _phases(op: Interleave) -> Iterator[_Phase]:
    down, across = op.scale
    pitch = op.x.shape[1] // (down * across)
    for number in range(down * across):
        yield _Phase(number * pitch, *divmod(number, across))


def _work(machine: LaneMachine, op: Interleave, box: Box) -> TileWork:
    """What makes `box` of the result."""
    chip, item = machine.chip, item_bytes(op.result)
    word = chip.word_item(item)
    rows, columns = ((lo // step, -(-hi // step)) for (lo, hi), step in zip(box[2:], op.scale))
    source: Box = (box[0], (0, op.x.shape[1]), rows, columns)
    before, after = chip.words_of(extents(source), item), chip.words_of(extents(box), item)
    by, to = chip.aligned_strides(before, item=word), chip.aligned_strides(after, item=word)
    steps = (to[0], to[1], op.scale[0] * to[2], op.scale[1])

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        read, written = chip.plane(ins[0], extents(source), item), chip.plane(outs[0], extents(box), item)
        for phase in _phases(op):
            (y0, _), (x0, _) = _cells(op, box, phase)
            shape = _part(machine, op, box, phase)
            if min(shape) < 1:
                continue
            beyond, lane = divmod(phase.channel, chip.lanes)
            y, x = y0 * op.scale[0] + phase.row - box[2][0], x0 * op.scale[1] + phase.column - box[3][0]
            start = ins[0] + word * (beyond * by[1] + (y0 - rows[0]) * by[2] + x0 - columns[0])
            end = outs[0] + word * (y * to[2] + x)
            part, made = Words(start, shape, by, lane, read, word), Words(end, shape, steps, 0, written, word)
            (build.transfer if lane else build.copy)(part, made)

    inputs = (machine.activation_in(op.x, dims4(op.x), source),)
    out = machine.activation_out(op.result, dims4(op.result), box)
    cycles = {phase: _cycles(machine, _part(machine, op, box, phase), phase, word) for phase in _phases(op)}
    transfers = sum(taken for phase, taken in cycles.items() if phase.channel % chip.lanes)
    return TileWork(inputs, (out,), (), compute, sum(cycles.values()), transfers=transfers)


def _cells(op: Interleave, box: Box, phase: _Phase) -> tuple[tuple[int, int], tuple[int, int]]:
    """The rows and columns of the operand from which a phase makes what is in `box`."""
    places = zip(box[2:], op.scale, (phase.row, phase.column))
    rows, columns = ((-(-(lo - at) // step), -(-(hi - at) // step)) for (lo, hi), step, at in places)
    return rows, columns


def _part(machine: LaneMachine, op: Interleave, box: Box, phase: _Phase) -> Shape:
    """Words that a phase copies to `box`."""
    images, _, _, _ = machine.chip.words_of(extents(box), item_bytes(op.result))
    (y0, y1), (x0, x1) = _cells(op, box, phase)
    return images, op.channels, y1 - y0, x1 - x0


def _cycles(machine: LaneMachine, part: Shape, phase: _Phase, word: int) -> int:
    """Cycles of the copy of a phase."""
    if min(part) < 1:
        return 0
    if phase.channel % machine.chip.lanes:
        return copy_cycles(machine, part, word)
    return machine.cycles.pass_cycles(part, word)
