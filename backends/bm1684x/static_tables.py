"""Static memory: the tables that every program finds there, computed from their formulas (bm1684x-vector.md 10).

A series is a row of coefficients from the constant term on. Sine, cosine and tangent take turns: x / (2 pi) and x / pi.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import ITEM_BYTES, Precision
from bmcompiler.numeric.arrays import Bytes, Doubles

FIRST_POWER, LAST_POWER = -103, 88
"""The exponents of the table of powers of e."""
_PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")
_ERF = (-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806)
_ERF_REST = (0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277)


@dataclass(frozen=True)
class StaticTable:
    """Where a table lies in static memory, in bytes, and what it holds."""

    offset: int
    words: int
    precision: Precision
    entry: Callable[[int], float | Fraction]

    @property
    def size(self) -> int:
        """Bytes of the table."""
        return self.words * ITEM_BYTES[self.precision]

    def values(self) -> Doubles:
        """The entries before they are rounded to the precision."""
        return np.array([float(self.entry(index)) for index in range(self.words)])

    def data(self) -> Bytes:
        """The table as it lies in static memory, little-endian."""
        values = self.values()
        if self.precision is Precision.INT32:
            return values.astype("<i4").view(np.uint8)
        if self.precision is Precision.FP16:
            return values.astype("<f4").astype("<f2").view(np.uint8)
        words = values.astype("<f4").view("<u4")
        if self.precision is Precision.BF16:
            return ((words + 0x7FFF + (words >> 16 & 1)) >> 16).astype("<u2").view(np.uint8)
        return words.view(np.uint8)


def _exp(k: int) -> Fraction:
    return Fraction(1, math.factorial(k))


def _log(k: int) -> Fraction:
    return Fraction((-1) ** (k + 1), k) if k else Fraction(0)


def _sine(k: int) -> Fraction:
    return (-1) ** k * (2 * _PI) ** (2 * k + 1) / math.factorial(2 * k + 1)


def _cosine(k: int) -> Fraction:
    return (-1) ** k * (2 * _PI) ** (2 * k) / math.factorial(2 * k)


def _tangent(k: int) -> Fraction:
    n = 2 * k + 2
    return abs(_bernoulli(n)) * 2**n * (2**n - 1) / math.factorial(n) * _PI ** (2 * k + 1)


@cache
def _bernoulli(n: int) -> Fraction:
    return Fraction(n == 0) - sum((math.comb(n, k) * _bernoulli(k) / (n - k + 1) for k in range(n)), Fraction(0))


_F32, _F16, _BF16 = Precision.FP32, Precision.FP16, Precision.BF16
EXP_TABLE = StaticTable(0x000, LAST_POWER - FIRST_POWER + 1, _F32, lambda k: math.exp(k + FIRST_POWER))
EXP = StaticTable(0x400, 32, _F32, _exp)
LOG = StaticTable(0x480, 64, _F32, _log)
ERF = StaticTable(0x580, 10, _F32, (_ERF + _ERF_REST).__getitem__)
"""ln(erfc(x) / t) + x * x = sum of ERF[k] * t**k with t = 1 / (1 + x / 2), for x >= 0."""
SERIAL = StaticTable(0x5C0, 64, Precision.INT32, float)
SIN = StaticTable(0x6C0, 32, _F32, _sine)
COS = StaticTable(0x740, 32, _F32, _cosine)
ARCSIN = StaticTable(0x7C0, 64, _F32, lambda k: Fraction(math.comb(2 * k, k), 4**k * (2 * k + 1)))
TAN = StaticTable(0x8C0, 32, _F32, _tangent)
EXP_FP16, EXP_BF16 = StaticTable(0x940, 16, _F16, _exp), StaticTable(0x980, 16, _BF16, _exp)
LOG_FP16, LOG_BF16 = StaticTable(0x9C0, 16, _F16, _log), StaticTable(0xA00, 16, _BF16, _log)
SIN_FP16, SIN_BF16 = StaticTable(0xA40, 16, _F16, _sine), StaticTable(0xA80, 16, _BF16, _sine)
COS_FP16, COS_BF16 = StaticTable(0xAC0, 16, _F16, _cosine), StaticTable(0xB00, 16, _BF16, _cosine)
ARCTAN = StaticTable(0xB40, 32, _F32, lambda k: Fraction((-1) ** k, 2 * k + 1))
TABLES = (
    *(EXP_TABLE, EXP, LOG, ERF, SERIAL, SIN, COS, ARCSIN, TAN, EXP_FP16, EXP_BF16, LOG_FP16, LOG_BF16),
    *(SIN_FP16, SIN_BF16, COS_FP16, COS_BF16, ARCTAN),
)


@cache
def static_memory() -> Bytes:
    """All of static memory, with 0 where no table lies. Do not write to it."""
    memory = np.zeros(CHIP.static_size, np.uint8)
    for table in TABLES:
        memory[table.offset : table.offset + table.size] = table.data()
    return memory
