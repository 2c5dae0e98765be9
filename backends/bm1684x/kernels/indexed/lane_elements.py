"""Single elements by indices that are known at run time, from tables that fit a lane (bm1684x-vector.md 9.2).

A transfer takes as long for an element as for a row of 256 bytes. Where each lane has the whole table, 64 lanes look
up an index each in a cycle. Tables that follow each other, of which the same places are meant, take turns.
"""

from __future__ import annotations

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Ar, Precision, Rounding
from bmcompiler.backends.bm1684x.codes import Gather as Lookup
from bmcompiler.backends.bm1684x.instructions import arithmetic, special
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.kernels.indexed.computed_places import emit_rows, own_elements, places_of
from bmcompiler.backends.bm1684x.kernels.indexed.table_rows import ComputedKernel, Picking
from bmcompiler.backends.bm1684x.lane_commands import I32, RAW
from bmcompiler.backends.bm1684x.machine import cycles_of
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import is_constant, item_bytes
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ops.places.index import Gather, GatherElements, GatherNd
from bmcompiler.target import rule

_MOST = 65_535
"""Elements of a table: an index has 16 bits, and the last number means something else."""


class LaneElementsKernel(ComputedKernel[Picking]):
    """gather, gather_elements and gather_nd of single elements: tiles of indices, each lane with one table."""

    ops = (Gather, GatherElements, GatherNd)

    @rule(f"Rows must be single elements of tables of at most {_MOST}, each at most three quarters of a lane")
    def small_table(self, op: Picking) -> bool:
        places = places_of(op)
        single = places.width == len(places.sizes) == 1
        return single and places.rows <= _MOST and 4 * self._table(op) <= 3 * self.machine.tiler.lane_bytes

    def is_quicker(self, op: Picking) -> bool:
        """Whether the table takes less time to load than elements one by one."""
        places, item, load = places_of(op), item_bytes(op.x), self.machine.cycles.load
        return load(1, item * places.rows) <= load(places.count, item)

    def _table(self, op: Picking) -> int:
        """Bytes of a lane."""
        return self.chip.aligned_bytes((1, 1, 1, places_of(op).rows), item_bytes(op.x))

    def view(self, op: Picking) -> Shape:
        """The result as a feature map, where there are several tables with an image for each."""
        places = places_of(op)
        if places.tables == 1:
            return self.machine.flat_view(op.results[0].shape, 4, self.is_made(op))
        return (places.tables, *self.machine.flat_view((places.count,), 4)[1:])

    def grid(self, op: Picking) -> tuple[Axis, ...]:
        n, c, h, w = self.machine.elementwise_grid(self.view(op), 4)
        images = n if places_of(op).tables == 1 else Axis(n.size, 1, 1)
        return (images, c, Axis(h.size, 1, max(1, self.chip.most_size // w.size)), w)

    def work(self, op: Picking, box: Box) -> TileWork:
        places, item, chip, view, dims = places_of(op), item_bytes(op.x), self.chip, self.view(op), extents(box)
        n, c, h, w = dims
        own, short = places.own is not None, chip.aligned_bytes(dims, 2)

        def load(build: Build, address: int) -> None:
            source = build.source(op.x) + (0 if places.tables == 1 else box[0][0] * places.rows * item)
            build.load(source, (1, min(c, chip.lanes), 1, places.rows), (0, 0, 0, 1), item, address)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            numbers, *registers = scratch
            given, table = Words(ins[0], dims), ins[-1]
            row = emit_rows(build, places, given, Words(ins[1], dims) if own else None, registers)
            here, index = Operand(row.address, I32, True), Operand(numbers, Precision.INT16, False)
            last = constant(places.rows - 1, I32, True)
            build.issue(arithmetic.binary(Ar.MIN, dims, here, here, last), *build.ranges(row, row))
            packed = Words(numbers, dims, item=2)
            build.issue(arithmetic.cast(dims, index, here, Rounding.HALF_EVEN), *build.ranges(packed, row))
            target = Words(outs[0], dims, item=item)
            command = special.by_index(
                Lookup.LANE_FAST,
                (n, c, 1, h * w),
                outs[0],
                (table, places.rows, True),
                (numbers, h * w, Precision.INT16),
                RAW[item],
            )
            reads = [chip.plane(numbers, dims, 2), (table, table + self._table(op))]
            build.issue(command, reads, [chip.plane(outs[0], dims, target.item)])

        inputs = [self._indices(op, view, box)]
        if own:
            inputs.append(own_elements(places, view, box, chip.aligned_bytes(dims)))
        entries = places.rows * item
        inputs.append(Buffer(self._table(op), "" if places.tables == 1 else "n", entries, load, is_constant(op.x)))
        output = self.machine.activation_out(op.result, view, box)
        cycles = places.cycles(self.machine.cycles, dims) + self._index_cycles(dims)
        scratch = (short, *(chip.aligned_bytes(dims),) * places.registers)
        return TileWork(tuple(inputs), (output,), scratch, compute, cycles)

    def _indices(self, op: Picking, view: Shape, box: Box) -> Buffer:
        """Those of a tile, which are the same for all tables."""
        if places_of(op).tables == 1:
            return self.machine.activation_in(op.indices, view, box)
        return self.machine.activation_in(op.indices, (1, *view[1:]), ((0, 1), *box[1:]), "chw")

    def _index_cycles(self, dims: Shape) -> int:
        """Of a bound, of the cast to 16 bits, and of the lookups."""
        passes, (n, c, h, w) = self.machine.cycles.pass_cycles, dims
        return passes(dims, in_place=True) + passes(dims) + cycles_of(self.machine).gather((n, c, h, w))

    def whole(self, op: Picking) -> TileWork | None:
        return super().whole(op) if is_constant(op.x) else None

    def boxed(self, op: Picking, box: Box) -> TileWork | None:
        return super().boxed(op, box) if is_constant(op.x) else None
