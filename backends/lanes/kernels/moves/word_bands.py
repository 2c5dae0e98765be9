"""Bands of rows of maps whose elements are whole words: each band is an image, its rows are copied inside the lanes."""

from __future__ import annotations

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.band_rows import BandOp, RowMove, gaps, moves, source_cut, target_cut
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.ops.places.bands import FromBands


def copy_rows(machine: LaneMachine, op: BandOp) -> TileWork:
    """to_bands, regroup_bands or from_bands of words in local memory, by the execution units; fills are zeros."""
    chip, cut = machine.chip, target_cut(op)
    before, after = dims4(op.operands[0]), dims4(op.result)
    by, to = chip.aligned_strides(before), chip.aligned_strides(after)
    found = moves(source_cut(op), cut, (by[0], by[2]), (to[0], to[2]))
    missing = gaps(cut)

    def shape(move: RowMove) -> Shape:
        return move.images, after[1], move.count, after[3]

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        read, written = chip.plane(ins[0], before), chip.plane(outs[0], after)
        for move in found:
            source = Words(ins[0] + chip.word * move.start, shape(move), (move.stride, *by[1:]), within=read)
            target = Words(outs[0] + chip.word * move.at, shape(move), (move.step, *to[1:]), within=written)
            build.copy(source, target)
        for band, row, count in missing:
            place = outs[0] + chip.word * (band * to[0] + row * to[2])
            build.fill(Words(place, (1, after[1], count, after[3]), to, within=written), 0)

    whole = (tuple((0, size) for size in dims) for dims in (before, after))
    cycles = sum(machine.cycles.pass_cycles(shape(move)) for move in found)
    cycles += sum(machine.cycles.pass_cycles((1, after[1], count, after[3])) for _, _, count in missing)
    source = machine.activation_in(op.operands[0], before, next(whole))
    return TileWork((source,), (machine.activation_out(op.result, after, next(whole)),), (), compute, cycles)


def is_of_words(op: BandOp) -> bool:
    """Whether `copy_rows` makes the result: floats, outside of the image zeros."""
    return op.type.dtype == "f32" and (isinstance(op, FromBands) or not op.fill)
