"""What the bus of a chip is taken to do with short runs and stores when tilings are chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bmcompiler.codegen.tiling import Buffer


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
        return max(buffer.waiting, buffer.runs.outer * self.load_run, buffer.runs.lanes * self.load_lane_run)

    def store(self, buffer: Buffer) -> float:
        """Bytes of the time of storing, as of loads."""
        runs = buffer.runs
        counted = max(buffer.waiting, runs.outer * self.store_run, runs.lanes * self.store_lane_run)
        return counted * self.store_factor
