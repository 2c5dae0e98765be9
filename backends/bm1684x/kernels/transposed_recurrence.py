"""Steps of recurrent layers whose sequences move in whole rows, and turn between rows and lanes in local memory.

A lane holds few values of each step: moved as they lie there, runs are of a few bytes, each of which costs `RUN`.
Value j * L + l lies in lane l as its neighbour j, so that L values of one step, next to each other in global memory,
are a row; rows are channels as they move, and one command makes columns of them.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bmcompiler.backends.bm1684x.kernels.half_recurrence import HalfRecurrenceKernel
from bmcompiler.backends.bm1684x.kernels.transposed_steps import TransposedCounted, TransposedEmitted, parts_of
from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import item_bytes
from bmcompiler.backends.lanes.kernels.sums.recurrence import RecurrenceKernel
from bmcompiler.backends.lanes.kernels.sums.step_commands import Counted, Emitted
from bmcompiler.codegen.tiling import Buffer, Runs
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.recurrence import Recurrence
from bmcompiler.target import rule


class TransposedRecurrenceKernel(RecurrenceKernel):
    """All steps of a recurrent layer whose gates follow each other, each with all its values."""

    counted: ClassVar[type[Counted]] = TransposedCounted
    emitted: ClassVar[type[Emitted]] = TransposedEmitted
    by_gate = True
    order_of_gates = "follow each other, each with all its values"

    @rule("Rows of gates that turn into lanes must be no more than the runs of lanes they replace")
    def few_rows(self, op: Recurrence) -> bool:
        size = self.sizes(op)
        return (op.count + 1) * size.run <= 2 * size.lanes

    def packed(self, op: Recurrence, number: int, weight: Array) -> Array:
        size = self.sizes(op)
        order = np.arange(op.hidden).reshape(size.run, size.lanes).T.ravel()
        square = weight.reshape(op.count, op.hidden, op.hidden)
        return super().packed(op, number, square[:, order][:, :, order].reshape(weight.shape))

    def gates_in_lanes(self, op: Recurrence, gates: Array) -> Array:
        size = self.sizes(op)
        apart = gates.reshape(size.steps, size.images, op.count, size.run, size.lanes)
        return apart.transpose(0, 2, 4, 1, 3)

    def in_lanes(self, op: Recurrence, x: Array) -> Array:
        size = self.sizes(op)
        return x.reshape(-1, size.run, size.lanes).transpose(2, 0, 1)[None]

    def out_of_lanes(self, x: Array) -> Array:
        return np.moveaxis(x, -3, -1)

    # -- rows ----------------------------------------------------------------------------------------------------------
    def rows(self, op: Recurrence, gates: int = 1) -> int:
        """Of a step."""
        size = self.sizes(op)
        return size.images * gates * size.run

    def places(self, op: Recurrence, gates: int = 1) -> dict[range, int]:
        """Spans -> where their rows begin in a buffer of those of all."""
        found, size, item = {}, 0, item_bytes(op.gates)
        for span in self.spans(op):
            found[span] = size
            size += self.chip.aligned_bytes(self.flat(op, len(span) * self.rows(op, gates)), item)
        return found

    def flat(self, op: Recurrence, rows: int) -> Shape:
        """Rows as they move."""
        return 1, rows, 1, self.sizes(op).lanes

    def _space(self, op: Recurrence, gates: int = 1) -> int:
        item, last = item_bytes(op.gates), self.spans(op)[-1]
        shape = self.flat(op, len(last) * self.rows(op, gates))
        return self.places(op, gates)[last] + self.chip.aligned_bytes(shape, item)

    def scratch(self, op: Recurrence) -> tuple[int, ...]:
        fed, made, stored, _, *rest = super().scratch(op)
        steps, item = len(self.spans(op)[0]), item_bytes(op.gates)
        sides = [(1, self.sizes(op).lanes, 1, steps * self.rows(op, gates)) for gates in (op.count, 1)]
        wide, transposed, shown = (
            self.chip.aligned_bytes(side, size) for side, size in zip((*sides[:1], *sides), (4, item, item))
        )
        return fed, made, stored, wide, *rest, transposed, shown

    def gates_loaded(self, op: Recurrence, cycles: int) -> Buffer:
        item, places, row = (
            item_bytes(op.gates),
            self.places(op, op.count),
            self.sizes(op).images * op.count * op.hidden,
        )

        def load(build: LaneBuild, address: int) -> None:
            source = build.source(op.gates)
            for span in self.spans(op):
                shape = self.flat(op, len(span) * self.rows(op, op.count))
                begins = source + item * span.start * row
                self._move(build, begins, shape, item, address + places[span], loads=True)

        rows = self.sizes(op).steps * self.rows(op, op.count)
        whole = Buffer(
            self._space(op, op.count), "", op.gates.type.nbytes, load, runs=Runs(rows, rows), loads=len(places)
        )
        return self.in_spans(op, whole, cycles)

    def loaded(self, op: Recurrence, value: Value, shape: Shape) -> Buffer:
        item, flat = item_bytes(value), self.flat(op, shape[2] * shape[3])

        def load(build: LaneBuild, address: int) -> None:
            self._move(build, build.source(value), flat, item, address, loads=True)

        return Buffer(self.chip.aligned_bytes(flat, item), "", value.type.nbytes, load)

    def sequence_stored(self, op: Recurrence) -> Buffer:
        last, nbytes = self.spans(op)[-1], op.results[0].type.nbytes
        left = nbytes * len(last) // self.sizes(op).steps

        def store(build: LaneBuild, address: int) -> None:
            self.store_span(build, op, last, address)

        rows = len(last) * self.rows(op)
        return Buffer(self._space(op), "nchw", nbytes, store, runs=Runs(rows, rows), ahead=nbytes - left)

    def store_span(self, build: LaneBuild, op: Recurrence, span: range, address: int) -> None:
        item, row = item_bytes(op.gates), self.sizes(op).images * op.hidden
        target = build.neuron(op.results[0]) + item * span.start * row
        flat = self.flat(op, len(span) * self.rows(op))
        self._move(build, target, flat, item, address + self.places(op)[span], loads=False)

    def stored(self, op: Recurrence, value: Value) -> Buffer:
        item, flat = item_bytes(value), self.flat(op, self.rows(op))

        def store(build: LaneBuild, address: int) -> None:
            self._move(build, build.neuron(value), flat, item, address, loads=False)

        return Buffer(self.chip.aligned_bytes(flat, item), "nchw", value.type.nbytes, store)

    def _move(self, build: LaneBuild, outside: int, flat: Shape, item: int, address: int, loads: bool) -> None:
        """All rows, which follow each other in global memory."""
        width = flat[3]
        for first, rows in parts_of(flat[1]):
            lines = self.chip.aligned_bytes((1, first, 1, width), item) if first else 0
            move = build.load if loads else build.store
            strides = (rows * width, width, width, 1)
            move(outside + item * first * width, (1, rows, 1, width), strides, item, address + lines)


class TransposedHalfRecurrenceKernel(TransposedRecurrenceKernel, HalfRecurrenceKernel):
    """The same of 16-bit floats."""
