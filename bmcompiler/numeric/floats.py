"""Arithmetic of the three float types on arrays as they lie in memory (bm1684x-vector.md 4.1).

fp32 is float32; fp16 and bf16 are their bits in uint16. One operation is one rounding to nearest even. fp32 and bf16
know no denormals, fp16 does. A NaN that fp16 or bf16 compute is 7FFF. Callers run under `np.errstate(all="ignore")`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmcompiler.numeric import fp32
from bmcompiler.numeric.arrays import Array, Floats, Mask
from bmcompiler.numeric.halves import BF16 as BF16_BITS
from bmcompiler.numeric.halves import FP16 as FP16_BITS
from bmcompiler.numeric.halves import Half

Stored = Array
Binary = Callable[[Stored, Stored], Stored]

_NAN = np.uint16(0x7FFF)
_MAGNITUDE = np.uint32(0x7FFF_FFFF)
_LEAST_BF16 = np.uint32(0x007F_C000)  # 2**-126 * (1 - 2**-9): from here on a number rounds to 2**-126
_ALL_VALUES = 1 << 16
_MANTISSA = {"fp16": 10, "bf16": 7}


@dataclass(frozen=True)
class FloatType:
    """One float type.

    Attributes:
        add, subtract, multiply: a op b, arrays that broadcast.
        number: stored elements as float32 for comparing, denormals as zero where the type has none.
        settle: a stored element that was chosen, not computed, as a result.
        mantissa: bits behind the point.
    """

    name: str
    add: Binary
    subtract: Binary
    multiply: Binary
    number: Callable[[Stored], Floats]
    settle: Callable[[Stored], Stored]
    mantissa: int

    def greater(self, a: Stored, b: Stored) -> Mask:
        """a > b; false for NaN."""
        return np.asarray(self.number(a) > self.number(b))

    def equal(self, a: Stored, b: Stored) -> Mask:
        """Whether the bits are the same: zeros of two signs differ, a NaN equals itself."""
        return np.asarray(_bits(a) == _bits(b))

    def less(self, a: Stored, b: Stored) -> Mask:
        """Neither a >= b nor the same bits: true when either is NaN."""
        return ~(self.number(a) >= self.number(b)) & ~self.equal(a, b)

    def maximum(self, a: Stored, b: Stored) -> Stored:
        """a > b ? a : b."""
        return self.settle(np.where(self.greater(a, b), a, b))

    def minimum(self, a: Stored, b: Stored) -> Stored:
        """b <= a ? b : a."""
        return self.settle(np.where(self.number(b) <= self.number(a), b, a))

    def distance(self, a: Stored, b: Stored) -> Stored:
        """a > b ? a - b : b - a."""
        return np.where(self.greater(a, b), self.subtract(a, b), self.subtract(b, a))

    def horner(self, x: Stored, coefficients: Stored) -> Stored:
        """c0 + c1*x + c2*x^2 + ..., from the last coefficient, every product and every sum rounded.

        `coefficients`: one or more along the first axis, each a number or an array that broadcasts against `x`.
        """
        if x.dtype == np.float32:
            return fp32.horner(x, coefficients)
        if coefficients.ndim == 1 and x.size > _ALL_VALUES:
            return self._series(np.arange(_ALL_VALUES, dtype=np.uint16), coefficients).take(x)
        return self._series(x, coefficients)

    def _series(self, x: Stored, coefficients: Stored) -> Stored:
        total: Stored = np.broadcast_to(coefficients[-1], x.shape)
        for c in coefficients[-2::-1]:
            total = self.add(self.multiply(total, x), np.atleast_1d(c))
        return total


def _bits(x: Stored) -> Stored:
    return x.view(np.uint32) if x.dtype == np.float32 else x


def _half(half: Half, narrow: Callable[[Floats], Stored], settle: Callable[[Stored], Stored]) -> FloatType:
    def rounded(operation: np.ufunc) -> Binary:
        return lambda a, b: _quiet(narrow(operation(half.widen(a), half.widen(b))))

    operations = (rounded(np.add), rounded(np.subtract), rounded(np.multiply))
    return FloatType(half.name, *operations, half.widen, settle, _MANTISSA[half.name])


def _quiet(bits: Stored) -> Stored:
    """`narrow` gives NaN its sign; arithmetic has none."""
    return np.where(bits == np.uint16(0xFFFF), _NAN, bits)


def _narrow_bf16(exact: Floats) -> Stored:
    """Numbers below 2**-126 are exact here where it matters: products have 16 bits, sums are multiples of 2**-133."""
    words = np.ascontiguousarray(exact).view(np.uint32).reshape(np.shape(exact))
    lost = (words & _MAGNITUDE) < _LEAST_BF16
    bits = BF16_BITS.narrow(exact)
    return np.where(lost, bits & np.uint16(0x8000), bits) if lost.any() else bits


def _flush_bf16(bits: Stored) -> Stored:
    return np.where((bits & np.uint16(0x7F80)) == 0, bits & np.uint16(0x8000), bits)


FP32 = FloatType("fp32", fp32.add, fp32.subtract, fp32.multiply, fp32.flush, fp32.flush, 23)
FP16 = _half(FP16_BITS, FP16_BITS.narrow, lambda bits: bits)
BF16 = _half(BF16_BITS, _narrow_bf16, _flush_bf16)
