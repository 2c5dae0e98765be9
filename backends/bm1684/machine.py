"""What the kernels of the BM1684 are constructed with: its facts, cycles and arithmetic (bm1684.md 6, 7, 8)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.cycles import CYCLES
from bmcompiler.backends.bm1684.ordered import depthwise_sums, largest
from bmcompiler.backends.bm1684.tables import OFFSETS, table
from bmcompiler.backends.lanes.arithmetic import Floats, FlushingUnits
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.tables import Table
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric import fp32
from bmcompiler.numeric.ordered import ordered_product


class Bm1684Arithmetic(FlushingUnits):
    """Float arithmetic of the execution units, their functions and their tables."""

    minimum = staticmethod(fp32.minimum)
    to_int = staticmethod(fp32.to_int)
    window_largest = staticmethod(largest)

    def series(self, x: Floats, table: Table, terms: int) -> Floats:
        """By Horner's rule from the last coefficient."""
        return fp32.taylor(x, _entries(table, terms))

    def lookup(self, indices: NDArray[np.int32], table: Table, entries: int) -> Floats:
        """The low bits of the index count."""
        return _entries(table, entries)[indices & (entries - 1)]

    def product(self, a: Floats, b: Floats, bias: Floats | None = None, old: Floats | None = None) -> Floats:
        """Products in turn to two accumulators; a bias or old results are added last (bm1684.md 6.3)."""
        sums = ordered_product(np.ascontiguousarray(a.T), np.ascontiguousarray(b), 2)
        before = bias if old is None else old
        return sums if before is None else fp32.add(sums, before)

    def window_sums(self, window: Window, x: Floats, weight: Floats) -> Floats:
        """Elements in turn to two accumulators (bm1684.md 6.2)."""
        return depthwise_sums(window, fp32.flush(window.prepare(x)), weight)


def _entries(name: Table, count: int) -> Floats:
    return table(OFFSETS[name], count)


MACHINE = LaneMachine(CHIP, CYCLES, Bm1684Arithmetic())
