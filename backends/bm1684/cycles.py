"""Cycles of BM1684 commands: the one place that says them, for the planner and for the simulator's timing model.

The parameters, their values and sources are those of a profile (`timing_profile`). What was neither timed on silicon
nor sampled from the vendor's estimates follows the nearest kind of command that was: matrix products of int8 those of
fp32, other steps tensor arithmetic, transfers inside local memory loads.
"""

from __future__ import annotations

from dataclasses import fields
from math import prod
from typing import Final

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import Eu, Task
from bmcompiler.backends.bm1684.timing_profile import TimingProfile
from bmcompiler.backends.lanes.counts import Fact, either, larger, up, whole
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.codegen.bus import Bus
from bmcompiler.numeric.arrays import Doubles, Ints

Count = int | Ints
"""A number of one command, or a column of those of many."""
Part = float | Doubles
"""The same, not whole."""

PIXELS = 16
"""Results of one channel that a lane makes at once."""
_PARTS = 1600  # of a cycle, in which cycles per group are given: all parameters are multiples, sums are exact
_FLOAT_TAP = ((1, 2), (3, 5))
"""(input channels, cycles) of a kernel position in fp32, as sampled, that takes not a cycle for every two channels."""
_INTEGER_TAP = ((4, 6.8125, 9.6875), (8, 7.8125, 9.6875), (16, 5.1875, 9.8125))
"""(input channels up to, cycles of a kernel position, and per group of pixels) of int8, as sampled.

Above, a cycle for every four channels.
"""
_RSQRT_STEPS = 14  # arithmetic steps of bm1684.md 7.1
_DIVIDE_STEPS = _RSQRT_STEPS + 2
_TAYLOR_STEPS = 2  # per coefficient
LINEAR_STEPS = 2
_PITCH = 64


class CycleTable:
    """Cycles of commands under a profile.

    Arguments that are `Count` or `Fact` are those of one command, or columns of those of many; so is what is returned.
    `groups` counts how often `PIXELS` results of up to 64 channels of one image of words are made (`groups_of`).
    """

    def __init__(self, profile: TimingProfile) -> None:
        self.profile = profile
        self.parts = {one.name: round(getattr(profile, one.name) * _PARTS) for one in fields(profile)}
        """Parameters in parts of a cycle, of those that are cycles."""

    # -- TIU -----------------------------------------------------------------------------------------------------------
    @staticmethod
    def groups_of(images: Count, channels: Count, pixels: Count) -> Count:
        """Groups of results; images: of words."""
        return images * up(channels, CHIP.lanes) * up(pixels, PIXELS)

    @staticmethod
    def word_images(images: Count, item: Count) -> Count:
        """Images of words that hold so many images of elements of `item` bytes (bm1684.md 4.2)."""
        return up(images * item, 4)

    def element_wise(self, groups: Count, steps: Count = 1, pair: Fact = False) -> Count:
        """Arithmetic, copies and tables on words; steps: see `steps_of`. pair: of two tensors."""
        parts = self.parts
        return self._started(groups * steps * either(pair, parts["arithmetic_pair"], parts["arithmetic"]))

    @staticmethod
    def steps_of(task: Count, unit: Count, terms: Count = 0) -> Count:
        """Arithmetic steps per element; terms: of a series."""
        special = task == Task.SFU
        divides = ((task == Task.TENSOR) | (task == Task.SCALAR)) & (unit == Eu.DIVIDE)
        steps = either(task == Task.LINEAR, LINEAR_STEPS, 1)
        steps = either(divides, _DIVIDE_STEPS, steps)
        steps = either(special & (unit == Eu.RSQRT), _RSQRT_STEPS, steps)
        return either(special & (unit == Eu.TAYLOR), _TAYLOR_STEPS * terms, steps)

    def convolution(
        self,
        groups: Count,
        taps: Count,
        depth: Count,
        narrow: Fact,
        stride: Count,
        old: Fact = False,
        shared: Part = 0.0,
    ) -> Count:
        """Dense convolutions.

        Args:
            taps: positions of the kernel. depth: input channels. narrow: of bytes. stride: from column to column.
            old: the old result is added. shared: share of input and weights in the same bank (`shared_banks`).
        """
        profile, parts = self.profile, self.parts
        wide, tap = up(depth, 2) * _PARTS, up(depth, 4) * _PARTS
        start = either(narrow, parts["conv_start_int8"], parts["conv_start"])
        if profile.vendor_samples:
            for count, cycles in _FLOAT_TAP:
                wide = either(depth == count, cycles * _PARTS, wide)
            for most, of_tap, begin in reversed(_INTEGER_TAP):
                tap = either(depth <= most, round(of_tap * _PARTS), tap)
                start = either(narrow & (depth <= most), round(begin * _PARTS), start)
        channels = either(narrow, tap, wide)
        channels = channels + whole(channels * shared * profile.conv_bank)
        beside = either(narrow, parts["conv_tap_int8"], parts["conv_tap"])
        position = channels + beside + parts["conv_step"] * (stride - 1)
        return self._started(groups * (taps * position + start + old * parts["conv_old"]))

    def matrix(self, groups: Count, depth: Count, narrow: Fact) -> Count:
        """Products of matrices; groups: of one row of the result times rows. depth: length of the sums."""
        parts = self.parts
        start = either(narrow, parts["matrix_start_int8"], parts["matrix_start"])
        return self._started(groups * (either(narrow, up(depth, 4), up(depth, 2)) * parts["matrix_step"] + start))

    def window(self, groups: Count, height: Count, width: Count, stride: Count, sums: Fact) -> Count:
        """A window per channel: pooling and depthwise convolutions.

        Args: stride: from column to column. sums: products are added up, else the largest is taken.
        """
        parts = self.parts
        row = width * (parts["window_tap"] + parts["window_step"] * (stride - 1))
        row = row - _PARTS * bool(self.profile.vendor_samples)  # fits the samples: 5, 8 and 15 for 2x2 to 3x3
        start = either(sums, parts["window_start"], parts["window_start_max"])
        return self._started(groups * (height * row + start))

    def correlation(self, groups: Count, depth: Count) -> Count:
        """Correlations of vectors of `depth` elements."""
        return self._started(groups * depth * self.parts["arithmetic"])

    def _started(self, parts: Count) -> Count:
        """Cycles of a command that computes for so many parts of cycles."""
        return up(parts + self.parts["start"], _PARTS)

    # -- GDMA ----------------------------------------------------------------------------------------------------------
    def transfer(self, loads: Fact, stores: Fact, read: Part, written: Part) -> Count:
        """A transfer, in TIU cycles.

        Args:
            loads, stores: whether it reads global memory, and whether it writes there; neither inside local memory.
            read, written: bytes of both ways as they count (`loaded`, `stored`); inside local memory what is read.
        """
        profile = self.profile
        start = loads * profile.load_start + (stores | (loads ^ True)) * profile.store_start
        seconds = start * 1e-9 + read / profile.load_rate + written / profile.store_rate
        return whole(seconds * profile.clock_hz)

    def loaded(self, nbytes: Count, runs: Count, lane_runs: Count) -> Part:
        """Bytes that count for a load; runs, lane_runs: of consecutive bytes in global memory, of words in lanes."""
        return self._counted(nbytes, runs, lane_runs, self.profile.load_run, self.profile.load_lane_run)

    def pitched(self, pitch: Count) -> Part:
        """What the bytes of a matrix count whose rows lie `pitch` bytes apart; 0: it has one."""
        return 1.0 + (pitch % _PITCH != 0) * (self.profile.matrix_pitch - 1.0)

    def stored(self, nbytes: Count, runs: Count, lane_runs: Count) -> Part:
        """Bytes that count for a store."""
        return self._counted(nbytes, runs, lane_runs, self.profile.store_run, self.profile.store_lane_run)

    def _counted(self, nbytes: Count, runs: Count, lane_runs: Count, run: int, lane_run: int) -> Part:
        burst = self.profile.ddr_burst
        bursts = runs * up(nbytes // either(runs > 0, runs, 1), burst) * burst if burst > 1 else nbytes
        return larger(larger(nbytes, bursts), larger(runs * run, lane_runs * lane_run))


class TileCycles(LaneCycles):
    """What kernels ask of a table (`LaneCycles`): cycles of commands on tiles of `item`-byte elements.

    `item` is that of the wider of the result and operand 0: so many images share a word. That input and weights of
    convolutions share no bank is left to those who place them.
    """

    def __init__(self, table: CycleTable) -> None:
        self.table: Final = table
        profile = table.profile
        self.bytes_per_cycle = profile.bus_bytes_per_cycle
        self.tile_cycles = int(2 * table.transfer(True, False, 0, 0) + table.transfer(False, True, 0, 0))
        runs = (profile.load_run, profile.load_lane_run, profile.store_run, profile.store_lane_run)
        self.bus = Bus(*runs, profile.load_rate / profile.store_rate)

    def pass_cycles(
        self, shape: Shape, item: int = 4, steps: int = 1, pair: bool = False, in_place: bool = False
    ) -> int:
        """An element-wise command or a copy by the TIU; steps: see `CycleTable.steps_of`. pair: of two tensors."""
        return int(self.table.element_wise(self._groups(shape, item), steps, pair))

    @staticmethod
    def unit_steps(unit: Unit, terms: int = 0) -> int:
        """Steps of the arithmetic of a unit, as of the command that it becomes."""
        if unit is Unit.SERIES:
            return _TAYLOR_STEPS * terms
        return {Unit.RSQRT: _RSQRT_STEPS, Unit.DIVIDE: _DIVIDE_STEPS}.get(unit, 1)

    def window(self, shape: Shape, taps: tuple[int, int], stride: int, sums: bool, item: int = 4) -> int:
        return int(self.table.window(self._groups(shape, item), *taps, stride, sums))

    def convolution(self, shape: Shape, taps: int, depth: int, item: int = 4, stride: int = 1) -> int:
        """A dense convolution that makes `shape`; stride: from column to column."""
        return int(self.table.convolution(self._groups(shape, item), taps, depth, item == 1, stride))

    def added_convolution(self, shape: Shape, depth: int) -> int:
        """One of fp32 with a window of one pixel, which adds to what the result held before."""
        return int(self.table.convolution(self._groups(shape, 4), 1, depth, False, 1, old=True))

    def shared_bank(self, shape: Shape, taps: int, depth: int, item: int = 4) -> int:
        if not self.table.profile.conv_bank:
            return 0
        groups, narrow = self._groups(shape, item), item == 1
        alone, shared = (self.table.convolution(groups, taps, depth, narrow, 1, shared=s) for s in (0.0, 1.0))
        return int(shared - alone)

    def matrix(self, shape: Shape, depth: int, biased: bool = False) -> int:
        """A product of fp32 matrices, a bias for nothing; shape: as which the result is stored (`kernels.matrices`)."""
        return int(self.table.matrix(self._groups(shape, 4), depth, narrow=False))

    def local_copy(self, shape: Shape, item: int = 4) -> int:
        return int(self.table.transfer(False, False, item * prod(shape), 0))

    def load(self, runs: int, run: int, lane_runs: int = 0) -> int:
        return int(self.table.transfer(True, False, self.table.loaded(runs * run, runs, lane_runs or runs), 0))

    def store(self, runs: int, run: int, lane_runs: int = 0) -> int:
        return int(self.table.transfer(False, True, 0, self.table.stored(runs * run, runs, lane_runs or runs)))

    def load_sections(self, shape: Shape, pitch: int) -> int:
        """See `MatrixCycles`."""
        rows, sections, _, width = shape
        runs = 1 if rows == 1 or pitch == sections * width else rows
        return self.load(runs, CHIP.word * prod(shape) // runs, rows * sections)

    def load_matrix(self, shape: Shape, outer: tuple[int, int], pitch: int) -> int:
        """See `MatrixCycles`."""
        runs = 1 if outer[0] == 1 or pitch == outer[1] else outer[0]
        counted = self.table.loaded(CHIP.word * prod(outer), runs, shape[0] * shape[1])
        counted *= self.table.pitched(CHIP.word * pitch * (outer[0] > 1))
        return int(self.table.transfer(True, False, counted, 0))

    def global_copy(self, runs: int, run: int) -> int:
        table = self.table
        return int(table.transfer(True, True, runs * run, table.stored(runs * run, runs, 0)))

    def _groups(self, shape: Shape, item: int) -> Count:
        n, c, h, w = shape
        return self.table.groups_of(self.table.word_images(n, item), c, h * w)
