"""What the kernels of the BM1684 are constructed with: its facts, cycles and arithmetic (bm1684.md 6, 7, 8)."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.cycles import CycleTable, TileCycles
from bmcompiler.backends.bm1684.tables import OFFSETS, table
from bmcompiler.backends.bm1684.timing_profile import PROFILE, TimingProfile
from bmcompiler.backends.lanes.arithmetic import FlushingUnits
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.tables import Table
from bmcompiler.backends.lanes.window_sums import convolution, in_turn, largest
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric import fp32
from bmcompiler.numeric.arrays import Floats, Int32s
from bmcompiler.numeric.ordered import combine, ordered_product
from bmcompiler.numeric.sampled import convolution_sums


class Bm1684Arithmetic(FlushingUnits):
    """Float arithmetic of the execution units, their functions and their tables."""

    minimum = staticmethod(fp32.minimum)
    to_int = staticmethod(fp32.to_int)
    window_largest = staticmethod(largest)

    def series(self, x: Floats, table: Table, terms: int) -> Floats:
        """By Horner's rule from the last coefficient."""
        return fp32.taylor(x, _entries(table, terms))

    def lookup(self, indices: Int32s, table: Table, entries: int) -> Floats:
        """The low bits of the index count."""
        return _entries(table, entries)[indices & (entries - 1)]

    def product(self, a: Floats, b: Floats, bias: Floats | None = None, old: Floats | None = None) -> Floats:
        """Products in turn to two accumulators; a bias or old results are added last (bm1684.md 6.3)."""
        sums = ordered_product(np.ascontiguousarray(a.T), np.ascontiguousarray(b), 2)
        before = bias if old is None else old
        return sums if before is None else fp32.add(sums, before)

    def row_product(self, a: Floats, b: Floats, old: Floats | None = None) -> Floats:
        """The same by a convolution with windows of one pixel: in turn to four, of whole pairs (bm1684.md 6.1)."""
        odd = a.shape[1] % 2
        a, b = np.pad(a, ((0, 0), (0, odd))), np.pad(b, ((0, odd), (0, 0)))
        sums = ordered_product(np.ascontiguousarray(a.T), b, 4)
        return sums if old is None else fp32.add(sums, old)

    def window_sums(self, window: Window, x: Floats, weight: Floats) -> Floats:
        """Elements in turn to two accumulators (bm1684.md 6.2)."""
        return depthwise_sums(window, fp32.flush(window.prepare(x)), weight)


def float_convolution(window: Window, x: Floats, kernel: Floats, fast: bool = False) -> Floats:
    """(N, C, H, W) by (KH, KW, C rounded up to even, OC) in the chip's order, or in BLAS order when `fast`.

    There are four accumulators, and products run over rows, columns and channels of the kernel (bm1684.md 6.1).
    """
    padded = np.zeros((len(x), kernel.shape[2], *window.reach), np.float32)
    padded[:, : x.shape[1]] = window.prepare(x)
    rows, zero = kernel.reshape(-1, kernel.shape[3]), np.zeros((kernel.shape[3], 1), np.float32)

    def ordered(some: Floats, columns: Floats, bias: Floats) -> Floats:
        return ordered_product(some, columns, 4)

    def product(columns: Floats) -> Floats:
        return rows.T @ columns if fast else convolution_sums(rows, columns, zero, ordered)

    return convolution(window, padded, product, rows.shape[1], by_channel=False)


def depthwise_sums(window: Window, x: Floats, weight: Floats) -> Floats:
    """Kernel position k of (C, KH * KW) goes to accumulator k mod 2; `x` is prepared, neither has denormals."""
    if weight.shape[1] == 1:  # a single product is the result: no accumulator takes the sign off -0
        return fp32.multiply(next(window.taps(x)), weight[:, :, None])
    return combine(in_turn(window, x, weight, np.zeros((2, *x.shape[:2], *window.out), np.float32)))


def _entries(name: Table, count: int) -> Floats:
    return table(OFFSETS[name], count)


def machine_for(profile: TimingProfile | None = None) -> LaneMachine:
    """A new machine, which plans with a profile of the timing model; None is the chip's own."""
    return LaneMachine(CHIP, TileCycles(CycleTable(profile or PROFILE)), Bm1684Arithmetic())


def cycles_of(machine: LaneMachine) -> TileCycles:
    """The cycles of a machine of this chip, which has forms of commands that others have not."""
    assert isinstance(machine.cycles, TileCycles), "a machine of another chip"
    return machine.cycles
