"""What a timing model and a race check say about a compiled program, and how they are found.

A simulator plugin provides, in the entry-point group `bmcompiler.analyzers` under its target's name, a function
`analyze(model, program) -> Analysis`. The commands and reports of the core use nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from bmcompiler.registry import entry_points


@dataclass(frozen=True)
class EngineUse:
    """Cycles of one engine: `busy` at work, `stalled` waiting for another engine between its commands."""

    name: str
    commands: int
    busy: int
    stalled: int


@dataclass(frozen=True)
class LayerTime:
    """One run of records of a layer.

    Attributes:
        cycles: by how much these commands moved the end of the program; they sum up to the total.
        compute, transfer: busy cycles of the arithmetic engine, and of the others.
        loaded, stored: bytes read from and written to global memory; weights: bytes of coefficients among `loaded`.
        utilization: share of what the arithmetic engine could have multiplied in its `compute` cycles.
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


@dataclass(frozen=True)
class Timing:
    """Estimated time of one run of a program.

    Attributes:
        cycles: end of the last command; clock_hz: assumed clock.
        weights: bytes of coefficients read from global memory; loaded, stored: bytes of activations read and written.
        macs: multiply-accumulates; utilization: their share of what the arithmetic engine could do in `cycles`.
        cpu_records: calls of host functions, which take no time in this model.
        assumptions: one sentence for every parameter that the chip's documents do not give.
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

    @property
    def seconds(self) -> float:
        """Time at the assumed clock."""
        return self.cycles / self.clock_hz


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


Analyzer = Callable[[Any, int], Analysis]


def find_analyzer(target: str) -> Analyzer | None:
    """The function that analyses programs of `target`, None when no plugin offers one."""
    loader = entry_points("bmcompiler.analyzers").get(target)
    analyzer: Analyzer | None = None if loader is None else loader()
    return analyzer
