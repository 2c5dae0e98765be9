"""What the execution units of the BM1684X compute of fp32, for recipes and kernels (bm1684x-vector.md 4 to 6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684x.recipe_tables import entries
from bmcompiler.backends.lanes.arithmetic import Floats, FlushingUnits, Words
from bmcompiler.backends.lanes.tables import Table
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric import fp32

_ACCUMULATORS = 2


class Bm1684xArithmetic(FlushingUnits):
    """One method per command, bit for bit; see `bmcompiler.backends.lanes.arithmetic.Arithmetic`."""

    def minimum(self, a: Floats, b: Floats) -> Floats:
        """a <= b ? a : b; denormals become zero."""
        return fp32.flush(fp32.minimum(a, b))

    def to_int(self, x: Floats) -> NDArray[np.int32]:
        """A NaN gives 0."""
        return np.where(np.isnan(x), np.int32(0), fp32.to_int(x))

    def series(self, x: Floats, table: Table, terms: int) -> Floats:
        """By Horner's rule from the last coefficient down to the constant term 0."""
        return fp32.horner(x, np.concatenate([np.zeros(1, np.float32), entries(table, terms)]))

    def lookup(self, indices: NDArray[np.int32], table: Table, entries_used: int) -> Floats:
        """The low bits of the index count."""
        return entries(table, entries_used)[indices & (entries_used - 1)]

    def window_sums(self, window: Window, x: Floats, weight: Floats) -> Floats:
        """Products in turn to two accumulators, which begin at -0 (bm1684x-cube.md 6)."""
        image, kernels = fp32.flush(window.prepare(x)), weight.T[:, None, :, None, None]
        shape = (*x.shape[:2], *window.out)
        sums = [np.full(shape, -0.0, np.float32) for _ in range(_ACCUMULATORS)]
        for number, tap in enumerate(window.taps(image)):
            turn = number % _ACCUMULATORS
            sums[turn] = fp32.add(sums[turn], fp32.multiply(tap, kernels[number]))
        return fp32.add(*sums)

    def window_largest(self, window: Window, x: Words, border: float) -> Words:
        """acc > v ? acc : v from the first element of the window on; denormals become zero."""
        image = fp32.flush(window.prepare(x, border))
        first, *others = window.taps(image)
        found = np.ascontiguousarray(first)
        for tap in others:
            found = np.where(found > tap, found, tap)
        return found
