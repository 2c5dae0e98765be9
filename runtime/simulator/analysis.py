"""Timing, trace and race check of one program, from what a chip's plugin knows of its commands. Knows no chip."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from bmcompiler.analysis.profile import CommandRef, EngineUse, LayerTime, Race, Timing
from bmcompiler.bmodel.layers import LayerSpan
from bmcompiler.numeric.arrays import Doubles, Ints, Mask
from bmcompiler.runtime.simulator.counters import bytes_in_use, rates
from bmcompiler.runtime.simulator.races import Accesses, conflicts
from bmcompiler.runtime.simulator.timing import CommandList, Schedule, schedule, shares, stalls, sums
from bmcompiler.runtime.simulator.trace import Counter, chrome_trace, layer_slices

_UNNAMED = "(unnamed)"
_ARITHMETIC = 0


@dataclass(frozen=True)
class Costs:
    """(n,) arrays over all records.

    Attributes:
        cycles: duration; macs: multiply-accumulates; ideal: cycles of the arithmetic with every unit at work.
        weights: bytes of coefficients read from global memory; loaded, stored: bytes of activations read and written.
        features: bytes of inputs and outputs of the net among these, None = not known.
        once: bytes of coefficients and features that no other record moves, too, None = not known (`traffic`).
    """

    cycles: Ints
    macs: Ints
    ideal: Doubles
    weights: Ints
    loaded: Ints
    stored: Ints
    features: Ints | None = None
    once: Ints | None = None


class Profile(Protocol):
    """Parameters of a timing model."""

    @property
    def clock_hz(self) -> float:
        """Clock whose cycles are counted."""

    @property
    def bus_bytes_per_cycle(self) -> float:
        """Full bandwidth of global memory, in bytes per counted cycle."""

    def assumptions(self) -> tuple[str, ...]:
        """The parameters in words."""


@dataclass(frozen=True)
class Layer:
    """Records of a layer, and what it needs; `macs` is None where the model file does not say it (`LayerSpan`)."""

    name: str
    kind: str
    records: Ints
    macs: int | None = None
    nbytes: int = 0


def layers_of(*engines: tuple[Iterable[LayerSpan], Ints]) -> list[Layer]:
    """The layers of a program in order of their first records, from each engine's spans and numbers of its records.

    All records of one name and kind make a layer: its weights may be loaded while the layers before compute.
    """
    parts: dict[tuple[str, str], list[Ints]] = defaultdict(list)
    needs: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for spans, records in engines:
        for span in spans:
            key = span.name, span.kind
            parts[key].append(records[span.first : span.first + span.count])
            if span.macs is not None:
                needs[key].append((span.macs, span.nbytes or 0))
    layers = [
        Layer(*key, np.sort(np.concatenate(records)), *map(sum, zip(*needs[key]))) for key, records in parts.items()
    ]
    return sorted(layers, key=lambda layer: int(layer.records[0]))


class ProgramAnalysis(ABC):
    """See `bmcompiler.analysis.profile.Analysis`.

    Args:
        net: title of the trace.
        engines: names by engine number of `commands`; the first does the arithmetic, the last is the host where a chip
            does not say otherwise.
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

    @property
    def _counted(self) -> Mask:
        """Of each record whether it is a command, or work of the host."""
        return np.ones(len(self.commands), bool)

    def timing(self) -> Timing:
        """Cycles in total, per engine and per layer, by the chip's cost model."""
        cost, cycles, layers = self.costs, self.times.cycles, self._layer_times()
        useful = sum(layer.utilization * layer.compute for layer in layers)
        return Timing(
            cycles,
            self.profile.clock_hz,
            self._engine_uses(),
            layers,
            weights=int(cost.weights.sum()),
            loaded=int(cost.loaded.sum()),
            stored=int(cost.stored.sum()),
            macs=sum(layer.macs for layer in layers),
            utilization=useful / cycles if cycles else 0.0,
            cpu_records=self.host_calls(),
            assumptions=self.profile.assumptions(),
            features=int(_known(cost.features, cost).sum()),
            compulsory=int(_known(cost.once, cost).sum()),
            compute_bound=sum(layer.compute_bound for layer in layers),
            bus_bytes_per_cycle=self.profile.bus_bytes_per_cycle,
            peak_macs=_peak(cost),
            computed_macs=int(cost.macs.sum()),
        )

    @cached_property
    def _idle(self) -> Ints:
        return stalls(self.commands, self.times)

    def _engine_uses(self) -> tuple[EngineUse, ...]:
        engine, count = self.commands.engine, len(self.engines)
        counts = np.bincount(engine[self._counted], minlength=count).tolist()
        busy = sums(self.costs.cycles, engine, count)
        idle = sums(self._idle, engine, count)
        rows = zip(self.engines, counts, busy, idle, map(self._waits, range(count)))
        return tuple(EngineUse(*row) for number, row in enumerate(rows) if number != self._host)

    def _waits(self, engine: int) -> tuple[tuple[str, int], ...]:
        """For whom an engine stood idle; what no command of an engine delayed, a barrier of the host did."""
        wait = self.commands.wait
        named = (wait >= 0) & (self.times.end[wait] == self.times.start)
        blamed = np.where(named, self.commands.engine[wait], self._host)
        own = self.commands.engine == engine
        lost = sums(self._idle[own], blamed[own], len(self.engines))
        return tuple(sorted(((n, c) for n, c in zip(self.engines, lost) if c), key=lambda pair: -pair[1]))

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
        arithmetic = self.commands.engine == _ARITHMETIC
        compute = np.where(arithmetic, cost.cycles, 0)
        columns = {
            "cycles": shares(self.commands, self.times),
            "compute": compute,
            "transfer": cost.cycles - compute,
            "macs": cost.macs,
            "loaded": cost.loaded + cost.weights,
            "stored": cost.stored,
            "weights": cost.weights,
            "stalled": np.where(arithmetic, self._idle, 0),
            "features": _known(cost.features, cost),
            "compulsory": _known(cost.once, cost),
        }
        totals = [sums(column, owner, len(rows)) for column in columns.values()]
        useful = np.bincount(owner, cost.ideal * (cost.macs > 0), len(rows)).tolist()
        ideal = np.bincount(owner, cost.ideal, len(rows)).tolist()
        found = [
            self._layer_time(row, dict(zip(columns, values)), *work)
            for row, *work, values in zip(rows, useful, ideal, zip(*totals))
        ]
        return tuple(found if found[-1].commands else found[:-1])

    def _layer_time(self, layer: Layer, totals: dict[str, int], useful: float, ideal: float) -> LayerTime:
        """Of what commands multiply (`useful` of `ideal` cycles at full rate) only what the layer needs counts."""
        needed, computed = layer.macs, totals["macs"]
        spared = useful * (1 - needed / computed) if needed and needed < computed else 0.0
        return LayerTime(
            layer.name,
            layer.kind,
            len(layer.records),
            **totals | {"macs": computed if needed is None else needed},
            utilization=(useful - spared) / totals["compute"] if totals["compute"] else 0.0,
            compute_bound=ideal - spared,
            traffic_bound=totals["compulsory"] / self.profile.bus_bytes_per_cycle,
            traffic_alone=layer.nbytes / self.profile.bus_bytes_per_cycle,
        )

    def trace(self) -> str:
        """The timeline as JSON for chrome://tracing or ui.perfetto.dev."""
        layers = [*((layer.name, layer.kind) for layer in self.layers), (_UNNAMED, "")]
        moved = self.costs.weights + self.costs.loaded + self.costs.stored
        accesses = self.accesses()
        return chrome_trace(
            self.net,
            self.engines,
            self.profile.clock_hz,
            commands=self.commands,
            times=self.times,
            labels=list(zip(self.names, self._facts())),
            layers=layer_slices(layers, self._owner, self.commands, self.times),
            counters=(
                Counter("local memory in use", "bytes per lane", *bytes_in_use(accesses, self.times)),
                Counter("bus use", "MB/s", *rates(moved, self.times, self.profile.clock_hz)),
            ),
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
        return [Race(self.reference(one.first), self.reference(one.second), one.where) for one in found]

    def reference(self, record: int) -> CommandRef:
        """A record in words."""
        owner = int(self._owner[record])
        engine = self.engines[int(self.commands.engine[record])]
        layer = self.layers[owner].name if owner < len(self.layers) else ""
        return CommandRef(int(self.numbers[record]), engine, self.names[record], layer)


def _known(values: Ints | None, cost: Costs) -> Ints:
    return np.zeros_like(cost.cycles) if values is None else values


def _peak(cost: Costs) -> float:
    """The highest rate of multiply-accumulates with every unit at work."""
    working = (cost.macs > 0) & (cost.ideal > 0)
    return float((cost.macs[working] / cost.ideal[working]).max()) if working.any() else 0.0
