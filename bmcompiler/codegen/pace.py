"""How fast a chip is taken to be when tilings are chosen."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bmcompiler.codegen.tiling import Buffer, Tiling


@dataclass(frozen=True)
class Bus:
    """What short runs cost, as bytes that they take at least, and stores, as times the bytes of loads."""

    load_run: int = 0
    load_lane_run: int = 0
    store_run: int = 0
    store_lane_run: int = 0
    store_factor: float = 1.0

    def load(self, buffer: Buffer) -> float:
        """Bytes of the time of loading."""
        return max(buffer.nbytes, buffer.runs.outer * self.load_run, buffer.runs.lanes * self.load_lane_run)

    def store(self, buffer: Buffer) -> float:
        """Bytes of the time of storing, as of loads."""
        runs = buffer.runs
        counted = max(buffer.nbytes, runs.outer * self.store_run, runs.lanes * self.store_lane_run)
        return counted * self.store_factor


@dataclass(eq=False)
class Pace:
    """How fast a chip is taken to be, and the tilings that were found best then.

    Attributes:
        bytes_per_cycle: what the bus moves in the time of one compute cycle.
        tile_cycles: start-up time of one tile's commands. bus: what short runs and stores cost.
    """

    bytes_per_cycle: float
    tile_cycles: int
    bus: Bus
    known: dict[Hashable, Tiling | None] = field(default_factory=dict)
