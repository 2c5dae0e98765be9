"""Timing, trace and race check of one BM1880 program: the plug-in `bmcompiler.profile.Analysis` of this chip."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from bmcompiler.backends.bm1880.asm import mnemonics
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.isa import Engine
from bmcompiler.bmodel.bm1880 import Bm1880Model
from bmcompiler.bmodel.layers import LayerSpan, decode_layers, span_of
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.profile import CommandRef, EngineUse, LayerTime, Race, Timing
from bmcompiler.runtime.simulator.bm1880.cost import PROFILE, Costs, TimingProfile, costs
from bmcompiler.runtime.simulator.bm1880.decoded import ENGINES, Decoded, decode
from bmcompiler.runtime.simulator.bm1880.races import accesses
from bmcompiler.runtime.simulator.races import conflicts
from bmcompiler.runtime.simulator.timing import Ints, Schedule, advances, schedule, stalls, sums
from bmcompiler.runtime.simulator.trace import Slice, chrome_trace

_TPU, _CPU = ENGINES.index("TPU"), ENGINES.index("CPU")
_UNNAMED = "(unnamed)"


def analyze(model: object, program: int = 0, profile: TimingProfile = PROFILE) -> Bm1880Analysis:
    """Decode program number `program` of a model.

    Raises:
        UnsupportedError: a model of another chip.
        UsageError: there is no such program.
        SimulatorError, FileFormatError: a program, or a list of its layers, that cannot be decoded.
    """
    if not isinstance(model, Bm1880Model):
        raise UnsupportedError("this timing model knows bm1880 programs only")
    if not 0 <= program < len(model.commands):
        raise UsageError(f"there is no program {program}", remedy=f"the file has 0 to {len(model.commands) - 1}")
    command = model.commands[program]
    decoded = decode(command.cmdbuf)
    return Bm1880Analysis(model.net_name, decoded, decode_layers(command.layers, len(decoded)), profile)


class Bm1880Analysis:
    """See `bmcompiler.profile.Analysis`."""

    def __init__(self, net: str, decoded: Decoded, spans: list[LayerSpan], profile: TimingProfile = PROFILE) -> None:
        self.net, self.decoded, self.spans, self.profile = net, decoded, spans, profile

    @cached_property
    def costs(self) -> Costs:
        """Cycles, bytes and multiply-accumulates of every record."""
        return costs(self.decoded, self.profile)

    @cached_property
    def times(self) -> Schedule:
        """Start and end of every record in cycles."""
        return schedule(self.decoded.commands, self.costs.cycles)

    def timing(self) -> Timing:
        cost, engine = self.costs, self.decoded.commands.engine
        cycles, macs = self.times.cycles, int(cost.macs.sum())
        rate = CHIP.lanes * CHIP.execution_units
        return Timing(
            cycles,
            self.profile.clock_hz,
            self._engines(),
            self._layers(),
            weights=int(cost.weights.sum()),
            loaded=int(cost.loaded.sum()),
            stored=int(cost.stored.sum()),
            macs=macs,
            utilization=macs / (cycles * rate) if cycles else 0.0,
            cpu_records=int((engine == _CPU).sum()),
            assumptions=self.profile.assumptions(),
        )

    def _engines(self) -> tuple[EngineUse, ...]:
        commands = self.decoded.commands
        counts = np.bincount(commands.engine, minlength=len(ENGINES)).tolist()
        busy = sums(self.costs.cycles, commands.engine, len(ENGINES))
        idle = sums(stalls(commands, self.times), commands.engine, len(ENGINES))
        return tuple(EngineUse(*row) for row in zip(ENGINES[:_CPU], counts, busy, idle))

    def _span_of_record(self) -> Ints:
        """Number of the span of each record; one more than the last for records of no span."""
        owner = np.full(len(self.decoded), len(self.spans), np.int64)
        for number, span in enumerate(self.spans):
            owner[span.first : span.first + span.count] = number
        return owner

    def _layers(self) -> tuple[LayerTime, ...]:
        owner, cost = self._span_of_record(), self.costs
        rows = [*self.spans, LayerSpan(_UNNAMED, "", 0, int((owner == len(self.spans)).sum()))]
        compute = np.where(self.decoded.commands.engine == _TPU, cost.cycles, 0)
        columns = (
            advances(self.times),
            compute,
            cost.cycles - compute,
            cost.macs,
            cost.loaded + cost.weights,
            cost.stored,
            cost.weights,
        )
        totals = zip(*(sums(column, owner, len(rows)) for column in columns))
        found = [LayerTime(row.name, row.kind, row.count, *total) for row, total in zip(rows, totals)]
        return tuple(found if found[-1].commands else found[:-1])

    @cached_property
    def _names(self) -> list[str]:
        """Mnemonic of every record."""
        names = ["cpu"] * len(self.decoded)
        parts = (
            (Engine.TPU, self.decoded.tpu, self.decoded.tpu_at),
            (Engine.GDMA, self.decoded.gdma, self.decoded.gdma_at),
        )
        for engine, columns, at in parts:
            for record, name in zip(at.tolist(), mnemonics(engine, columns)):
                names[record] = name
        return names

    def trace(self) -> str:
        times, commands = self.times, self.decoded.commands
        slices = [
            Slice(
                span.name,
                int(times.start[span.first : span.first + span.count].min()),
                int(times.end[span.first : span.first + span.count].max()),
                {"kind": span.kind, "commands": span.count},
            )
            for span in self.spans
        ]
        return chrome_trace(
            self.net,
            ENGINES,
            self.profile.clock_hz,
            commands=commands,
            times=times,
            labels=list(zip(self._names, self._facts())),
            layers=slices,
        )

    def _facts(self) -> list[dict[str, Any]]:
        """What the trace shows of each record."""
        cost = self.costs
        layers = [span.name for span in self.spans] + [_UNNAMED]
        columns = (cost.cycles, cost.macs, cost.loaded + cost.weights, cost.stored, self.decoded.commands.wait)
        rows = zip(self._span_of_record().tolist(), *(column.tolist() for column in columns))
        keys = ("cycles", "macs", "read", "written")
        facts = []
        for record, (span, *numbers, wait) in enumerate(rows):
            row: dict[str, Any] = {"record": record, "layer": layers[span]}
            row |= {key: number for key, number in zip(keys, numbers) if number}
            facts.append(row | ({"waits_for": wait} if wait >= 0 else {}))
        return facts

    def races(self, limit: int = 100) -> list[Race]:
        found = conflicts(self.decoded.commands, accesses(self.decoded), limit)
        return [Race(self._reference(one.first), self._reference(one.second), one.where) for one in found]

    def _reference(self, record: int) -> CommandRef:
        span = span_of(self.spans, record)
        engine = ENGINES[int(self.decoded.commands.engine[record])]
        return CommandRef(record, engine, self._names[record], self.spans[span].name if span >= 0 else "")
