"""Cycles of BM1684 commands: the one place that says them, for the planner and for the simulator's timing model.

The figures are those of bm1684.md 12, where the vendor's cycle estimates were sampled; what was not sampled there
follows the nearest kind of command that was, and is said in `TimingProfile.assumptions`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ceil, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import Eu, Task
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.units import Unit

Count = int | NDArray[np.int64]
"""A number of one command, or a column of those of many."""
Fact = bool | NDArray[np.bool_]

PIXELS = 16
"""Results of one channel that a lane makes at once."""
_PASS = 2  # cycles of one step of arithmetic on `PIXELS` words
_PARTS = 16  # of a cycle, in which cycles of convolutions are given: all of them are multiples
_FLOAT_TAP = ((1, 32), (3, 80))
"""(input channels, parts of a cycle) of a kernel position in fp32 that takes not a cycle for every two channels."""
_FLOAT_START, _INTEGER_START = 80, 160
_INTEGER_TAP = ((4, 109, 155), (8, 125, 155), (16, 83, 157))
"""(input channels up to, parts of a cycle of a kernel position, and per group of pixels) of int8.

Above, a cycle for every four channels.
"""
_AVERAGE_START = 5
_RSQRT_STEPS = 14  # arithmetic steps of bm1684.md 7.1
_DIVIDE_STEPS = _RSQRT_STEPS + 2
_TAYLOR_STEPS = 2  # per coefficient
LINEAR_STEPS = 2


@dataclass(frozen=True)
class TimingProfile:
    """Parameters of the model; cycles are counted by the TIU clock.

    Attributes:
        tiu_hz, gdma_hz: clocks of the vendor's profiler (bm1684.md 1).
        gdma_bytes_per_cycle: in each direction, of GDMA cycles; load_start, store_start: GDMA cycles before the first
            byte (bm1684.md 12). The memory of real boards may be slower.
        ddr_burst: bytes of the smallest memory access; every run of consecutive bytes is rounded up to it.
    """

    tiu_hz: float = CHIP.tiu_hz
    gdma_hz: float = CHIP.gdma_hz
    gdma_bytes_per_cycle: float = 53.4
    load_start: int = 137
    store_start: int = 45
    ddr_burst: int = 64

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"{field.name} must be positive, got {getattr(self, field.name)}")

    @property
    def clock_hz(self) -> float:
        """The clock in which cycles are counted: the TIU's."""
        return self.tiu_hz

    @property
    def bus_bytes_per_cycle(self) -> float:
        """GDMA at its best, for TIU cycles."""
        return self.gdma_bytes_per_cycle * self.gdma_hz / self.tiu_hz

    def assumptions(self) -> tuple[str, ...]:
        """The parameters, and what was not sampled, in words."""
        return (
            f"clocks {self.tiu_hz / 1e6:g} MHz (TIU, counted) and {self.gdma_hz / 1e6:g} MHz (GDMA)",
            f"GDMA {self.gdma_bytes_per_cycle:g} bytes per cycle after {self.load_start} cycles (loads) or "
            f"{self.store_start} (stores), in bursts of {self.ddr_burst} bytes; copies in global memory pay both ways",
            "matrix products like 1x1 convolutions, other steps like tensor arithmetic, "
            f"{_DIVIDE_STEPS} of them for a division, {_TAYLOR_STEPS} per term of a series",
            "host functions take no time",
        )


class CycleTable:
    """Cycles of commands under a profile.

    Arguments that are `Count` or `Fact` are those of one command, or columns of those of many; so is what is returned.
    `groups` counts how often `PIXELS` results of up to 64 channels of one image of words are made (`groups_of`).
    """

    def __init__(self, profile: TimingProfile) -> None:
        self.profile = profile

    # -- TIU -----------------------------------------------------------------------------------------------------------
    @staticmethod
    def groups_of(images: Count, channels: Count, pixels: Count) -> Count:
        """Groups of results; images: of words."""
        return images * _up(channels, CHIP.lanes) * _up(pixels, PIXELS)

    @staticmethod
    def word_images(images: Count, item: Count) -> Count:
        """Images of words that hold so many images of elements of `item` bytes (bm1684.md 4.2)."""
        return _up(images * item, 4)

    @staticmethod
    def element_wise(groups: Count, steps: Count = 1) -> Count:
        """Arithmetic, copies and tables on words; steps: see `steps_of`."""
        return groups * steps * _PASS

    @staticmethod
    def steps_of(task: Count, unit: Count, terms: Count = 0) -> Count:
        """Arithmetic steps per element; terms: of a series."""
        special = task == Task.SFU
        divides = ((task == Task.TENSOR) | (task == Task.SCALAR)) & (unit == Eu.DIVIDE)
        steps = _either(task == Task.LINEAR, LINEAR_STEPS, 1)
        steps = _either(divides, _DIVIDE_STEPS, steps)
        steps = _either(special & (unit == Eu.RSQRT), _RSQRT_STEPS, steps)
        return _either(special & (unit == Eu.TAYLOR), _TAYLOR_STEPS * terms, steps)

    @staticmethod
    def convolution(groups: Count, taps: Count, depth: Count, narrow: Fact) -> Count:
        """Dense convolutions; taps: positions of the kernel, depth: input channels, narrow: of bytes."""
        wide, start = _up(depth, 2) * _PARTS, _either(narrow, _INTEGER_START, _FLOAT_START)
        for count, cycles in _FLOAT_TAP:
            wide = _either(depth == count, cycles, wide)
        tap = _up(depth, 4) * _PARTS
        for most, cycles, begin in reversed(_INTEGER_TAP):
            tap = _either(depth <= most, cycles, tap)
            start = _either(narrow & (depth <= most), begin, start)
        return _up(groups * (taps * _either(narrow, tap, wide) + start), _PARTS)

    @staticmethod
    def matrix(groups: Count, depth: Count, narrow: Fact) -> Count:
        """Products of matrices; groups: of one row of the result times rows. depth: length of the sums."""
        tap = _either(narrow, _up(depth, 4), _up(depth, 2))
        return groups * (tap + _either(narrow, _INTEGER_START, _FLOAT_START) // _PARTS)

    @staticmethod
    def window(groups: Count, height: Count, width: Count, stride: Count, sums: Fact) -> Count:
        """A window per channel: pooling and depthwise convolutions.

        Args: stride: from column to column. sums: products are added up, else the largest is taken.
        """
        row = (stride + 1) * width - 1  # fits the samples: 5, 8 and 15 for 2x2 to 3x3
        return groups * (height * row + _AVERAGE_START * sums)

    @staticmethod
    def correlation(groups: Count, depth: Count) -> Count:
        """Correlations of vectors of `depth` elements."""
        return groups * depth * _PASS

    # -- GDMA ----------------------------------------------------------------------------------------------------------
    def transfer(self, loads: Fact, stores: Fact, nbytes: Count) -> Count:
        """A transfer of so many bytes, bursts and both directions counted, in TIU cycles.

        Args: loads, stores: whether it reads global memory, and whether it writes there; neither inside local memory.
        """
        profile = self.profile
        start = loads * profile.load_start + (stores | _not(loads)) * profile.store_start
        cycles = (start + nbytes / profile.gdma_bytes_per_cycle) * (profile.tiu_hz / profile.gdma_hz)
        return _whole(cycles)

    def bursts(self, run: Count) -> Count:
        """Bytes that cross the bus for a run of consecutive bytes."""
        return _up(run, self.profile.ddr_burst) * self.profile.ddr_burst


def _up(value: Count, step: int) -> Count:
    return -(-value // step)


def _not(fact: Fact) -> Fact:
    return fact ^ True


def _either(fact: Fact, yes: Count, no: Count) -> Count:
    """`yes` where `fact` holds, else `no`."""
    return no + fact * (yes - no)


def _whole(cycles: float | NDArray[np.floating[Any]]) -> Count:
    """`cycles` rounded up."""
    return np.ceil(cycles).astype(np.int64) if isinstance(cycles, np.ndarray) else ceil(cycles)


class TileCycles:
    """What kernels ask of a table (`LaneCycles`): cycles of commands on tiles of `item`-byte elements.

    `item` is that of the wider of the result and operand 0: so many images share a word.
    """

    def __init__(self, table: CycleTable) -> None:
        self.table = table
        self.bytes_per_cycle = table.profile.bus_bytes_per_cycle
        self.tile_cycles = int(2 * table.transfer(True, False, 0) + table.transfer(False, True, 0))

    def pass_cycles(self, shape: Shape, item: int = 4, steps: int = 1) -> int:
        """An element-wise command or a copy by the TIU; steps: see `CycleTable.steps_of`."""
        return int(self.table.element_wise(self._groups(shape, item), steps))

    @staticmethod
    def unit_steps(unit: Unit, terms: int = 0) -> int:
        """Steps of the arithmetic of a unit, as of the command that it becomes."""
        if unit is Unit.SERIES:
            return _TAYLOR_STEPS * terms
        return {Unit.RSQRT: _RSQRT_STEPS, Unit.DIVIDE: _DIVIDE_STEPS}.get(unit, 1)

    def window(self, shape: Shape, taps: tuple[int, int], stride: int, sums: bool, item: int = 4) -> int:
        """One window for each result of `shape`: `CycleTable.window`."""
        return int(self.table.window(self._groups(shape, item), *taps, stride, sums))

    def convolution(self, shape: Shape, taps: int, depth: int, item: int = 4) -> int:
        """A dense convolution that makes `shape`."""
        return int(self.table.convolution(self._groups(shape, item), taps, depth, narrow=item == 1))

    def matrix(self, shape: Shape, depth: int) -> int:
        """A product of fp32 matrices; shape: as which the result is stored (`kernels.matrices`)."""
        return int(self.table.matrix(self._groups(shape, 4), depth, narrow=False))

    def local_copy(self, shape: Shape, item: int = 4) -> int:
        """A transfer inside local memory."""
        return int(self.table.transfer(False, False, item * prod(shape)))

    def load(self, runs: int, run: int) -> int:
        """A transfer of so many runs of consecutive bytes from global memory."""
        return int(self.table.transfer(True, False, runs * self.table.bursts(run)))

    def store(self, runs: int, run: int) -> int:
        """A transfer of so many runs of consecutive bytes to global memory."""
        return int(self.table.transfer(False, True, runs * self.table.bursts(run)))

    def _groups(self, shape: Shape, item: int) -> Count:
        n, c, h, w = shape
        return self.table.groups_of(self.table.word_images(n, item), c, h * w)


PROFILE = TimingProfile()
CYCLES = TileCycles(CycleTable(PROFILE))
"""What kernels plan with."""
