"""Rows of a table by indices that are known at run time: embeddings, what a detector keeps (bm1684x.md 3.4, gather).

Indices lie in lanes, one each, and so do the rows that one transfer brings. An index outside of the table, which
evaluation refuses, gives a row of zeros where no other row has its number.
"""

from __future__ import annotations

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Move
from bmcompiler.backends.bm1684x.instructions import transfers
from bmcompiler.backends.bm1684x.kernels.indexed.computed_places import emit_rows, own_rows, places_of
from bmcompiler.backends.bm1684x.lane_commands import RAW
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_constant, item_bytes
from bmcompiler.backends.lanes.kernels.moves.global_copies import MOST_COMMANDS
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, TileWork
from bmcompiler.ops.places.index import Gather, GatherElements, GatherNd
from bmcompiler.target import OpT, rule

Picking = Gather | GatherElements | GatherNd


class ComputedKernel(LocalKernel[OpT]):
    """Base of kernels that pick or replace rows by indices that are known at run time."""

    @rule("Indices must be i32")
    def known_indices(self, op: OpT) -> bool:
        return op.operands[1].dtype == "i32"

    @rule("Elements must have 1, 2 or 4 bytes")
    def known_items(self, op: OpT) -> bool:
        return item_bytes(op.results[0]) in RAW

    @rule("A row must have at most {kernel.chip.most_size} elements")
    def short_rows(self, op: OpT) -> bool:
        return places_of(op).width <= self.chip.most_size  # type: ignore[arg-type]

    @rule("There must be fewer than 2**31 rows")
    def countable_rows(self, op: OpT) -> bool:
        return places_of(op).rows < 1 << 31  # type: ignore[arg-type]


class TableRowsKernel(ComputedKernel[Picking]):
    """gather, gather_elements and gather_nd: tiles of indices."""

    ops = (Gather, GatherElements, GatherNd)

    @rule(f"There must be at most {MOST_COMMANDS} tables, which axes before the one that is indexed make")
    def few_tables(self, op: Picking) -> bool:
        return places_of(op).tables <= MOST_COMMANDS

    def grid(self, op: Picking) -> tuple[Axis, ...]:
        places, chip = places_of(op), self.chip
        images = Axis(places.tables, 1, chip.most_images)
        return images, Axis(places.count, chip.lanes, chip.most_channels), Axis(1), Axis(1)

    def work(self, op: Picking, box: Box) -> TileWork:
        places, item, chip = places_of(op), item_bytes(op.x), self.chip
        members, (tables, count, _, _) = len(places.sizes), extents(box)
        tuples, indices = (1, count, 1, 1), (1, count, 1, members)
        rows = (tables, count, 1, places.width)
        own = places.own is not None

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            steps = chip.aligned_strides(indices) if members > 1 else None
            given = Words(ins[0], tuples, steps, within=chip.plane(ins[0], indices))
            index = emit_rows(build, places, given, Words(ins[1], tuples) if own else None, scratch)
            image = item * chip.aligned_strides(rows, item=item)[0]
            for number in range(tables):
                table = build.source(op.x) + (box[0][0] + number) * places.rows * places.width * item
                target = Words(outs[0] + number * image, (1, *rows[1:]), item=item)
                command = transfers.indexed(
                    Move.GATHER,
                    transfers.Rows(transfers.in_window(target.address), (0, 1, 0), (0, 0)),
                    transfers.Rows(table, (1, places.rows, places.width), (0, 0)),
                    transfers.Rows(transfers.in_window(index.address), (count, 1, 0), (0, 0)),
                    RAW[item],
                    strides=False,
                )
                build.issue(command, *build.ranges(target, index))

        here = ((0, 1), box[1], (0, 1))
        inputs = [self.machine.activation_in(op.indices, (1, places.count, 1, members), (*here, (0, members)), "c")]
        if own:
            inputs.append(own_rows(places, (1, places.count, 1, 1), (*here, (0, 1)), chip.aligned_bytes(tuples)))
        made = (*box[:2], (0, 1), (0, places.width))
        output = self.machine.activation_out(op.result, (places.tables, places.count, 1, places.width), made)
        moved = tables * self.machine.cycles.load(count, item * places.width)
        cycles = places.cycles(self.machine.cycles, tuples) + moved
        scratch = (chip.aligned_bytes(tuples),) * places.registers
        return TileWork(tuple(inputs), (output,), scratch, compute, cycles, transfers=moved)

    def whole(self, op: Picking) -> TileWork | None:
        return super().whole(op) if is_constant(op.x) else None

    def boxed(self, op: Picking, box: Box) -> TileWork | None:
        return super().boxed(op, box) if is_constant(op.x) else None
