"""Chosen elements of rows, moved up to each other: rows in lanes.

An element moves up by the number of those before it that are not chosen: first by one where that is odd, then by two
where its next bit is 1 and so on. None meets another, as these numbers never fall from one to the next; and places that
elements left, and those of others, hold zeros, so that what comes is or-ed to what is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.backends.lanes.recipes.recorder import ONE, float_bits
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Runs, TileWork
from bmcompiler.ir import Value
from bmcompiler.ops.places.selection import Packed
from bmcompiler.target import rule

_ALL = 0xFFFF_FFFF
_COUNTED = 23
"""Bits of whole numbers that a float from 2**23 on has as its last ones."""
_PLANES = 4


class _Piece(NamedTuple):
    """Rows that are loaded at once, one for each lane: first lane, lanes, first element, elements between rows."""

    lane: int
    lanes: int
    start: int
    step: int


class PackedKernel(LocalKernel[Packed]):
    """packed: so many rows of each mark in lanes as x has."""

    ops = (Packed,)
    grid_of_result = False

    @rule("Operands must be f32, and what is chosen computed")
    def known_types(self, op: Packed) -> bool:
        return all(value.dtype == "f32" for value in op.operands) and is_activation(op.chosen)

    @rule("At most {kernel.chip.lanes} rows may have the same marks")
    def rows_fit(self, op: Packed) -> bool:
        return op.x.shape[1] <= self.chip.lanes

    @rule("Rows must fit the local memory of a lane six times: up to about {kernel.most_elements} elements")
    def row_fits(self, op: Packed) -> bool:
        whole, kept = (self.chip.aligned_bytes((1, 1, 1, size)) for size in (op.chosen.shape[1], op.size))
        return sum(map(self.tiler.rounded, (*[whole] * (_PLANES + 2), kept))) <= self.tiler.lane_bytes

    @property
    def most_elements(self) -> int:
        """Of a row, in whole thousands."""
        return self.tiler.lane_bytes // (4 * (_PLANES + 2)) // 1000 * 1000

    def grid(self, op: Packed) -> tuple[Axis, ...]:
        together = self.chip.lanes // op.x.shape[1]
        return Axis(1), Axis(op.chosen.shape[0], together, together), Axis(1), Axis(1)

    def work(self, op: Packed, box: Box) -> TileWork:
        rows, count = op.x.shape[1], op.chosen.shape[1]
        shape: Shape = (1, extents(box)[1] * rows, 1, count)
        line: Shape = (*shape[:3], op.size)

        def store(build: LaneBuild, address: int) -> None:
            target = build.neuron(op.result) + 4 * box[1][0] * rows * op.size
            build.store(target, line, (0, op.size, 0, 1), 4, address)

        def compute(build: LaneBuild, ins: list[int], outs: list[int], places: list[int]) -> None:
            _Moves(build, shape, places).all(op, ins[0], ins[1], Words(outs[0], line))

        inputs = (
            self._rows(op.x, list(_pieces_of_x(op, box)), shape),
            self._rows(op.chosen, list(_pieces_of_marks(op, box)), shape),
        )
        plane, kept = self.chip.aligned_bytes((1, 1, 1, count)), self.chip.aligned_bytes((1, 1, 1, op.size))
        result = Buffer(kept, "c", 4 * line[1] * op.size, store, runs=Runs(1, line[1]))
        return TileWork(inputs, (result,), (plane,) * _PLANES, compute, self._cycles(op, shape))

    def _rows(self, value: Value, pieces: list[_Piece], shape: Shape) -> Buffer:
        _, lanes, _, count = shape

        def load(build: LaneBuild, address: int) -> None:
            for lane, many, start, step in pieces:
                source = build.source(value) + 4 * start
                build.load(
                    source, (1, many, 1, count), (0, step, 0, 1), 4, address, channels=(lane, lanes - lane - many)
                )

        plane, runs = self.chip.aligned_bytes((1, 1, 1, count)), Runs(len(pieces), lanes)
        weight = not is_activation(value)
        return Buffer(plane, "c", 4 * lanes * count, load, weight, runs=runs, loads=len(pieces), source=value)

    def _cycles(self, op: Packed, shape: Shape) -> int:
        passes, (_, lanes, _, count) = self.machine.cycles.pass_cycles, shape

        def part(size: int) -> Shape:
            return (1, lanes, 1, size)

        once, inside, both = passes(shape), passes(shape, in_place=True), passes(shape, pair=True)
        over = passes(shape, 4, 1, True, True)
        total = 3 * once + inside + over + (over + once if op.value else both)
        for step in _powers(count):
            total += passes(part(count - step), pair=True) + passes(part(step))
            total += once + inside + (both + over + passes(part(count - step), 4, 1, True, True)) * _moved(step, count)
        return total + passes(part(op.size))


def _powers(count: int) -> Iterator[int]:
    """Powers of two below `count`."""
    return (1 << bit for bit in range((count - 1).bit_length()))


def _moved(step: int, count: int) -> int:
    """Planes that move: how far elements move is of no use behind the last step."""
    return 1 if 2 * step >= count else 2


def _pieces_of_x(op: Packed, box: Box) -> Iterator[_Piece]:
    (first, end), (groups, rows, count), many = box[1], op.x.shape, op.chosen.shape[0]
    if groups == many:
        yield _Piece(0, (end - first) * rows, first * rows * count, count)
        return
    for each in range(first, end):
        yield _Piece((each - first) * rows, rows, each * groups // many * rows * count, count)


def _pieces_of_marks(op: Packed, box: Box) -> Iterator[_Piece]:
    (first, end), rows, count = box[1], op.x.shape[1], op.chosen.shape[1]
    if rows == 1:
        yield _Piece(0, end - first, first * count, count)
        return
    for each in range(first, end):
        yield _Piece((each - first) * rows, rows, each * count, 0)


class _Moves:
    """The commands of a tile; places: of elements, how far they move, and two planes more."""

    def __init__(self, build: Any, shape: Shape, places: list[int]) -> None:
        self.build, self.shape = build, shape
        self.kept, self.gaps, self.mask, self.other = places
        self.strides = build.chip.aligned_strides(shape)

    def all(self, op: Packed, x: int, chosen: int, result: Words) -> None:
        """Elements and how far they move, then both step by step."""
        build, marks, mask, gaps, kept = self.build, *map(self.whole, (chosen, self.mask, self.gaps, self.kept))
        self.count_gaps(marks)
        gaps = self.whole(self.gaps)
        build.select(Unit.SAME_BITS, mask, marks, Immediate(ONE), _ALL)
        build.combine(Unit.ADD, gaps, gaps, Immediate(float_bits(1 << _COUNTED)))
        build.combine(Unit.AND, gaps, gaps, mask)
        value, source = Immediate(float_bits(op.value)), self.whole(x)
        if op.value:
            build.combine(Unit.XOR, kept, source, value)
            source = kept
        build.combine(Unit.AND, kept, source, mask)
        for step in _powers(self.shape[3]):
            build.combine(Unit.AND, mask, gaps, Immediate(step))
            build.select(Unit.SAME_BITS, mask, mask, Immediate(step), _ALL)
            for plane in (self.kept, self.gaps)[: _moved(step, self.shape[3])]:
                self.move(plane, step)
        first = self.part(self.kept, 0, op.size)
        if op.value:
            build.combine(Unit.XOR, result, first, value)
        else:
            build.copy(first, result)

    def count_gaps(self, marks: Words) -> None:
        """How many are not chosen up to each element."""
        build, count = self.build, self.shape[3]
        build.select(Unit.SAME_BITS, self.whole(self.other), marks, Immediate(ONE), ONE)
        build.combine(Unit.XOR, self.whole(self.gaps), self.whole(self.other), Immediate(ONE))
        for step in _powers(count):
            source, target = self.gaps, self.other
            behind = self.part(source, step, count)
            build.combine(Unit.ADD, self.part(target, step, count), behind, self.part(source, 0, count - step))
            build.copy(self.part(source, 0, step), self.part(target, 0, step))
            self.gaps, self.other = target, source

    def move(self, plane: int, step: int) -> None:
        """What is marked in `mask` moves up."""
        build, all_, count = self.build, self.whole(plane), self.shape[3]
        moves = self.whole(self.other)
        build.combine(Unit.AND, moves, all_, self.whole(self.mask))
        build.combine(Unit.XOR, all_, all_, moves)
        front = self.part(plane, 0, count - step)
        build.combine(Unit.OR, front, front, self.part(self.other, step, count))

    def whole(self, address: int) -> Words:
        return Words(address, self.shape)

    def part(self, address: int, first: int, end: int) -> Words:
        """Columns of a plane."""
        shape: Shape = (*self.shape[:3], end - first)
        return Words(address + 4 * first, shape, self.strides, within=self.build.chip.plane(address, self.shape))
