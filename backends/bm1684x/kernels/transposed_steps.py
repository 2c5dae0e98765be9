"""The commands of a recurrent layer whose sequences turn between rows and lanes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import item_bytes
from bmcompiler.backends.lanes.kernels.sums.step_commands import Counted, Emitted
from bmcompiler.backends.lanes.kernels.sums.step_products import Planes
from bmcompiler.backends.lanes.operands import Words

if TYPE_CHECKING:
    from bmcompiler.backends.bm1684x.kernels.transposed_recurrence import TransposedRecurrenceKernel

_ROWS = 2048
"""Rows that one command turns: whole rounds of lanes, and whole vectors of each lane."""


def parts_of(rows: int) -> Iterator[tuple[int, int]]:
    """(first, number) of those that one command moves or turns."""
    return ((first, min(_ROWS, rows - first)) for first in range(0, rows, _ROWS))


@dataclass
class TransposedCounted(Counted):
    """Cycles of the commands, spans transposed as a whole."""

    kernel: TransposedRecurrenceKernel

    def all(self) -> None:
        super().all()
        op, kernel = self.op, self.kernel
        item, lanes, passes = item_bytes(op.gates), self.size.lanes, kernel.machine.cycles.pass_cycles
        spans = [len(span) for span in kernel.spans(op)]
        gates = [steps * kernel.rows(op, op.count) for steps in spans]
        extra = [] if op.extra is None else [kernel.extra(op)[2] * kernel.extra(op)[3]]
        for rows in (*gates, kernel.rows(op), *extra):
            self.cycles += sum(passes((1, lanes, 1, count), item) for _, count in parts_of(rows))
        states = [kernel.rows(op)] * (len(op.results) - 1)
        for rows in (*(steps * kernel.rows(op) for steps in spans), *states):
            self.cycles += sum(passes((1, count, 1, lanes), item) for _, count in parts_of(rows))
        self.cycles += sum(passes((1, lanes, 1, rows)) for rows in gates if item == 2)

    def widen(self, time: int) -> None:
        """Those of a span become fp32 at once."""


@dataclass
class TransposedEmitted(Emitted):
    """Commands, spans transposed as a whole."""

    kernel: TransposedRecurrenceKernel
    here: range | None = field(init=False, default=None)
    """The span whose inputs are transposed."""

    def __post_init__(self) -> None:
        *self.scratch, self.transposed, self.shown = self.scratch
        super().__post_init__()
        op, kernel = self.op, self.kernel
        self.in_places, self.out_places = kernel.places(op, op.count), kernel.places(op)
        self.spans = {time: span for span in kernel.spans(op) for time in span}

    def inputs(self, time: int) -> Planes:
        op, run, span = self.op, self.size.run, self.spans[time]
        rows = self.kernel.rows(op, op.count)
        if span != self.here:
            self.here = span
            self._into_lanes(self.wide, self.ins[0] + self.in_places[span], len(span) * rows)
        return Planes(self.wide + 4 * (time - span.start) * rows, (run, 0, op.count * run, 1), run)

    def show(self, time: int, h: Planes, last: bool) -> None:
        span, rows, part = self.spans[time], self.kernel.rows(self.op), self.size.part()
        place = self._typed(self.shown + self.item * (time - span.start) * rows, part, (0, 0, self.size.run, 1))
        source = Words(h.address, part)
        (self.build.assign if self.item == 4 else self.build.cast)(place, source)
        if last:
            self._last_row(self.outs[1], place)
        else:
            self._feed(place)
        if time in self.ends:
            self._out_of_lanes(self.outs[0] + self.out_places[span], self.shown, len(span) * rows)
            if not last:
                self.kernel.store_span(self.build, self.op, span, self.outs[0])

    def first(self, address: int, place: str, shape: Shape) -> Planes:
        self._into_lanes(self.places[place], address, shape[2] * shape[3])
        return Planes(self.places[place], None if shape == self.size.part() else (0, 0, 0, 1), 0)

    def leave(self, address: int, value: Planes) -> None:
        self.narrow(self.stored, value)
        self._out_of_lanes(address, self.stored, self.kernel.rows(self.op))

    def _last_row(self, address: int, place: Words) -> None:
        self.build.assign(self._typed(self.stored, self.size.part()), place)
        self._out_of_lanes(address, self.stored, self.kernel.rows(self.op))

    def _into_lanes(self, target: int, source: int, rows: int) -> None:
        """Rows as columns of fp32."""
        lanes, into = self.size.lanes, target if self.item == 4 else self.transposed
        for first, count in parts_of(rows):
            flat = self._typed(source + self._lines(first), (1, count, 1, lanes))
            self.build.transpose(self._typed(into + self.item * first, (1, lanes, 1, count)), flat)
        if self.item != 4:
            shape = (1, lanes, 1, rows)
            self.build.cast(Words(target, shape), self._typed(into, shape))

    def _out_of_lanes(self, target: int, source: int, rows: int) -> None:
        """Columns as rows."""
        lanes = self.size.lanes
        for first, count in parts_of(rows):
            flat = self._typed(target + self._lines(first), (1, count, 1, lanes))
            self.build.transpose(flat, self._typed(source + self.item * first, (1, lanes, 1, count)))

    def _lines(self, rows: int) -> int:
        """Bytes of a lane that so many rows take."""
        return self.chip.aligned_bytes((1, rows, 1, self.size.lanes), self.item) if rows else 0
