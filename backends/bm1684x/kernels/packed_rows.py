"""Constants of a product with packed weights as they lie in lanes, and the commands that unpack and multiply them.

The constants of an output are one row: codes, scales, zero points. Rows are stored in the order of the outputs, so that
programs of other sizes of tiles and other numbers of rows of x share them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import lcm
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Ar, Precision, Rounding, Trans
from bmcompiler.backends.bm1684x.instructions import arithmetic, matrix, special
from bmcompiler.backends.bm1684x.instructions.operands import Command, Operand, constant
from bmcompiler.backends.bm1684x.lane_commands import PRECISIONS, RAW
from bmcompiler.backends.bm1684x.machine import cycles_of
from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Range
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.chip import align_up
from bmcompiler.codegen.tiling import Apart, Buffer, Runs
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.weight_only import WeightOnlyMatmul

HALF = 2
"""Bytes of activations, scales and unpacked weights."""
_BYTE, _NIBBLE, _PLACES = Precision.INT8, 15, -4
_PIECE = 2048
"""Weights of an output that are unpacked at once, if it has more."""


class Groups(NamedTuple):
    """Groups of one size: how many, of how many weights, which is the first one, and its first weight."""

    number: int
    size: int
    first: int
    start: int


class PackedRows:
    """The constants of an op, and what is made of those of some outputs.

    Attributes:
        depth: weights of an output. codes, scales, size: bytes of a row: of its codes, before its zero points, all.
        pitch: bytes from one row to the next in a lane.
    """

    def __init__(self, machine: LaneMachine, op: WeightOnlyMatmul) -> None:
        self.machine, self.chip, self.op, self.depth = machine, machine.chip, op, op.x.shape[-1]
        groups = op.scale.shape[1]
        self.codes = align_up(op.weight.shape[1], HALF)
        self.scales = self.codes + HALF * groups
        self.size = align_up(self.scales + groups * (op.zero_point is not None), 4)
        self.pitch = align_up(self.size, self.chip.alignment)
        self._kind = PRECISIONS[op.x.dtype][0]

    # -- constants -----------------------------------------------------------------------------------------------------
    def block(self, outputs: int) -> int:
        """Bytes of a lane that the constants of so many outputs take."""
        return self.chip.channel_rows(0, outputs) * self.pitch

    def buffer(self, outputs: Range, axes: str) -> Buffer:
        """The constants of some outputs, to load."""
        count = outputs[1] - outputs[0]

        def transfer(build: LaneBuild, address: int) -> None:
            self.load(build, outputs, address)

        return Buffer(self.block(count), axes, count * self.size, transfer, True, runs=Runs(1, count))

    def load(self, build: LaneBuild, outputs: Range, address: int) -> None:
        """Load the constants of some outputs."""
        op, (first, end) = self.op, outputs
        others = [op.scale, *([] if op.zero_point is None else [op.zero_point])]
        start = build.coefficient(
            build.coefficients.place(op.weight, "codes, scales, zero points", self._pack, *others)
        )
        build.load(start + first * self.size, (1, end - first, 1, self.size), (0, self.size, 0, 1), 1, address)

    def _pack(self, codes: Array, scale: Array, zero_point: Array | None = None) -> Array:
        rows = np.zeros((len(codes), self.size), np.uint8)
        rows[:, : codes.shape[1]] = codes
        rows[:, self.codes : self.scales] = np.ascontiguousarray(scale).view(np.uint8)
        if zero_point is not None:
            rows[:, self.scales : self.scales + zero_point.shape[1]] = zero_point
        return rows

    # -- commands ------------------------------------------------------------------------------------------------------
    @cached_property
    def _floats(self) -> int:
        """Bytes of a lane from the weights of one output to those of the next."""
        return align_up(HALF * self.depth, self.chip.alignment)

    @cached_property
    def _group(self) -> int:
        """Weights of a group."""
        return min(self.op.group_size or self.depth, self.depth)

    @cached_property
    def _piece(self) -> int:
        """Weights of an output that are unpacked at once: whole groups, where there are several."""
        unit = lcm(self._group, self.chip.alignment) if self._group < self.depth else self.chip.alignment
        return min(align_up(_PIECE, unit), align_up(self.depth, self.chip.alignment))

    def _pieces(self) -> Iterator[Range]:
        return ((first, min(first + self._piece, self.depth)) for first in range(0, self.depth, self._piece))

    def _rows_lead(self, outputs: int, rows: int) -> bool:
        """Whether rows of x are the left operand, whose results need no transpose, and not the weights."""
        timing, shape = cycles_of(self.machine), (1, rows, 1, outputs)
        transposed = timing.row_matrix((1, outputs, 1, rows), self.depth, HALF) + timing.pass_cycles(shape, HALF)
        return timing.row_matrix(shape, self.depth, HALF) <= transposed

    def _copied(self, outputs: int, rows: int, width: int) -> bool:
        """Whether transposed results are copied to where columns of several slots of rows lie."""
        return not self._rows_lead(outputs, rows) and rows > self.chip.lanes and width > outputs

    def scratch(self, outputs: int, rows: int, width: int) -> tuple[int, ...]:
        """Bytes of a piece, of weights, of results by outputs, of results that are copied; 0 without such.

        What becomes weights goes to and fro between the first two, which are in different banks where there is room.
        """
        slots = self.chip.channel_rows(0, outputs)
        transposed = not self._rows_lead(outputs, rows), self._copied(outputs, rows, width)
        shapes = (1, outputs, 1, rows), (1, rows, 1, outputs)
        others = (done * self.chip.aligned_bytes(shape, HALF) for done, shape in zip(transposed, shapes))
        return slots * HALF * self._piece, slots * self._floats, *others

    def apart(self, outputs: int, times: int = 1) -> tuple[Apart, ...]:
        """Constants are input 1; what it costs where they share a bank with an area for weights, or both do."""
        spread, less, cast, scaled = (times * cycles for cycles in self._passes(outputs))
        return Apart(1, 2, spread + scaled), Apart(1, 3, less + scaled), Apart(2, 3, less + cast + scaled)

    def emit(
        self, build: Build, place: int, outputs: int, x: Words, scratch: list[int], target: int, width: int
    ) -> None:
        """Results of some outputs, columns at `target` of (1, rows, 1, width) aligned, of constants at `place`."""
        slots, own = self.chip.channel_rows(0, outputs), (place, place + self.block(outputs))
        here, there, *others = scratch
        piece, whole = (here, here + slots * HALF * self._piece), (there, there + slots * self._floats)
        for part in self._pieces():
            if self.op.bits < 8:
                for command in self._spread(part, place, here, outputs):
                    build.issue(command, [own], [piece])
            for command in self._differences(part, place, here, there, outputs):
                build.issue(command, [piece, own], [whole])
            build.issue(self._floats_of(part, here, there, outputs), [whole], [piece])
            for command in self._scaled(part, place, here, there, outputs):
                build.issue(command, [piece, own], [whole])
        weights = Words(there, (1, outputs, 1, self.depth))
        if self._rows_lead(outputs, x.shape[1]):
            self._multiply(build, x, weights, own, target, width)
        else:
            self._multiply_transposed(build, x, weights, own, others, target, width)

    def _multiply(self, build: Build, x: Words, weights: Words, own: Range, target: int, width: int) -> None:
        """Rows of x by the weights, a slot of rows at a time where the results are a part of their rows."""
        rows, outputs = x.shape[1], weights.shape[1]
        lanes = rows if width == outputs else self.chip.lanes
        for first in range(0, rows, lanes):
            count, slot = min(lanes, rows - first), first // self.chip.lanes
            some = Words(x.address + slot * self._step(self.depth), (1, count, 1, self.depth))
            made = Words(target + slot * self._step(width), (1, count, 1, outputs))
            command = matrix.by_rows(made, some, weights, self._kind, self._kind, transposed=True)
            # the place of the constants is free when all is done, as `Stream` has it
            reads = [self._plane(some), self._plane(weights), own]
            build.issue(command, reads, [self._part(made, width)])

    def _multiply_transposed(
        self, build: Build, x: Words, weights: Words, own: Range, scratch: list[int], target: int, width: int
    ) -> None:
        """The weights by rows of x, whose result is transposed within local memory."""
        rows, outputs = x.shape[1], weights.shape[1]
        product, shape = Words(scratch[0], (1, outputs, 1, rows)), (1, rows, 1, outputs)
        copied = self._copied(outputs, rows, width)
        transposed = Words(scratch[1] if copied else target, shape)
        summed = matrix.by_rows(product, weights, x, self._kind, self._kind, transposed=True)
        build.issue(summed, [self._plane(weights), self._plane(x)], [self._plane(product)])
        moved = special.move(Trans.WC, shape, transposed.address, product.address, RAW[HALF], (outputs, rows))
        build.issue(moved, [self._plane(product), own], [self._plane(transposed)])
        if copied:
            step = self._step(width)
            placed = Operand(target, self._kind, True, (0, step // HALF, 0, 1))
            copy = arithmetic.unary(Ar.COPY, shape, placed, Operand(transposed.address, self._kind))
            build.issue(copy, [self._plane(transposed), own], [self._part(Words(target, shape), width)])

    def _step(self, columns: int) -> int:
        """Bytes of a lane from one row to the next."""
        return align_up(HALF * columns, self.chip.alignment)

    def _part(self, made: Words, width: int) -> Range:
        """The bytes of columns of rows that have `width`."""
        slots = self.chip.channel_rows(0, made.shape[1])
        return made.address, made.address + self._step(width) * (slots - 1) + HALF * made.shape[3]

    def _plane(self, words: Words) -> Range:
        return self.chip.plane(words.address, words.shape, HALF)

    def _spread(self, part: Range, place: int, piece: int, outputs: int) -> Iterator[Command]:
        """Codes of 4 bits as bytes: the low halves, then the high ones."""
        start, end = part
        for first in range(min(2, end - start)):
            shape = (1, outputs, 1, -(-(end - start - first) // 2))
            made = Operand(piece + first, _BYTE, False, (0, HALF * self._piece, 0, 2))
            source = Operand(place + start // 2, _BYTE, False, (0, self.pitch, 0, 1))
            if first:
                places = constant(_PLACES & 0xFF, _BYTE)
                yield arithmetic.shift(Ar.SHIFT_LOGICAL, shape, made, source, places, Rounding.DOWN)
            else:
                yield arithmetic.binary(Ar.AND, shape, made, source, constant(_NIBBLE, _BYTE, False))

    def _differences(self, part: Range, place: int, piece: int, whole: int, outputs: int) -> Iterator[Command]:
        """Codes less zero points: of 4 bits as saturated bytes, of 8 bits as integers of 16."""
        narrow, start = self.op.bits < 8, part[0]
        source, steps = (piece - start, HALF * self._piece) if narrow else (place, self.pitch)
        kind, item = (_BYTE, 1) if narrow else (Precision.INT16, HALF)
        for groups in self._groups(part):
            shape = (1, outputs, groups.number, groups.size)
            codes = Operand(source + groups.start, _BYTE, False, (0, steps, groups.size, 1))
            target = whole + HALF * start + item * (groups.start - start)
            made = Operand(target, kind, True, (0, self._floats // item, groups.size, 1))
            if self.op.zero_point is None:
                zero = constant(1 << (self.op.bits - 1), _BYTE, False)
            else:
                zero = Operand(place + self.scales + groups.first, _BYTE, False, (0, self.pitch, 1, 0))
            yield arithmetic.integer(Ar.SUB, shape, made, codes, zero, saturation=narrow)

    def _floats_of(self, part: Range, piece: int, whole: int, outputs: int) -> Command:
        """Differences as floats."""
        kind, item = (Precision.INT8, 1) if self.op.bits < 8 else (Precision.INT16, HALF)
        start, end = part
        made = Operand(piece, self._kind, True, (0, self._piece, 0, 1))
        given = Operand(whole + HALF * start, kind, True, (0, self._floats // item, 0, 1))
        return arithmetic.cast((1, outputs, 1, end - start), made, given, Rounding.HALF_EVEN)

    def _scaled(self, part: Range, place: int, piece: int, whole: int, outputs: int) -> Iterator[Command]:
        """Floats times scales."""
        for groups in self._groups(part):
            given = Operand(piece + HALF * (groups.start - part[0]), self._kind, True, (0, self._piece, groups.size, 1))
            made = Operand(whole + HALF * groups.start, self._kind, True, (0, self._floats // HALF, groups.size, 1))
            scale = Operand(place + self.codes + HALF * groups.first, self._kind, True, (0, self.pitch // HALF, 1, 0))
            yield arithmetic.binary(Ar.MUL, (1, outputs, groups.number, groups.size), made, given, scale)

    def _groups(self, part: Range) -> Iterator[Groups]:
        """Whole groups of some weights, and a shorter last one, or a part of the only one."""
        (start, end), size = part, self._group
        whole, rest = divmod(end - start, size)
        if whole:
            yield Groups(whole, size, start // size, start)
        if rest:
            yield Groups(1, rest, start // size + whole, start + whole * size)

    def _passes(self, outputs: int) -> tuple[int, int, int, int]:
        """Cycles of spreading codes, of differences, of floats and of scaling."""
        passes, narrow = cycles_of(self.machine).pass_cycles, self.op.bits < 8
        spread = less = cast = scaled = 0
        for part in self._pieces():
            count = part[1] - part[0]
            for first in range(min(2, count) if narrow else 0):
                spread += passes((1, outputs, 1, -(-(count - first) // 2)), 1)
            shapes = [(1, outputs, groups.number, groups.size) for groups in self._groups(part)]
            less += sum(passes(shape, 1 if narrow else HALF) for shape in shapes)
            cast += passes((1, outputs, 1, count), HALF)
            scaled += sum(passes(shape, HALF) for shape in shapes)
        return spread, less, cast, scaled

    def cycles(self, outputs: int, rows: int, width: int) -> int:
        """What `emit` takes, planned."""
        timing, shape, cycles = cycles_of(self.machine), (1, rows, 1, outputs), sum(self._passes(outputs))
        if self._rows_lead(outputs, rows):
            return cycles + timing.row_matrix(shape, self.depth, HALF)
        cycles += timing.row_matrix((1, outputs, 1, rows), self.depth, HALF)
        return cycles + (1 + self._copied(outputs, rows, width)) * timing.pass_cycles(shape, HALF)

    def load_cycles(self, outputs: int) -> int:
        """What `load` takes, planned."""
        return cycles_of(self.machine).load_sections((1, outputs, 1, self.size // 4), self.size // 4)
