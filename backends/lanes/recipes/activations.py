"""Activation functions and error function: one tile in, one tile out.

Functions by a cubic polynomial for each of 256 cells of a range: a lookup for each coefficient, and no division.
"""

from __future__ import annotations

import math
import struct
from functools import cache

from bmcompiler.backends.lanes.recipes.exponential import exp, exp_below_zero, expm1, inverse, sigmoid
from bmcompiler.backends.lanes.recipes.recorder import SIGN, Number, Recorder, Register
from bmcompiler.backends.lanes.tables import BYTE_VALUES, NORMAL, NORMAL_LIMIT, OwnTable, Table

_CELLS = 8
"""In an interval of length 1: 256 of them reach from -16 to 16."""
_NEAREST = 1.5 * 2.0**23 / _CELLS
"""Added to a number it gives the middle of its cell, whose number the low bits then hold."""
_LOWEST, _HIGHEST = -16.0, 15.9
"""Beyond, sigmoid is 0 or 1 but for the last bit; above 15.9375 numbers of cells would begin again."""


def sigmoid_by_cells(m: Recorder, x: Register) -> Register:
    """1 / (1 + e**-x), off by less than 1.5e-7; below -15.9375 it is 0."""
    limited = m.min(m.max(x, _LOWEST), _HIGHEST)
    cell = m.add(limited, _NEAREST)
    rest = m.sub(limited, m.sub(cell, _NEAREST))
    *lower, total = (OwnTable(_sigmoids(), 4 * BYTE_VALUES * power) for power in range(4))
    value = m.lookup(cell, total)
    for table in reversed(lower):
        value = m.mac(m.lookup(cell, table), value, rest)
    return value


@cache
def _sigmoids() -> bytes:
    """Four tables, by the power of what x lies above the middle of its cell: Taylor's coefficients of sigmoid."""
    rows = [_taylor(cell if cell < BYTE_VALUES // 2 else cell - BYTE_VALUES) for cell in range(BYTE_VALUES)]
    return b"".join(struct.pack(f"<{BYTE_VALUES}f", *column) for column in zip(*rows))


def _taylor(cell: int) -> tuple[float, float, float, float]:
    """Of a cell by its number as a signed byte; in the first one nothing is left."""
    if cell == -BYTE_VALUES // 2:
        return 0.0, 0.0, 0.0, 0.0
    value = 1 / (1 + math.exp(-cell / _CELLS))
    slope = value * (1 - value)
    return value, slope, slope * (1 - 2 * value) / 2, slope * (1 - 6 * slope) / 6


# Abramowitz and Stegun 7.1.26: erf(x) = 1 - t * polynomial(t) * e**-x**2, t = 1 / (1 + 0.3275911 x); off by 1.5e-7.
_ERF_SCALE = 0.3275911
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
# Series of erf(x) / x in x**2 for |x| up to 1/2, where the difference above would lose digits.
_ERF_NEAR = tuple(2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(7))
_ERF_LIMIT = 9.0  # e**-81 is far below the last bit of 1


def relu(m: Recorder, x: Register) -> Register:
    """The larger of x and 0."""
    return m.max(0.0, x)


def clip(m: Recorder, x: Register, low: float, high: float) -> Register:
    """min(max(x, low), high); infinite limits need no command."""
    if low > -math.inf:
        x = m.max(low, x)
    return m.min(high, x) if high < math.inf else x


def prelu(m: Recorder, x: Register, slope: Number) -> Register:
    """x > 0 ? x : slope * x."""
    return m.choose(x, 0.0, x, m.mul(x, slope))


def elu(m: Recorder, x: Register, alpha: float) -> Register:
    """x > 0 ? x : alpha * (e**x - 1)."""
    return m.choose(x, 0.0, x, m.mul(expm1(m, x, 0.0), alpha))


def selu(m: Recorder, x: Register, alpha: float, gamma: float) -> Register:
    """gamma * (x > 0 ? x : alpha * (e**x - 1))."""
    return m.mul(elu(m, x, alpha), gamma)


def celu(m: Recorder, x: Register, alpha: float) -> Register:
    """max(x, 0) + min(alpha * (e**(x / alpha) - 1), 0)."""
    below = m.mul(expm1(m, m.mul(x, 1 / alpha), 80.0), alpha)
    return m.add(m.min(below, 0.0), m.max(x, 0.0))


def swish(m: Recorder, x: Register, alpha: float) -> Register:
    """x * sigmoid(alpha * x)."""
    inner = x if alpha == 1 else m.mul(x, alpha)
    return m.mul(sigmoid_by_cells(m, inner) if m.own_tables else sigmoid(m, inner), x)


def mish(m: Recorder, x: Register) -> Register:
    """x * tanh(ln(1 + e**x)) = x * g / (g + 2) with g = e**x * (e**x + 2)."""
    power = exp(m, x, 20.0)
    grown = m.mul(m.add(power, 2.0), power)
    return m.mul(m.div(grown, m.add(grown, 2.0)), x)


def hard_sigmoid(m: Recorder, x: Register, alpha: float, beta: float) -> Register:
    """min(max(alpha * x + beta, 0), 1)."""
    return m.min(1.0, m.max(0.0, m.add(m.mul(x, alpha), beta)))


def hard_swish(m: Recorder, x: Register) -> Register:
    """x * min(max(x / 6 + 1/2, 0), 1)."""
    return m.mul(hard_sigmoid(m, x, 1 / 6, 0.5), x)


def softsign(m: Recorder, x: Register) -> Register:
    """x / (1 + |x|); beyond 1e30 it is x / |x|, which the chip could not divide."""
    limited = clip(m, x, -1e30, 1e30)
    return m.div(limited, m.add(m.abs(limited), 1.0))


def thresholded_relu(m: Recorder, x: Register, alpha: float) -> Register:
    """x > alpha ? x : 0."""
    return m.choose(x, alpha, x, 0.0)


def shrink(m: Recorder, x: Register, threshold: float, bias: float) -> Register:
    """x + bias below -threshold, x - bias above threshold, 0 between."""
    upper = m.choose(x, threshold, m.sub(x, bias), 0.0)
    return m.choose(-threshold, x, m.add(x, bias), upper)


def sign(m: Recorder, x: Register) -> Register:
    """-1, 0 or 1 as x is negative, zero or positive; 0 for NaN."""
    return m.sub(m.greater(x, 0.0), m.greater(0.0, x))


def erf(m: Recorder, x: Register) -> Register:
    """Error function, off by less than 5e-7."""
    size = m.min(m.abs(x), _ERF_LIMIT)
    square = m.mul(size, size)
    power = exp_below_zero(m, m.neg(square))
    t = inverse(m, m.add(m.mul(size, _ERF_SCALE), 1.0))
    far = m.mul(m.mul(m.polynomial(t, _ERF), t), power)
    square = m.mul(size, size) if m.word_sums else square  # again, where a plane to keep it is dearer
    near = m.mul(m.polynomial(m.min(square, 0.25), _ERF_NEAR), size)
    value = m.choose(size, 0.5, m.sub(1.0, far), near)
    return m.or_(value, m.and_(x, SIGN))


def gelu(m: Recorder, x: Register) -> Register:
    """x / 2 * (1 + erf(x / sqrt(2))), which is x times the normal distribution."""
    if m.constant_terms:
        limited = clip(m, x, -NORMAL_LIMIT, NORMAL_LIMIT)
        place = m.sub(m.mul(limited, limited), NORMAL_LIMIT**2 / 2)
        half = m.mul(m.series(place, Table.NORMAL_SERIES, len(NORMAL) - 1), limited)
        return m.mul(m.add(half, 0.5), x)
    inner = erf(m, m.mul(x, math.sqrt(0.5)))
    return m.mul(m.add(inner, 1.0), m.mul(x, 0.5))


def gelu_tanh(m: Recorder, x: Register) -> Register:
    """x / 2 * (1 + tanh(u)) = x * sigmoid(2 * u) with u = sqrt(2 / pi) * (x + 0.044715 * x**3)."""
    limited = clip(m, x, -1e10, 1e10)  # so that the cube stays finite
    cubic = m.mul(m.mul(m.mul(limited, limited), limited), 0.044715)
    return m.mul(sigmoid(m, m.mul(m.add(cubic, limited), 2 * math.sqrt(2 / math.pi))), x)
