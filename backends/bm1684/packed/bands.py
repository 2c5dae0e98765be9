"""Bands of rows in the image slots of words: cut from global memory, regrouped and joined in local memory.

Band k of bytes is byte k of the words (bm1684.md 4.2), so a row of the neighbour above is a row of words shifted by 8,
one of the band above that by 16.
Rows that change bands otherwise are moved by transfers, for which a band is an image one byte further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar

from bmcompiler.backends.bm1684.build import Build
from bmcompiler.backends.bm1684.chip import CHIP, aligned_strides, local_address
from bmcompiler.backends.bm1684.cycles import TileCycles
from bmcompiler.backends.bm1684.instructions import words
from bmcompiler.backends.bm1684.instructions.transfers import Side, fill, in_lane, transfer
from bmcompiler.backends.bm1684.isa import Direction, Eu
from bmcompiler.backends.bm1684.machine import cycles_of
from bmcompiler.backends.lanes.counts import run_of
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import dims4, is_activation, item_bytes
from bmcompiler.backends.lanes.kernels.functions.convert import DequantizeKernel
from bmcompiler.backends.lanes.kernels.moves.gathered_rows import GatheredRows
from bmcompiler.backends.lanes.kernels.moves.global_copies import CopyKernel
from bmcompiler.backends.lanes.kernels.moves.word_bands import copy_rows, is_of_words
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.codegen.band_rows import (
    BandOp,
    Cut,
    RowMove,
    RowRun,
    band_pieces,
    gaps,
    moves,
    runs,
    source_cut,
    target_cut,
)
from bmcompiler.codegen.build import dense_strides as global_strides
from bmcompiler.codegen.pieces import Fill, Piece
from bmcompiler.codegen.tiling import Box, Buffer, TileWork
from bmcompiler.ir import Operation
from bmcompiler.ops.elements.linear_quant import Dequantize
from bmcompiler.ops.places.bands import FromBands, RegroupBands, ToBands
from bmcompiler.target import rule

_SLOTS = 4
_WORD = 0xFFFF_FFFF


BandT = TypeVar("BandT", bound=BandOp)


class BandsKernel(CopyKernel[BandT]):
    """Base: in local memory where operand and result fit it, else copies inside global memory."""

    @rule("The operand must be an activation")
    def computed(self, op: BandT) -> bool:
        return is_activation(op.operands[0])

    def pieces(self, op: BandT) -> Iterable[Piece | Fill]:
        return band_pieces(op)

    def filling(self, op: BandT) -> float:
        return 0 if isinstance(op, FromBands) else float(op.fill)

    def uses_local_memory(self, op: BandT) -> bool:
        return self.whole(op) is not None

    def estimate(self, op: BandT) -> int | None:
        cycles, pieces = self.machine.cycles, sum(1 for _ in self.pieces(op))
        return cycles.load(1, op.type.nbytes) + cycles.store(1, op.type.nbytes) + pieces * cycles.tile_cycles

    def whole(self, op: BandT) -> TileWork | None:
        if is_of_words(op) and all(CHIP.fits_fields(v.shape) for v in (op.operands[0], op.result)):
            words = copy_rows(self.machine, op)
            return words if self.machine.fits(words) else None
        values = (op.operands[0], op.result)
        if any(item_bytes(v) != 1 or v.shape[0] > _SLOTS or not CHIP.fits_fields(v.shape) for v in values):
            return None
        work = self.local_work(op)
        return work if self.machine.fits(work) else None

    def local_work(self, op: BandT) -> TileWork:
        """The op in local memory."""
        raise TypeError(f"{type(self).__name__} has no work")


class ToBandsKernel(BandsKernel[ToBands]):
    """to_bands: rows are loaded into the image slot of their band."""

    ops = (ToBands,)

    def local_work(self, op: ToBands) -> TileWork:
        cut, by, dims = target_cut(op), global_strides(dims4(op.x)), dims4(op.result)
        found = moves(source_cut(op), cut, (by[0], by[2]), _row_steps(dims))
        nbytes = sum(move.images * dims[1] * move.count * dims[3] for move in found)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            _fill_gaps(build, cut, dims, op.fill, outs[0])
            for move in found:
                source = Direction.SYSTEM_TO_LOCAL, build.source(op.x) + move.start, by
                _move(build, move, dims, source, ([], [CHIP.plane(outs[0], dims, 1)]), outs[0])

        rows, cycles = Buffer(0, "nchw", nbytes, _by_the_work), cycles_of(self.machine)
        moving = sum(_bus_cycles(cycles.load, move, dims, (move.stride, *by[1:])) for move in found)
        moving += _gap_cycles(cycles, cut, dims)
        return TileWork((rows,), (_result(self.machine, op),), (), compute, moving, transfers=moving)


def _by_the_work(build: Build, address: int) -> None:
    """The rows have no buffer of their own: the work loads them into the result, or stores them from the operand."""


class RegroupBandsKernel(BandsKernel[RegroupBands]):
    """regroup_bands: words shifted by bytes for the rows of neighbours, for other bands `GatheredRows` or transfers."""

    ops = (RegroupBands,)

    def local_work(self, op: RegroupBands) -> TileWork:
        source, cut, dims = source_cut(op), target_cut(op), dims4(op.result)
        shifts = source.rows == cut.rows and max(cut.top, cut.bottom) <= cut.rows * (cut.bands - 1)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            if shifts:
                _shift_rows(build, op, cut, ins[0], outs[0])
                return
            _fill_gaps(build, cut, dims, op.fill, outs[0])
            _move_all(build, op, source, cut, ins[0], outs[0])

        gathered = GatheredRows(self.machine, dims4(op.x), dims, source, cut, op.fill)
        known = cycles_of(self.machine)
        if shifts:
            return _in_lanes(self.machine, op, compute, _shift_cycles(known, op, cut))
        moving = _gap_cycles(known, cut, dims) + _move_cycles(known, op, source, cut)
        if gathered.cycles < moving:
            return _by_words(self.machine, op, gathered)
        return _in_lanes(self.machine, op, compute, moving, moving)


def _by_words(machine: LaneMachine, op: RegroupBands, gathered: GatheredRows) -> TileWork:
    """Bands of other rows by the execution units."""

    def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        gathered.emit(build, ins[0], outs[0], scratch[0])

    return _in_lanes(machine, op, compute, gathered.cycles, scratch=gathered.scratch)


class FromBandsKernel(BandsKernel[FromBands]):
    """from_bands: rows from the image slots to the first one, or to global memory where it is read from there.

    A word shifted right by the bytes before a band has what the image has there; nobody reads the bytes above.
    """

    ops = (FromBands,)

    def local_work(self, op: FromBands) -> TileWork:
        source, cut = source_cut(op), target_cut(op)
        if all(_passes_global(self.machine, user) for user in op.result.users):
            return _stored(self.machine, op)

        found, (_, channels, _, width) = [*runs(source, cut)], dims4(op.result)
        moving = _move_cycles(cycles_of(self.machine), op, source, cut)
        shifting = sum(self.machine.cycles.pass_cycles((1, channels, run.count, width)) for run in found)
        shifts = 2 * shifting < moving  # transfers may have time while others compute

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            if shifts:
                _shift_out(build, op, found, ins[0], outs[0])
            else:
                _move_all(build, op, source, cut, ins[0], outs[0])

        return _in_lanes(self.machine, op, compute, *((shifting, 0) if shifts else (moving, moving)))


def _shift_out(build: Build, op: FromBands, found: Iterable[RowRun], source: int, target: int) -> None:
    """A command for the rows of each band."""
    before, after = dims4(op.x), dims4(op.result)
    by, to = aligned_strides((1, *before[1:])), aligned_strides(after)
    for run in found:
        shape = (1, after[1], run.count, after[3])
        place = Words(target + 4 * run.to_row * to[2], shape, to, within=CHIP.plane(target, after, 1))
        data = Words(source + 4 * run.row * by[2], shape, by, within=CHIP.plane(source, before, 1))
        if run.band:
            words.bits(build, Eu.SHIFT, place, data, Immediate(-8 * run.band & _WORD))
        else:
            words.copy_as_bits(build, place, data)


def _passes_global(machine: LaneMachine, user: Operation) -> bool:
    """Whether an op makes floats of what global memory has, where any view of the elements is good."""
    if not isinstance(user, Dequantize):
        return not user.results
    work = DequantizeKernel(machine).whole(user)
    return work is None or work.inputs[0].contents is None


def _stored(machine: LaneMachine, op: FromBands) -> TileWork:
    """The bands on their way to global memory, where their rows are stored behind each other."""
    before, after = dims4(op.x), dims4(op.result)
    by, to = _byte_strides(before), global_strides(after)
    found = moves(source_cut(op), target_cut(op), _row_steps(before), (to[0], to[2]))

    def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        for move in found:
            shape = (move.images, after[1], move.count, after[3])
            inner = in_lane(ins[0], shape, (move.stride, *by[1:]), CHIP.plane(ins[0], before, 1), byte=move.start)
            outer = Side(build.neuron(op.result) + move.at, shape, (move.step, *to[1:]))
            transfer(build, Direction.LOCAL_TO_SYSTEM, inner, outer, 1)

    moving = sum(_bus_cycles(cycles_of(machine).store, move, after, (move.step, *to[1:])) for move in found)
    out = Buffer(0, "nchw", op.type.nbytes, _by_the_work)
    return TileWork((_operand(machine, op),), (out,), (), compute, moving, transfers=moving)


def _in_lanes(
    machine: LaneMachine, op: BandOp, compute: Callable[..., None], cycles: int, transfers: int = 0, scratch: int = 0
) -> TileWork:
    """All of operand and result in local memory."""
    places = (_operand(machine, op),), (_result(machine, op),)
    return TileWork(*places, (scratch,) * (scratch > 0), compute, cycles, transfers=transfers)


def _operand(machine: LaneMachine, op: BandOp) -> Buffer:
    return machine.activation_in(op.operands[0], dims4(op.operands[0]), _all(dims4(op.operands[0])))


def _result(machine: LaneMachine, op: BandOp) -> Buffer:
    return machine.activation_out(op.result, dims4(op.result), _all(dims4(op.result)))


def _all(dims: Shape) -> Box:
    return tuple((0, size) for size in dims)


# -- transfers ---------------------------------------------------------------------------------------------------------
def _byte_strides(dims: Shape) -> Strides:
    """Bytes between channels, rows and columns of a packed feature map in a lane; bands are one byte apart."""
    _, channel, row, column = aligned_strides((1, *dims[1:]))
    return 1, 4 * channel, 4 * row, 4 * column


def _row_steps(dims: Shape) -> tuple[int, int]:
    """Bytes between bands and between rows."""
    band, _, row, _ = _byte_strides(dims)
    return band, row


_Touched = tuple[list[tuple[int, int]], list[tuple[int, int]]]


def _move(
    build: Build, move: RowMove, dims: Shape, source: tuple[Direction, int, Strides], touched: _Touched, target: int
) -> None:
    """Emit a move into the packed result of `dims` at `target`; `source`: from where, address and strides."""
    direction, address, by = source
    shape = (move.images, dims[1], move.count, dims[3])
    outer = Side(address, shape, (move.stride, *by[1:]), tuple(touched[0]))
    inner = in_lane(target, shape, (move.step, *_byte_strides(dims)[1:]), *touched[1], byte=move.at)
    transfer(build, direction, outer, inner, 1)


def _move_all(build: Build, op: BandOp, source: Cut, cut: Cut, address: int, target: int) -> None:
    """Rows from local memory to local memory."""
    before, after = dims4(op.operands[0]), dims4(op.result)
    touched = [CHIP.plane(address, before, 1)], [CHIP.plane(target, after, 1)]
    for move in moves(source, cut, _row_steps(before), _row_steps(after)):
        start = local_address(address) + move.start
        _move(build, move, after, (Direction.LOCAL_TO_LOCAL, start, _byte_strides(before)), touched, target)


def _move_cycles(cycles: TileCycles, op: BandOp, source: Cut, cut: Cut) -> int:
    before, after = dims4(op.operands[0]), dims4(op.result)
    found = moves(source, cut, _row_steps(before), _row_steps(after))
    return sum(cycles.local_copy((move.images, after[1], move.count, after[3]), 1) for move in found)


def _bus_cycles(transfer: Callable[[int, int, int], int], move: RowMove, dims: Shape, outside: Strides) -> int:
    """Cycles of the load or store of a move; outside: strides in global memory, the first from band to band."""
    shape = (move.images, dims[1], move.count, dims[3])
    run = int(run_of(shape, outside))
    return transfer(prod(shape) // run, run, move.images * dims[1])


def _gap_cycles(cycles: TileCycles, cut: Cut, dims: Shape) -> int:
    return sum(cycles.local_copy((1, dims[1], count, dims[3])) for _, count in _missing(cut))


def _pattern(fill: int, slots: int) -> int:
    """The bytes of `slots` with the filling in them."""
    return sum((fill & 0xFF) << 8 * k for k in range(_SLOTS) if slots >> 8 * k & 1)


def _fill_gaps(build: Build, cut: Cut, dims: Shape, fill_byte: int, address: int) -> None:
    """Fill, in all slots, the rows that some band has outside of the image."""
    _, channels, height, width = dims
    steps = aligned_strides((1, channels, height, width))
    for first, count in _missing(cut):
        place = in_lane(
            address + 4 * first * steps[2], (1, channels, count, width), steps, CHIP.plane(address, dims, 1)
        )
        fill(build, Direction.LOCAL_TO_LOCAL, place, 4, _pattern(fill_byte, _WORD))


def _missing(cut: Cut) -> list[tuple[int, int]]:
    """(first, how many) of the rows that some band has outside of the image."""
    return list(_consecutive(sorted({row + i for _, row, count in gaps(cut) for i in range(count)})))


def _consecutive(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """(first, how many) of runs of increasing numbers."""
    first = 0
    for i in range(1, len(numbers) + 1):
        if i == len(numbers) or numbers[i] != numbers[i - 1] + 1:
            yield numbers[first], i - first
            first = i


# -- words -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Rows:
    """Rows [to, to + count) of the result, from rows of the operand whose words are shifted left by `shift` bits.

    `made` are the bits that the shift leaves, `inside` those of bands for which the rows are in the image.
    """

    to: int
    count: int
    row: int
    shift: int
    made: int
    inside: int


def _row_groups(cut: Cut) -> list[_Rows]:
    """The rows of the result, those with equal bits together."""
    away = range(-cut.top // cut.rows, -(-cut.bottom // cut.rows) + 1)
    spans = ((d, max(-cut.top, d * cut.rows), min(cut.rows + cut.bottom, (d + 1) * cut.rows)) for d in away)
    parts = [(first + cut.top, end - first, first - d * cut.rows, -8 * d) for d, first, end in spans]
    bands = (1 << 8 * cut.bands) - 1
    found: list[_Rows] = []
    for to, count, row, shift in parts:
        made = bands & (bands << shift if shift >= 0 else bands >> -shift)
        part: list[_Rows] = []
        for i in range(count):
            inside = sum(0xFF << 8 * band for band in range(cut.bands) if cut.inside(band, to + i))
            if part and part[-1].inside == inside:
                part[-1] = replace(part[-1], count=part[-1].count + 1)
            else:
                part.append(_Rows(to + i, 1, row + i, shift, made, inside))
        found += part
    return found


def _steps(rows: _Rows, filling: int) -> Iterator[tuple[Eu, int]]:
    """What makes a group of rows: the first step reads the operand, the others what is there."""
    outside = rows.made & ~rows.inside
    if rows.shift:
        yield Eu.SHIFT, rows.shift
    if outside:
        yield Eu.AND, rows.inside
    elif not rows.shift:
        yield Eu.COPY, 0
    if filling:
        yield Eu.OR, filling


def _shift_cycles(cycles: TileCycles, op: ToBands | RegroupBands, cut: Cut) -> int:
    bands, (_, channels, _, width) = (1 << 8 * cut.bands) - 1, dims4(op.result)
    counts = ((rows.count, len([*_steps(rows, _pattern(op.fill, bands & ~rows.inside))])) for rows in _row_groups(cut))
    return sum(commands * cycles.pass_cycles((1, channels, count, width)) for count, commands in counts)


def _shift_rows(build: Build, op: ToBands | RegroupBands, cut: Cut, source: int, target: int) -> None:
    """A command per group of rows; further ones clear or fill what is not in the image."""
    before, after = dims4(op.operands[0]), dims4(op.result)
    by, to = aligned_strides((1, *before[1:])), aligned_strides((1, *after[1:]))
    bands = (1 << 8 * cut.bands) - 1
    for rows in _row_groups(cut):
        shape = (1, after[1], rows.count, after[3])
        place = Words(target + 4 * rows.to * to[2], shape, to, within=CHIP.plane(target, after, 1))
        data = Words(source + 4 * rows.row * by[2], shape, by, within=CHIP.plane(source, before, 1))
        for unit, number in _steps(rows, _pattern(op.fill, bands & ~rows.inside)):
            if unit == Eu.COPY:
                words.copy_as_bits(build, place, data)
            else:
                words.bits(build, unit, place, data, Immediate(number & _WORD))
            data = place
