"""What kernels ask of the time that commands take: the planner's side of a chip's table of cycles."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.codegen.bus import Bus


class LaneCycles(Protocol):
    """Cycles of commands on tiles (n, c, h, w) of `item`-byte elements, under one timing profile.

    Attributes:
        bytes_per_cycle: that the bus moves in the time of a cycle of the execution units.
        tile_cycles: start of the transfers of a tile: of two loads and a store.
        bus: what short runs and stores cost.
    """

    bytes_per_cycle: float
    tile_cycles: int
    bus: Bus

    def pass_cycles(
        self, shape: Shape, item: int = 4, steps: int = 1, pair: bool = False, in_place: bool = False
    ) -> int:
        """An element-wise command or a copy by the execution units.

        Args: steps: `unit_steps`. pair: of two tensors. in_place: it reads what it overwrites, or one tensor twice.
        """

    def unit_steps(self, unit: Unit, terms: int = 0) -> int:
        """Steps of the arithmetic of a unit that works on each element alone; terms: of a series. By default one."""
        return 1

    def lookup(self, shape: Shape) -> int:
        """Words of a table for the words of a tile."""
        return self.pass_cycles(shape)

    def window(self, shape: Shape, taps: tuple[int, int], stride: int, sums: bool, item: int = 4) -> int:
        """One window for each result of `shape`; stride: from column to column. sums: else the largest is taken."""

    def convolution(self, shape: Shape, taps: int, depth: int, item: int = 4, stride: int = 1) -> int:
        """A dense convolution that makes `shape`; depth: input channels. stride: from column to column."""

    def shared_bank(self, shape: Shape, taps: int, depth: int, item: int = 4) -> int:
        """What it takes longer with input and weights in the same bank of local memory; by default nothing is known."""
        return 0

    def local_copy(self, shape: Shape, item: int = 4) -> int:
        """A transfer inside local memory."""

    def load(self, runs: int, run: int) -> int:
        """A transfer of so many runs of consecutive bytes from global memory."""

    def store(self, runs: int, run: int) -> int:
        """A transfer of so many runs of consecutive bytes to global memory."""

    def global_copy(self, runs: int, run: int) -> int:
        """A transfer inside global memory of so many runs of consecutive bytes, on one side at least."""


@runtime_checkable
class MatrixCycles(Protocol):
    """Of products of fp32 matrices in sections."""

    def matrix(self, shape: Shape, depth: int, biased: bool = False) -> int:
        """A product; shape: as which the result is stored. depth: length of the sums. biased: it adds a bias."""

    def load(self, runs: int, run: int, lane_runs: int = 0) -> int:
        """A transfer of so many runs of consecutive bytes from global memory; lane_runs: of words, 0 = as many."""

    def load_sections(self, shape: Shape, pitch: int) -> int:
        """Rows of sections of words, stored as `shape`, that lie one after the other, each row `pitch` words long."""

    def load_matrix(self, shape: Shape, outer: tuple[int, int], pitch: int) -> int:
        """A matrix of words, stored as `shape`, from so many rows and columns; rows lie `pitch` words apart."""
