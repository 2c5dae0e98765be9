"""What the execution units of the BM1684X compute of fp32, for recipes and kernels (bm1684x-vector.md 4 to 6)."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684x.ordered import in_turn
from bmcompiler.backends.bm1684x.recipe_tables import entries
from bmcompiler.backends.lanes.arithmetic import FlushingUnits, Words
from bmcompiler.backends.lanes.tables import Table
from bmcompiler.backends.lanes.window_sums import from_lowest
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric import fp32
from bmcompiler.numeric.arrays import Floats, Int32s
from bmcompiler.numeric.ordered import two_sums


class Bm1684xArithmetic(FlushingUnits):
    """One method per command, bit for bit; see `bmcompiler.backends.lanes.arithmetic.Arithmetic`."""

    def minimum(self, a: Floats, b: Floats) -> Floats:
        """a <= b ? a : b; denormals become zero."""
        return fp32.flush(fp32.minimum(a, b))

    def to_int(self, x: Floats) -> Int32s:
        """A NaN gives 0."""
        return np.where(np.isnan(x), np.int32(0), fp32.to_int(x))

    def series(self, x: Floats, table: Table, terms: int) -> Floats:
        """By Horner's rule from the last coefficient down to the constant term."""
        return fp32.horner(x, entries(table, terms + 1))

    def lookup(self, indices: Int32s, table: Table, entries_used: int) -> Floats:
        """The low bits of the index count."""
        return entries(table, entries_used)[indices & (entries_used - 1)]

    def product(self, a: Floats, b: Floats, bias: Floats | None = None, old: Floats | None = None) -> Floats:
        """Bias, old results and products in turn to two accumulators (bm1684x-cube.md 7)."""
        first = np.zeros((1, b.shape[1]), np.float32) if bias is None else bias.reshape(1, -1)
        before = None if old is None else np.ascontiguousarray(old.T)
        return two_sums(np.ascontiguousarray(b), np.ascontiguousarray(a.T), first.T, before).T

    def window_sums(self, window: Window, x: Floats, weight: Floats) -> Floats:
        """Products in turn to two accumulators, which begin at -0 (bm1684x-cube.md 6)."""
        empty = np.array([-0.0], np.float32)
        return in_turn(window, x, weight, (empty, empty))

    def window_largest(self, window: Window, x: Words, border: float) -> Words:
        """acc > v ? acc : v from the lowest number on; denormals become zero."""
        image = fp32.flush(window.prepare(x, border))
        first, *others = window.taps(image)
        found = from_lowest(first)
        for tap in others:
            found = np.where(found > tap, found, tap)
        return found
