"""Rows of a tensor replaced at indices that are known at run time: caches of keys and values (bm1684x.md 3.4, scatter).

Indices and the new rows lie in one lane, where transfers find them one after the other: of several for one place the
last one stays, as evaluation has it. An index outside of the tensor, which evaluation refuses, replaces nothing where
no other row has its number.
"""

from __future__ import annotations

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Move
from bmcompiler.backends.bm1684x.instructions import transfers
from bmcompiler.backends.bm1684x.kernels.indexed.computed_places import emit_rows, own_rows, places_of
from bmcompiler.backends.bm1684x.kernels.indexed.table_rows import ComputedKernel
from bmcompiler.backends.bm1684x.lane_commands import RAW
from bmcompiler.backends.lanes.kernels.base import item_bytes
from bmcompiler.backends.lanes.kernels.moves.global_copies import copying_cycles, move
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.pieces import whole
from bmcompiler.codegen.schedule import Moved
from bmcompiler.codegen.tiling import Axis, Box, TileWork
from bmcompiler.ops.places.index import ScatterElements, ScatterNd
from bmcompiler.target import rule

Replacing = ScatterElements | ScatterNd


class ScatteredRowsKernel(ComputedKernel[Replacing]):
    """scatter_elements and scatter_nd: a copy of the operand, then tiles of indices with their rows."""

    ops = (ScatterElements, ScatterNd)

    @rule("Only without a reduction", got="reduction")
    def replaces(self, op: Replacing) -> bool:
        return bool(op.reduction == "none")

    def grid(self, op: Replacing) -> tuple[Axis, ...]:
        return Axis(1), Axis(1), Axis(places_of(op).count, 1, self.chip.most_size), Axis(1)

    def work(self, op: Replacing, box: Box) -> TileWork:
        places, item, chip = places_of(op), item_bytes(op.x), self.chip
        members, (_, _, count, _) = len(places.sizes), extents(box)
        tuples, indices, rows = (1, 1, 1, count), (1, 1, count, members), (1, 1, count, places.width)
        own = places.own is not None

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            steps = (0, 0, 0, members) if members > 1 else None
            given = Words(ins[0], tuples, steps, within=chip.plane(ins[0], indices))
            index = emit_rows(build, places, given, Words(ins[2], tuples) if own else None, scratch)
            source = Words(ins[1], rows, item=item)
            command = transfers.indexed(
                Move.SCATTER,
                transfers.Rows(build.neuron(op.result), (1, places.rows, 0), (0, 0)),
                transfers.Rows(transfers.in_window(source.address), (1, count, places.width), (0, 0)),
                transfers.Rows(transfers.in_window(index.address), (1, count, 0), (0, 0)),
                RAW[item],
                strides=False,
            )
            build.issue(command, [*build.ranges(source, source, index)[0]], [])

        here = (*box[:3], (0, members)), (*box[:3], (0, places.width))
        inputs = [
            self.machine.activation_in(value, (1, 1, places.count, width), part)
            for value, width, part in zip(op.operands[1:], (members, places.width), here)
        ]
        if own:
            line = ((0, 1), (0, 1), (0, 1), box[2])
            inputs.append(own_rows(places, (1, 1, 1, places.count), line, chip.aligned_bytes(tuples)))
        moved = self.machine.cycles.store(count, item * places.width)
        cycles = places.cycles(self.machine.cycles, tuples) + moved
        scratch = (chip.aligned_bytes(tuples),) * places.registers
        return TileWork(tuple(inputs), (), scratch, compute, cycles, transfers=moved)

    def emit(self, op: Replacing, build: Build) -> Moved:
        moved = move(build, [whole(op.result, op.x)])
        moved.add(super().emit(op, build))
        moved.stored += op.updates.type.size * item_bytes(op.updates)
        return moved

    def estimate(self, op: Replacing) -> int | None:
        tiles = super().estimate(op)
        return tiles and tiles + copying_cycles([whole(op.result, op.x)], self.chip, self.machine.cycles)

    def whole(self, op: Replacing) -> TileWork | None:
        return None

    def boxed(self, op: Replacing, box: Box) -> TileWork | None:
        return None
