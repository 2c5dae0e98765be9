"""Timing, trace and race check of one program, from what a chip's plugin knows of its commands. Knows no chip."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bmcompiler.bmodel.layers import LayerSpan
from bmcompiler.profile import CommandRef, EngineUse, LayerTime, Race, Timing
from bmcompiler.runtime.simulator.races import Accesses, conflicts
from bmcompiler.runtime.simulator.timing import CommandList, Ints, Schedule, advances, schedule, stalls, sums
from bmcompiler.runtime.simulator.trace import Slice, chrome_trace

_UNNAMED = "(unnamed)"
_ARITHMETIC = 0


@dataclass(frozen=True)
class Costs:
    """(n,) arrays over all records.

    Attributes:
        cycles: duration; macs: multiply-accumulates; ideal: cycles these would take with every multiplier at work.
        weights: bytes of coefficients read from global memory; loaded, stored: bytes of activations read and written.
    """

    cycles: Ints
    macs: Ints
    ideal: NDArray[np.float64]
    weights: Ints
    loaded: Ints
    stored: Ints


class Profile(Protocol):
    """Parameters of a timing model."""

    @property
    def clock_hz(self) -> float:
        """Clock whose cycles are counted."""

    def assumptions(self) -> tuple[str, ...]:
        """The parameters in words."""


@dataclass(frozen=True)
class Layer:
    """Records of one run of a layer."""

    name: str
    kind: str
    records: Ints


def layers_of(spans: Iterable[LayerSpan]) -> list[Layer]:
    """The layers of a program whose records are those that its model file counts."""
    return [Layer(span.name, span.kind, np.arange(span.first, span.first + span.count)) for span in spans]


class ProgramAnalysis(ABC):
    """See `bmcompiler.profile.Analysis`.

    Args:
        net: title of the trace.
        engines: names by engine number of `commands`; the first does the arithmetic, the last is the host.
        layers: in program order; records of none are put together at the end.
        numbers: how messages number the records.
    """

    def __init__(
        self,
        net: str,
        engines: Sequence[str],
        commands: CommandList,
        layers: Sequence[Layer],
        profile: Profile,
        numbers: Ints,
    ) -> None:
        self.net, self.engines, self.commands, self.layers = net, engines, commands, layers
        self.profile, self.numbers = profile, numbers

    @cached_property
    @abstractmethod
    def costs(self) -> Costs:
        """Cycles, bytes and multiply-accumulates of every record."""

    @cached_property
    @abstractmethod
    def names(self) -> list[str]:
        """Mnemonic of every record."""

    @abstractmethod
    def accesses(self) -> Accesses:
        """What the records read and write."""

    @abstractmethod
    def host_calls(self) -> int:
        """Calls of host functions."""

    @cached_property
    def times(self) -> Schedule:
        """Start and end of every record in cycles."""
        return schedule(self.commands, self.costs.cycles)

    @property
    def _host(self) -> int:
        return len(self.engines) - 1

    def timing(self) -> Timing:
        """Cycles in total, per engine and per layer, by the chip's cost model."""
        cost, cycles = self.costs, self.times.cycles
        return Timing(
            cycles,
            self.profile.clock_hz,
            self._engine_uses(),
            self._layer_times(),
            weights=int(cost.weights.sum()),
            loaded=int(cost.loaded.sum()),
            stored=int(cost.stored.sum()),
            macs=int(cost.macs.sum()),
            utilization=float(cost.ideal.sum()) / cycles if cycles else 0.0,
            cpu_records=self.host_calls(),
            assumptions=self.profile.assumptions(),
        )

    def _engine_uses(self) -> tuple[EngineUse, ...]:
        engine, count = self.commands.engine, len(self.engines)
        counts = np.bincount(engine, minlength=count).tolist()
        busy = sums(self.costs.cycles, engine, count)
        idle = sums(stalls(self.commands, self.times), engine, count)
        return tuple(EngineUse(*row) for row in zip(self.engines[: self._host], counts, busy, idle))

    @cached_property
    def _owner(self) -> Ints:
        """Number of the layer of each record; one more than the last for records of none."""
        owner = np.full(len(self.commands), len(self.layers), np.int64)
        for number, layer in enumerate(self.layers):
            owner[layer.records] = number
        return owner

    def _layer_times(self) -> tuple[LayerTime, ...]:
        """Records of the host without a layer are no part of any."""
        owner, cost = self._owner, self.costs
        unnamed = (owner == len(self.layers)) & (self.commands.engine != self._host)
        rows = [*self.layers, Layer(_UNNAMED, "", np.flatnonzero(unnamed))]
        compute = np.where(self.commands.engine == _ARITHMETIC, cost.cycles, 0)
        columns = (
            advances(self.times),
            compute,
            cost.cycles - compute,
            cost.macs,
            cost.loaded + cost.weights,
            cost.stored,
            cost.weights,
        )
        busy = np.array(sums(compute, owner, len(rows)))
        ideal = np.bincount(owner, cost.ideal, len(rows))
        shares = np.divide(ideal, busy, out=np.zeros(len(rows)), where=busy > 0).tolist()
        totals = zip(*(sums(column, owner, len(rows)) for column in columns), shares)
        found = [LayerTime(row.name, row.kind, len(row.records), *total) for row, total in zip(rows, totals)]
        return tuple(found if found[-1].commands else found[:-1])

    def trace(self) -> str:
        """The timeline as JSON for chrome://tracing or ui.perfetto.dev."""
        times = self.times
        slices = [
            Slice(
                layer.name,
                int(times.start[layer.records].min()),
                int(times.end[layer.records].max()),
                {"kind": layer.kind, "commands": len(layer.records)},
            )
            for layer in self.layers
        ]
        slices.sort(key=lambda one: one.start)
        return chrome_trace(
            self.net,
            self.engines,
            self.profile.clock_hz,
            commands=self.commands,
            times=times,
            labels=list(zip(self.names, self._facts())),
            layers=slices,
        )

    def _facts(self) -> list[dict[str, Any]]:
        """What the trace shows of each record."""
        cost, numbers = self.costs, self.numbers.tolist()
        layers = [layer.name for layer in self.layers] + [_UNNAMED]
        columns = (cost.cycles, cost.macs, cost.loaded + cost.weights, cost.stored, self.commands.wait)
        rows = zip(numbers, self._owner.tolist(), *(column.tolist() for column in columns))
        keys = ("cycles", "macs", "read", "written")
        facts = []
        for number, layer, *values, wait in rows:
            row: dict[str, Any] = {"record": number, "layer": layers[layer]}
            row |= {key: value for key, value in zip(keys, values) if value}
            facts.append(row | ({"waits_for": numbers[wait]} if wait >= 0 else {}))
        return facts

    def races(self, limit: int = 100) -> list[Race]:
        """Up to `limit` pairs of commands that touch the same bytes in no order."""
        found = conflicts(self.commands, self.accesses(), limit)
        return [Race(self._reference(one.first), self._reference(one.second), one.where) for one in found]

    def _reference(self, record: int) -> CommandRef:
        owner = int(self._owner[record])
        engine = self.engines[int(self.commands.engine[record])]
        layer = self.layers[owner].name if owner < len(self.layers) else ""
        return CommandRef(int(self.numbers[record]), engine, self.names[record], layer)
