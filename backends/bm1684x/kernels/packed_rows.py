"""Constants of a product with packed weights as they lie in lanes, and the commands that unpack and multiply them.

The constants of an output are one row: codes, scales, zero points. Rows are stored in the order of the outputs, so that
programs of other sizes of tiles and other numbers of rows of x share them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
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
from bmcompiler.codegen.tiling import Buffer, Runs
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.weight_only import WeightOnlyMatmul

HALF = 2
"""Bytes of activations, scales and unpacked weights."""
_BYTE, _NIBBLE, _PLACES = Precision.INT8, 15, -4


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
    def _bytes(self) -> int:
        """Bytes of a lane from the codes of one output to those of the next, where they have been unpacked."""
        return align_up(self.depth, self.chip.alignment)

    @cached_property
    def _floats(self) -> int:
        """The same of weights."""
        return align_up(HALF * self.depth, self.chip.alignment)

    def scratch(self, outputs: int, rows: int) -> tuple[int, ...]:
        """Bytes of the results as they are made, of weights, and of codes of 4 bits as bytes."""
        slots = self.chip.channel_rows(0, outputs)
        made = self.chip.aligned_bytes((1, outputs, 1, rows), HALF)
        return made, slots * self._floats, *((slots * self._bytes,) if self.op.bits < 8 else ())

    def emit(self, build: Build, place: int, outputs: int, x: Words, scratch: list[int], target: int) -> None:
        """Results of some outputs, (1, rows, 1, outputs) aligned at `target`, of constants at `place`."""
        sizes = self.scratch(outputs, x.shape[1])
        made, weights, *codes = ((start, start + size) for start, size in zip(scratch, sizes))
        own = place, place + self.block(outputs)
        if codes:
            for command in self._spread(place, codes[0][0], outputs):
                build.issue(command, [own], codes)
        source = (codes or [own])[0]
        for command in self._differences(source[0], place, weights[0], outputs):
            build.issue(command, [source, own], codes or [weights])
        for command in self._weights((codes or [weights])[0][0], place, weights[0], outputs):
            build.issue(command, [*codes, weights, own], [weights])
        product = Words(made[0], (1, outputs, 1, x.shape[1]))
        left = Words(weights[0], (1, outputs, 1, self.depth))
        summed = matrix.by_rows(product, left, x, self._kind, self._kind, transposed=True)
        build.issue(summed, [weights, *build.ranges(x, x)[1]], [made])
        shape = (1, x.shape[1], 1, outputs)
        transposed = special.move(Trans.WC, shape, target, made[0], RAW[HALF], (outputs, x.shape[1]))
        # the place of the constants is free when all is done, as `Stream` has it
        build.issue(transposed, [made, own], [self.chip.plane(target, shape, HALF)])

    def _spread(self, place: int, target: int, outputs: int) -> Iterator[Command]:
        """Codes of 4 bits as bytes: the low halves, then the high ones."""
        for first in range(min(2, self.depth)):
            shape = (1, outputs, 1, -(-(self.depth - first) // 2))
            made = Operand(target + first, _BYTE, False, (0, self._bytes, 0, 2))
            source = Operand(place, _BYTE, False, (0, self.pitch, 0, 1))
            if first:
                places = constant(_PLACES & 0xFF, _BYTE)
                yield arithmetic.shift(Ar.SHIFT_LOGICAL, shape, made, source, places, Rounding.DOWN)
            else:
                yield arithmetic.binary(Ar.AND, shape, made, source, constant(_NIBBLE, _BYTE, False))

    def _differences(self, source: int, place: int, target: int, outputs: int) -> Iterator[Command]:
        """Codes less zero points: of 4 bits as saturated bytes in their place, of 8 bits as integers of 16."""
        narrow = self.op.bits < 8
        steps = self._bytes if narrow else self.pitch
        for groups in self._groups():
            start, shape = groups.start, (1, outputs, groups.number, groups.size)
            codes = Operand(source + start, _BYTE, False, (0, steps, groups.size, 1))
            made = codes._replace(signed=True)
            if not narrow:
                wide = (0, self._floats // HALF, groups.size, 1)
                made = Operand(target + HALF * start, Precision.INT16, True, wide)
            if self.op.zero_point is None:
                zero = constant(1 << (self.op.bits - 1), _BYTE, False)
            else:
                zero = Operand(place + self.scales + groups.first, _BYTE, False, (0, self.pitch, 1, 0))
            yield arithmetic.integer(Ar.SUB, shape, made, codes, zero, saturation=narrow)

    def _weights(self, source: int, place: int, target: int, outputs: int) -> Iterator[Command]:
        """Differences as floats, times scales."""
        shape = (1, outputs, 1, self.depth)
        kind = Precision.INT8 if self.op.bits < 8 else Precision.INT16
        made = Operand(target, self._kind)
        yield arithmetic.cast(shape, made, Operand(source, kind), Rounding.HALF_EVEN)
        for groups in self._groups():
            start = HALF * groups.start
            some = Operand(target + start, self._kind, True, (0, self._floats // HALF, groups.size, 1))
            scale = Operand(place + self.codes + HALF * groups.first, self._kind, True, (0, self.pitch // HALF, 1, 0))
            yield arithmetic.binary(Ar.MUL, (1, outputs, groups.number, groups.size), some, some, scale)

    def _groups(self) -> Iterator[Groups]:
        """Whole groups, and the shorter last one."""
        size = min(self.op.group_size or self.depth, self.depth)
        whole, rest = divmod(self.depth, size)
        yield Groups(whole, size, 0, 0)
        if rest:
            yield Groups(1, rest, whole, whole * size)

    def cycles(self, outputs: int, rows: int) -> int:
        """What `emit` takes, planned."""
        timing, narrow = cycles_of(self.machine), self.op.bits < 8
        cycles = 0
        for first in range(min(2, self.depth) if narrow else 0):
            cycles += timing.pass_cycles((1, outputs, 1, -(-(self.depth - first) // 2)), 1)
        for groups in self._groups():
            some = (1, outputs, groups.number, groups.size)
            cycles += timing.pass_cycles(some, 1 if narrow else HALF, in_place=narrow)
            cycles += timing.pass_cycles(some, HALF, in_place=True)
        cycles += timing.pass_cycles((1, outputs, 1, self.depth), HALF, in_place=not narrow)
        cycles += timing.row_matrix((1, outputs, 1, rows), self.depth, HALF)
        return cycles + timing.pass_cycles((1, rows, 1, outputs), HALF)

    def load_cycles(self, outputs: int) -> int:
        """What `load` takes, planned."""
        return cycles_of(self.machine).load_sections((1, outputs, 1, self.size // 4), self.size // 4)
