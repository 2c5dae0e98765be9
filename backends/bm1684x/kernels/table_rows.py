"""Rows of a table by indices that are known at run time: embeddings of tokens (bm1684x.md 3.4, gather).

Indices lie in lanes, one each, and so do the rows that one transfer brings. The execution units add the length of the
table to negative ones. An index outside of the table, which evaluation refuses, gives a row of zeros.
"""

from __future__ import annotations

from math import prod

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Ar, Move
from bmcompiler.backends.bm1684x.instructions import arithmetic, transfers
from bmcompiler.backends.bm1684x.instructions.operands import Operand
from bmcompiler.backends.bm1684x.lane_commands import I32, RAW
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation, is_constant, item_bytes
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, TileWork
from bmcompiler.ops.places.index import Gather
from bmcompiler.target import rule

_TO_SIGN = Immediate(-31 & 0xFFFF_FFFF)


class TableRowsKernel(LocalKernel[Gather]):
    """gather of rows of a constant: tiles of indices."""

    ops = (Gather,)

    @rule("The table must be a constant, the indices an activation")
    def known_table(self, op: Gather) -> bool:
        return is_constant(op.x) and is_activation(op.indices)

    @rule("The axis must be the first of the table")
    def first_axis(self, op: Gather) -> bool:
        return op.axis % op.x.type.rank == 0

    @rule("Indices must be i32")
    def known_indices(self, op: Gather) -> bool:
        return op.indices.dtype == "i32"

    @rule("Elements must have 1, 2 or 4 bytes")
    def known_items(self, op: Gather) -> bool:
        return item_bytes(op.x) in RAW

    @rule("A row must have at most {kernel.chip.most_size} elements")
    def short_rows(self, op: Gather) -> bool:
        return _width(op) <= self.chip.most_size

    def grid(self, op: Gather) -> tuple[Axis, ...]:
        return Axis(1), Axis(op.indices.type.size, self.chip.lanes, self.chip.most_channels), Axis(1), Axis(1)

    def work(self, op: Gather, box: Box) -> TileWork:
        item, length, width = item_bytes(op.x), op.x.shape[0], _width(op)
        count = op.indices.type.size
        places, rows = (extents(box), (1, extents(box)[1], 1, width))

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            given, index = Words(ins[0], places), Words(scratch[0], places)
            build.combine(Unit.SHIFT_SIGNED, index, given, _TO_SIGN)
            build.combine(Unit.AND, index, index, Immediate(length))
            a, b = (Operand(words.address, I32) for words in (index, given))
            build.issue(arithmetic.binary(Ar.ADD, places, a, a, b), *build.ranges(index, index, given))
            target = Words(outs[0], rows, item=item)
            command = transfers.indexed(
                Move.GATHER,
                transfers.Rows(transfers.in_window(outs[0]), (0, 1, 0), (0, 0)),
                transfers.Rows(build.source(op.x), (1, length, width), (0, 0)),
                transfers.Rows(transfers.in_window(scratch[0]), (places[1], 1, 0), (0, 0)),
                RAW[item],
                strides=False,
            )
            build.issue(command, *build.ranges(target, index))

        inputs = (self.machine.activation_in(op.indices, (1, count, 1, 1), box),)
        made: Box = (box[0], box[1], (0, 1), (0, width))
        outputs = (self.machine.activation_out(op.result, (1, count, 1, width), made),)
        timing = self.machine.cycles
        passes = timing.pass_cycles(places) + 2 * timing.pass_cycles(places, in_place=True)
        moved = timing.load(rows[1], item * width)
        scratch = (self.chip.aligned_bytes(places),)
        return TileWork(inputs, outputs, scratch, compute, passes + moved, transfers=moved)


def _width(op: Gather) -> int:
    """Elements of a row."""
    return prod(op.x.shape[1:])
