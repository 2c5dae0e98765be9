"""What a chip computes, bit for bit: the arithmetic that evaluation of shared kernels and recipes asks for."""

from __future__ import annotations

from typing import Protocol

from bmcompiler.backends.lanes.tables import Table
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric import fp32
from bmcompiler.numeric.arrays import Array, Floats, Int32s, Mask

Words = Array


class Arithmetic(Protocol):
    """Operations on arrays of float32, one method per command; arrays broadcast as numpy's do.

    Callers run under `np.errstate(all="ignore")`: overflow and NaN are ordinary results.
    """

    def add(self, a: Floats, b: Floats) -> Floats:
        """a + b."""

    def subtract(self, a: Floats, b: Floats) -> Floats:
        """a - b."""

    def multiply(self, a: Floats, b: Floats) -> Floats:
        """a * b."""

    def divide(self, a: Floats, b: Floats) -> Floats:
        """a / b."""

    def maximum(self, a: Floats, b: Floats) -> Floats:
        """The larger one of two floats; of NaN and zeros what the chip makes of them."""

    def minimum(self, a: Floats, b: Floats) -> Floats:
        """The smaller one."""

    def greater(self, a: Floats, b: Floats) -> Mask:
        """a > b."""

    def rsqrt(self, x: Floats) -> Floats:
        """1 / sqrt(x)."""

    def to_int(self, x: Floats) -> Int32s:
        """int32 of a float, cut towards zero, saturating."""

    def nearest_exponent(self, bits: Int32s) -> Int32s:
        """Biased exponent of the nearest power of two of the floats in these bits."""

    def series(self, x: Floats, table: Table, terms: int) -> Floats:
        """c[0] * x + c[1] * x**2 + ... with the first `terms` coefficients of a table."""

    def lookup(self, indices: Int32s, table: Table, entries: int) -> Floats:
        """Entry index mod `entries` of a table, which is a power of two."""

    def product(self, a: Floats, b: Floats, bias: Floats | None = None, old: Floats | None = None) -> Floats:
        """a @ b for (M, K) and (K, N), with a bias (N) and added to old results (M, N), in the chip's order."""

    def window_sums(self, window: Window, x: Floats, weight: Floats) -> Floats:
        """Sums over windows (N, C, OH, OW) of x (N, C, H, W) times weights (C, KH * KW), in the chip's order."""

    def window_largest(self, window: Window, x: Words, border: float) -> Words:
        """Maximum over each window; positions outside x count as `border`."""


class FlushingUnits:
    """The methods of `Arithmetic` that are the same on all chips whose units round to nearest and flush denormals."""

    add = staticmethod(fp32.add)
    subtract = staticmethod(fp32.subtract)
    multiply = staticmethod(fp32.multiply)
    divide = staticmethod(fp32.divide)
    maximum = staticmethod(fp32.maximum)
    rsqrt = staticmethod(fp32.rsqrt)
    nearest_exponent = staticmethod(fp32.nearest_exponent)

    def greater(self, a: Floats, b: Floats) -> Mask:
        """a > b; denormals compare as zero."""
        return fp32.flush(a) > fp32.flush(b)
