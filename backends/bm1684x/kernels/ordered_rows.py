"""Rows in another order, known when the net is compiled: windows of maps, shifted maps, neighbours as channels.

A gather loads them from where they lie in global memory (bm1684x.md 3.4), its indices being a constant. Nothing is
copied from global memory to global memory, however many slices and permutes made that order.
"""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Move
from bmcompiler.backends.bm1684x.instructions import transfers
from bmcompiler.backends.bm1684x.lane_commands import RAW
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation, is_constant, item_bytes
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Contents, Runs, TileWork
from bmcompiler.ops.places.index import Gather, places
from bmcompiler.target import rule

_LAYOUT = "rows in an order, in lanes"


class OrderedRowsKernel(LocalKernel[Gather]):
    """gather along the first axis by constants, one or more rows a lane."""

    ops = (Gather,)

    @rule("The first operand must be an activation, the indices constants")
    def known_operands(self, op: Gather) -> bool:
        return is_activation(op.x) and is_constant(op.indices)

    @rule("Elements must have 1, 2 or 4 bytes")
    def known_items(self, op: Gather) -> bool:
        return item_bytes(op.result) in RAW

    @rule("The rows of a lane must have at most {kernel.chip.most_size} elements")
    def short_rows(self, op: Gather) -> bool:
        _, each, width = _sizes(op)
        return each * width <= self.chip.most_size

    def views_result(self, op: Gather) -> bool:
        return True

    def grid(self, op: Gather) -> tuple[Axis, ...]:
        rows, each, width = _sizes(op)
        lanes, most = self.chip.lanes, self.chip.most_channels
        return Axis(1), Axis(rows, lanes, most // lanes * lanes), Axis(1), Axis(each * width, cuts=False)

    def work(self, op: Gather, box: Box) -> TileWork:
        item, (rows, each, width) = item_bytes(op.result), _sizes(op)
        first, end = box[1]
        view = (1, end - first, 1, each * width)

        def load(build: Build, address: int) -> None:
            order = places(build.coefficients.array(op.indices), op.x.shape[0]).astype(np.uint32)
            index = build.coefficient(build.coefficients.constant(order.tobytes())) + 4 * first * each
            target = Words(address, view, item=item)
            command = transfers.indexed(
                Move.GATHER,
                transfers.Rows(transfers.in_window(address), (0, each, 0), (0, 0)),
                transfers.Rows(build.neuron(op.x), (1, op.x.shape[0], width), (0, 0)),
                transfers.Rows(index, (end - first, each, 0), (0, 0)),
                RAW[item],
                strides=False,
            )
            build.issue(command, (), build.ranges(target)[1])

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            build.copy(Words(ins[0], view, item=item), Words(outs[0], view, item=item))

        made = (0, 1), box[1], (0, 1), (0, view[3])
        contents = Contents(root_of(op.x), (_LAYOUT, root_of(op.indices), box[1]))
        count = (end - first) * each
        gathered = Buffer(
            self.chip.aligned_bytes(view, item),
            "c",
            item * count * width,
            load,
            contents=contents,
            runs=Runs(count, count),
        )
        out = self.machine.activation_out(op.result, (1, rows, 1, each * width), made)
        return TileWork((gathered,), (out,), (), compute, self.machine.cycles.pass_cycles(view, item))


def _sizes(op: Gather) -> tuple[int, int, int]:
    """(lanes of rows, rows of each, elements of a row)."""
    counts = op.indices.shape
    return prod(counts[:1]), prod(counts[1:]), prod(op.x.shape[1:])
