"""What kernels of the BM1684X ask of its table of cycles (`LaneCycles`): commands on tiles of `item`-byte elements."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Precision
from bmcompiler.backends.bm1684x.cycles import DIVIDE_STEPS, RSQRT_STEPS, RUN, CycleTable
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.codegen.bus import Bus
from bmcompiler.codegen.tiling import Buffer

_KINDS = {1: Precision.INT8, 2: Precision.FP16, 4: Precision.FP32}


class LaneBus(Bus):
    """Transfers by a table: a run ends with its lane, and whole lanes may move as sections of a matrix.

    Plans ask for the same sizes again and again, so that what they take is remembered here.
    """

    def __init__(self, table: CycleTable) -> None:
        super().__init__()
        self._bytes_per_cycle = table.profile.strided_bytes_per_cycle
        self._moving = lru_cache(maxsize=1 << 14)(partial(_moving, table))

    def load(self, buffer: Buffer) -> float:
        return self._counted(buffer, True)

    def store(self, buffer: Buffer) -> float:
        return self._counted(buffer, False)

    def _counted(self, buffer: Buffer, loads: bool) -> float:
        return self._moving(buffer.waiting, *buffer.runs, loads) * self._bytes_per_cycle


def _moving(table: CycleTable, nbytes: int, outer: int, lanes: int, loads: bool) -> int:
    """Cycles of so many bytes in runs of global memory and of lanes."""
    cycles = int(table.tensor(nbytes, max(1, nbytes // max(outer, lanes)), loads, not loads))
    return min(cycles, int(table.wide(lanes, -(-nbytes // lanes), loads))) if outer <= lanes else cycles


class TileCycles(LaneCycles):
    """Under the profile of `table`; that operands of one command share no bank is left to those who place them."""

    def __init__(self, table: CycleTable) -> None:
        self.table: Final = table
        self.bus = LaneBus(table)
        self.bytes_per_cycle = table.profile.strided_bytes_per_cycle
        self.tile_cycles = 2 * self.load(1, RUN) + self.store(1, RUN)

    def pass_cycles(
        self, shape: Shape, item: int = 4, steps: int = 1, pair: bool = False, in_place: bool = False
    ) -> int:
        """An element-wise command or a copy by the TIU; what takes several steps has time for a shared bank."""
        return int(self.table.element_wise(self._vectors(shape, item), in_place and steps == 1) * steps)

    @staticmethod
    def unit_steps(unit: Unit, terms: int = 0) -> int:
        """Steps for each vector."""
        if unit is Unit.SERIES:
            return terms + 1
        return {Unit.RSQRT: RSQRT_STEPS, Unit.DIVIDE: DIVIDE_STEPS}.get(unit, 1)

    def lookup(self, shape: Shape) -> int:
        """Words of a table for the words of a tile, whose indices are cut to bytes first."""
        return self.pass_cycles(shape) + self.gather(shape)

    def window(self, shape: Shape, taps: tuple[int, int], stride: int, sums: bool, item: int = 4) -> int:
        return int(self.table.window(self._vectors(shape, item), taps[0] * taps[1], stride))

    def convolution(self, shape: Shape, taps: int, depth: int, item: int = 4, stride: int = 1) -> int:
        n, c, h, w = shape
        return int(self.table.convolution(n, c, h * w, taps, depth, _KINDS[item]))

    def matrix(self, shape: Shape, depth: int, biased: bool = False) -> int:
        """A product of fp32 matrices; shape: as which the result is stored."""
        rows, sections, _, width = shape
        return int(self.table.matrix(rows, depth, sections, width, biased))

    def row_matrix(self, shape: Shape, depth: int, item: int) -> int:
        """A product of bytes or 16-bit floats; shape: (1, rows, 1, columns) of the result, rows in lanes."""
        _, rows, _, columns = shape
        return int(self.table.row_matrix(rows, depth, columns, _KINDS[item]))

    def gather(self, shape: Shape) -> int:
        """An element of a table of each lane for each element of `shape`."""
        n, c, h, w = shape
        return int(self.table.gather(n, c, h * w))

    def local_copy(self, shape: Shape, item: int = 4) -> int:
        total = item * shape[0] * shape[1] * shape[2] * shape[3]
        return int(self.table.tensor(total, total, False, False))

    def load(self, runs: int, run: int, lane_runs: int = 0) -> int:
        """A transfer of so many runs of consecutive bytes from global memory, however it lies in lanes."""
        return int(self.table.tensor(runs * run, run, True, False))

    def store(self, runs: int, run: int, lane_runs: int = 0) -> int:
        return int(self.table.tensor(runs * run, run, False, True))

    def load_sections(self, shape: Shape, pitch: int) -> int:
        """Rows of sections of words, stored as `shape`: as matrices (`build.as_sections`) where that is quicker."""
        rows, sections, _, width = shape
        size, most = 4 * width, CHIP.most_size // width
        strided = int(self.table.tensor(rows * sections * size, size, True, False))
        if not most or int(self.table.wide(rows * sections, size, True)) >= strided:
            return strided
        counts = (min(most, sections - first) for first in range(0, sections, most))
        return sum(int(self.table.wide(rows * count, size, True)) for count in counts)

    def load_matrix(self, shape: Shape, outer: tuple[int, int], pitch: int) -> int:
        """A matrix of words, stored as `shape`, whatever its rows and columns outside."""
        return int(self.table.wide(shape[0] * shape[1], 4 * shape[3], True))

    def global_copy(self, runs: int, run: int) -> int:
        return self.load(runs, run) + self.store(runs, run)

    def _vectors(self, shape: Shape, item: int) -> int:
        n, c, h, w = shape
        return int(self.table.vectors(n, c, h * w, item))
