"""What a timing model and a race check say about a compiled program, and how they are found.

A simulator plugin provides, in the entry-point group `bmcompiler.analyzers` under its target's name, a function
`analyze(model, program) -> Analysis`, with a keyword argument `profile` when its timing model has parameters
(`bmcompiler.analysis.timing_profile`). The commands and reports of the core use nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from bmcompiler.plugins.registry import entry_points


@dataclass(frozen=True)
class EngineUse:
    """Cycles of one engine: `busy` at work, `stalled` waiting for another engine between its commands.

    `waits`: (engine that was waited for, cycles), the most first; together `stalled`.
    """

    name: str
    commands: int
    busy: int
    stalled: int
    waits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class LayerTime:
    """Commands of a layer: all that have its name and kind.

    Attributes:
        cycles: when the arithmetic engine works for the layer, or others do while that stands idle; they sum up to the
            total.
        compute, transfer: busy cycles of the arithmetic engine, and of the others.
        loaded, stored: bytes read from and written to global memory; weights: bytes of coefficients among `loaded`.
        macs: multiply-accumulates that the layer needs, by the model file; that its commands make, where it says none.
        utilization: their share of what the arithmetic engine could have multiplied in its `compute` cycles.
        stalled: cycles the arithmetic engine stood idle before commands of this layer.
        features: bytes of the net's inputs and outputs among `loaded` and `stored`.
        compulsory: bytes that any schedule moves: coefficients, and inputs and outputs of the net, each once.
        compute_bound, traffic_bound: cycles of the arithmetic that the layer needs with every unit at work, and of its
            compulsory bytes at full bandwidth.
        traffic_alone: cycles of its operands and results at full bandwidth, wherever they are; 0 = not known.
    """

    name: str
    kind: str
    commands: int
    cycles: int
    compute: int
    transfer: int
    macs: int
    loaded: int
    stored: int
    weights: int
    utilization: float = 0.0
    stalled: int = 0
    features: int = 0
    compulsory: int = 0
    compute_bound: float = 0.0
    traffic_bound: float = 0.0
    traffic_alone: float = 0.0

    @property
    def spill(self) -> int:
        """Bytes of intermediate values that cross the bus."""
        return self.loaded + self.stored - self.weights - self.features

    @property
    def bound(self) -> float:
        """The larger of both bounds, in cycles."""
        return max(self.compute_bound, self.traffic_bound)

    @property
    def ratio(self) -> float:
        """Time for one of the bound; 0 without a bound.

        The time is `cycles`, or what the layer keeps an engine busy: that is more where it overlaps other layers.
        Where it only hands on what others make it has no bound in the program: `traffic_alone` stands for that.
        """
        bound = self.bound or self.traffic_alone
        return max(self.cycles, self.compute, self.transfer) / bound if bound else 0.0


@dataclass(frozen=True)
class Timing:
    """Estimated time of one run of a program.

    Attributes:
        cycles: end of the last command; clock_hz: assumed clock.
        weights: bytes of coefficients read from global memory; loaded, stored: bytes of activations read and written.
        macs: those of the layers; utilization: their share of what the arithmetic engine could do in `cycles`.
        cpu_records: calls of host functions, which take no time in this model.
        assumptions: one sentence for every parameter that the chip's documents do not give.
        features: bytes of the net's inputs and outputs among `loaded` and `stored`.
        compulsory: bytes that any schedule moves: coefficients, and inputs and outputs of the net, each once.
        compute_bound: cycles of the layers' arithmetic with every unit at work.
        bus_bytes_per_cycle: full bandwidth of global memory, 0 = not known.
        peak_macs: multiply-accumulates per cycle with every unit at work, at the highest rate the program uses.
        computed_macs: those of the commands, which may compute rows twice, and padded channels.
    """

    cycles: int
    clock_hz: float
    engines: tuple[EngineUse, ...]
    layers: tuple[LayerTime, ...]
    weights: int
    loaded: int
    stored: int
    macs: int
    utilization: float
    cpu_records: int
    assumptions: tuple[str, ...] = ()
    features: int = 0
    compulsory: int = 0
    compute_bound: float = 0.0
    bus_bytes_per_cycle: float = 0.0
    peak_macs: float = 0.0
    computed_macs: int = 0

    @property
    def seconds(self) -> float:
        """Time at the assumed clock."""
        return self.cycles / self.clock_hz

    @property
    def spill(self) -> int:
        """Bytes of intermediate values that cross the bus, each time they do."""
        return self.loaded + self.stored - self.features

    @property
    def traffic_bound(self) -> float:
        """Cycles of the compulsory bytes at full bandwidth, 0 when that is not known."""
        return self.compulsory / self.bus_bytes_per_cycle if self.bus_bytes_per_cycle else 0.0

    @property
    def bound(self) -> float:
        """The roofline bound: no schedule takes fewer cycles than the arithmetic alone, or the bytes alone."""
        return max(self.compute_bound, self.traffic_bound)

    @property
    def ratio(self) -> float:
        """Cycles for one of the bound; 0 without a bound."""
        return self.cycles / self.bound if self.bound else 0.0


@dataclass(frozen=True)
class CommandRef:
    """A command in words: its record number, engine, mnemonic and layer ("" = unknown)."""

    index: int
    engine: str
    name: str
    layer: str

    def __str__(self) -> str:
        layer = f" of layer '{self.layer}'" if self.layer else ""
        return f"command {self.index} ({self.engine}, {self.name}{layer})"


@dataclass(frozen=True)
class Race:
    """Two commands on the same bytes, at least one writing, that no wait id orders. `where` says which bytes."""

    first: CommandRef
    second: CommandRef
    where: str

    def __str__(self) -> str:
        return f"{self.first} and {self.second} are not ordered, but {self.where}"


class Analysis(Protocol):
    """One program, decoded once. All methods raise SimulatorError for programs that cannot be decoded or would hang."""

    def timing(self) -> Timing:
        """Cycles in total, per engine and per layer."""

    def trace(self) -> str:
        """JSON for chrome://tracing or ui.perfetto.dev."""

    def races(self, limit: int = 100) -> list[Race]:
        """At most `limit` conflicts, in program order; none proves that every schedule the ids allow agrees."""


Analyzer = Callable[..., Analysis]
"""`analyze(model, program)`, with parameters of its timing model as `profile` where it has some."""


def find_analyzer(target: str) -> Analyzer | None:
    """The function that analyses programs of `target`, None when no plugin offers one."""
    loader = entry_points("bmcompiler.analyzers").get(target)
    analyzer: Analyzer | None = None if loader is None else loader()
    return analyzer


def analysis_of(target: str, model: Any, program: int = 0, profile: Any = None) -> Analysis | None:
    """The analysis of a program with its chip's timing profile, or with `profile`; None when no plugin offers one."""
    analyze = find_analyzer(target)
    if analyze is None:
        return None
    return analyze(model, program) if profile is None else analyze(model, program, profile=profile)
