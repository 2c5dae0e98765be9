"""Powers of e and logarithms, and what is built from them."""

from __future__ import annotations

import math

from bmcompiler.backends.lanes.recipes.recorder import Number, Recorder, Register
from bmcompiler.backends.lanes.tables import POWER_OF_TWO, Table

_LOG_TERMS = 32
_HALF_TERMS, _NEAREST_TERMS, _CUT_TERMS = 7, 8, 12
"""Terms of the series of e**r - 1 for r of at most ln 2 / 2, 1/2 and 1: they leave out less than 2**-26 of e**r."""
_LOWEST = -103.0  # the first power in the table; it and what lies below come out as 0
_OVERFLOWING = 88.99999  # the last power in the table is 88
_NEAREST_TOP = 88.4999  # what is nearest to the last power in the table
FINITE = 88.0
"""Up to here powers are so small that the chip can still divide by them."""
_WHOLE = 1.5 * 2.0**23
"""Added to a number it gives the nearest integer, which the low bits then hold."""
_LARGEST, _SMALLEST = 3.4028234663852886e38, 2.0**-126
_ONE, _MANTISSA = 0x3F80_0000, 0x007F_FFFF
_EXPONENT_BIAS, _MANTISSA_BITS = 127, 23
_NOTHING = -88.0
"""Whose exponent is all zeros, so that this and what lies below come out as 0."""
_LOG2_E = 1 / math.log(2)
_LN_2_HIGH = 355 / 512
"""ln 2 in so few bits that its products by whole numbers up to 127 are exact."""
_RECIPROCAL, _NEWTON_STEPS = 0x7EF3_11C7, 3
"""Less the bits of x, those of a number near 1 / x; three steps leave the rounding of the last one."""
_NAN, _NO_LOGARITHM = float("nan"), float("-inf")
_HIGHEST_MANTISSA = 4 / 3  # logarithms are series around 1, of 2/3 to 4/3


def _split(m: Recorder, x: Number, top: float, limited: bool = False) -> tuple[Register, Register]:
    """(e**r - 1, e**i), i a whole number near min(x, top) and r the rest; limited: x is at most `top` anyway.

    The nearest whole number leaves a rest whose series is shorter, but above 88.5 the table has no power for it.
    """
    x = m.max(x if limited else m.min(x, top), _LOWEST)
    if top > _NEAREST_TOP:
        whole = m.to_int(x)
        rest = m.sub(x, m.lookup(whole, Table.INTEGERS))
        return m.series(rest, Table.EXP_SERIES, _CUT_TERMS), m.lookup(whole, Table.POWERS_OF_E)
    whole = m.add(x, _WHOLE)
    power = m.lookup(whole, Table.POWERS_OF_E)
    rest = m.sub(x, m.sub(whole, _WHOLE))
    return m.series(rest, Table.EXP_SERIES, _NEAREST_TERMS), power


def exp(m: Recorder, x: Number, top: float = _OVERFLOWING) -> Register:
    """e**x; x above `top` counts as `top`, by default it gives infinity where the float function does."""
    part, power = _split(m, x, top)
    return m.mul(m.add(part, 1.0), power)


def exp_below_zero(m: Recorder, x: Register) -> Register:
    """e**x for x that is at most 0; 0 where it is less than any normal number."""
    if m.constant_terms:
        return _power_of_two(m, m.max(m.mul(x, _LOG2_E), -float(_EXPONENT_BIAS)))
    if m.word_sums:
        return _power_below_zero(m, x)
    part, power = _split(m, x, 0.0, limited=True)
    return m.mul(m.add(part, 1.0), power)


def _exp_of_negative(m: Recorder, x: Number, top: float) -> Register:
    """e**-x, -x above `top` counts as `top`: `exp` without a step for the sign."""
    x = m.min(m.max(x, -top), -_LOWEST)
    whole = m.sub(_WHOLE, x)
    power = m.lookup(whole, Table.POWERS_OF_E)
    rest = m.sub(m.sub(_WHOLE, whole), x)
    return m.mul(m.add(m.series(rest, Table.EXP_SERIES, _NEAREST_TERMS), 1.0), power)


def expm1(m: Recorder, x: Number, top: float = _OVERFLOWING) -> Register:
    """e**x - 1, exact also near 0."""
    part, power = _split(m, x, top)
    return m.add(m.mul(part, power), m.sub(power, 1.0))


def log_of_normal(m: Recorder, x: Register) -> Register:
    """Natural logarithm of normal positive numbers.

    Unlike the vendor's recipe it takes the mantissa by its bits instead of dividing by the power of two: exact near 1.
    """
    mantissa = m.or_(m.and_(x, _MANTISSA), _ONE)
    near_one = m.choose(mantissa, _HIGHEST_MANTISSA, m.mul(mantissa, 0.5), mantissa)
    series = m.series(m.sub(near_one, 1.0), Table.LOG_SERIES, _LOG_TERMS)
    return m.add(series, m.lookup(m.nearest_exponent(x), Table.LOGARITHMS))


def log(m: Recorder, x: Register) -> Register:
    """Natural logarithm: -infinity for 0, NaN below; infinity counts as the largest number."""
    value = log_of_normal(m, m.max(m.min(x, _LARGEST), _SMALLEST))
    value = m.choose(_SMALLEST, x, _NO_LOGARITHM, value)
    return m.choose(0.0, x, _NAN, value)


def sigmoid(m: Recorder, x: Number) -> Register:
    """1 / (1 + e**-x)."""
    if m.word_sums:
        return _reciprocal(m, m.add(_power_of_negative(m, x), 1.0))
    return m.div(1.0, m.add(_exp_of_negative(m, x, FINITE), 1.0))


def _power_below_zero(m: Recorder, x: Register) -> Register:
    """e**x for x that is at most 0, without a table: 2**n * e**r as below, but n * ln 2 is taken off in two parts.

    n is computed for each part: that takes less than a plane to keep it.
    """
    limited = m.max(x, _NOTHING)
    whole = m.add(m.mul(limited, _LOG2_E), _WHOLE + _EXPONENT_BIAS)
    rest = limited
    for part in (_LN_2_HIGH, math.log(2) - _LN_2_HIGH):
        rest = m.sub(rest, m.mul(m.sub(whole, _WHOLE + _EXPONENT_BIAS), part))
    return m.mul(m.add(m.series(rest, Table.EXP_SERIES, _HALF_TERMS), 1.0), m.shift(whole, _MANTISSA_BITS))


def _power_of_two(m: Recorder, x: Register) -> Register:
    """2**x between -127, which gives 0, and 127, by a series with a constant term.

    Of e**y, y = x * ln 2, the error is |y| * 1.2e-7 of it: for y below 0 less than 5e-8.
    """
    whole = m.add(x, _WHOLE + _EXPONENT_BIAS)
    rest = m.sub(x, m.sub(whole, _WHOLE + _EXPONENT_BIAS))
    return m.mul(m.series(rest, Table.SERIES_OF_TWO, len(POWER_OF_TWO) - 1), m.shift(whole, _MANTISSA_BITS))


def _power_of_negative(m: Recorder, x: Number) -> Register:
    """e**-x without a table, between 2**-125 and 2**125; its relative error grows with |x|, to 4e-6.

    It is 2**n * e**r: n, the whole number nearest to -x / ln 2, is shifted from the low bits of a float into its
    exponent.
    """
    scaled = m.max(m.min(m.mul(x, -_LOG2_E), 125.0), -125.0)
    if m.constant_terms:
        return _power_of_two(m, scaled)
    whole = m.add(scaled, _WHOLE + _EXPONENT_BIAS)
    rest = m.mul(m.sub(scaled, m.sub(whole, _WHOLE + _EXPONENT_BIAS)), math.log(2))
    return m.mul(m.add(m.series(rest, Table.EXP_SERIES, _HALF_TERMS), 1.0), m.shift(whole, _MANTISSA_BITS))


def inverse(m: Recorder, x: Register) -> Register:
    """1 / x of 1 to 2**126."""
    return _reciprocal(m, x) if m.word_sums else m.div(1.0, x)


def _reciprocal(m: Recorder, x: Register) -> Register:
    """1 / x of 1 to 2**126 by Newton's steps from what the bits of x say, which is off by a twentieth at most.

    The last step adds what is missing, so that powers of two come out exact.
    """
    y = m.sub_words(_RECIPROCAL, x)
    for _ in range(_NEWTON_STEPS - 1):
        y = m.mul(y, m.sub(2.0, m.mul(x, y)))
    return m.add(y, m.mul(y, m.sub(1.0, m.mul(x, y))))


def tanh(m: Recorder, x: Register) -> Register:
    """Hyperbolic tangent: g / (g + 2) with g = e**2x - 1, which keeps its digits near 0."""
    limited = m.max(m.min(x, 10.0), -10.0)
    grown = expm1(m, m.add(limited, limited), 20.0)
    return m.div(grown, m.add(grown, 2.0))


def softplus(m: Recorder, x: Register) -> Register:
    """ln(1 + e**x) = max(x, 0) + ln(1 + e**-|x|)."""
    decay = exp_below_zero(m, m.or_(x, 0x8000_0000))
    return m.add(log_of_normal(m, m.add(decay, 1.0)), m.max(x, 0.0))


def sinh(m: Recorder, x: Register) -> Register:
    """Hyperbolic sine: (g + g / (g + 1)) / 2 with g = e**|x| - 1, and the sign of x."""
    grown = expm1(m, m.abs(x))
    limited = m.min(grown, 1e30)  # beyond, the ratio is 1 as well and the chip could not divide
    small = m.div(limited, m.add(limited, 1.0))
    value = m.mul(m.add(grown, small), 0.5)
    return m.or_(value, m.and_(x, 0x8000_0000))


def cosh(m: Recorder, x: Register) -> Register:
    """Hyperbolic cosine: (e**|x| + e**-|x|) / 2."""
    size = m.abs(x)
    return m.mul(m.add(exp(m, size), exp_below_zero(m, m.neg(size))), 0.5)


def asinh(m: Recorder, x: Register) -> Register:
    """Inverse hyperbolic sine: ln(1 + t) with t = |x| + x**2 / (1 + sqrt(x**2 + 1)), and the sign of x."""
    size = m.min(m.abs(x), 1e18)
    square = m.mul(size, size)
    root = _root(m, m.add(square, 1.0))
    value = log_one_plus(m, m.add(size, m.div(square, m.add(root, 1.0))))
    return m.or_(value, m.and_(x, 0x8000_0000))


def acosh(m: Recorder, x: Register) -> Register:
    """Inverse hyperbolic cosine: ln(1 + t) with t = x - 1 + sqrt((x - 1) * (x + 1)), NaN below 1."""
    limited = m.min(x, 1e18)
    above = m.sub(limited, 1.0)
    root = _root(m, m.mul(above, m.add(limited, 1.0)))
    value = log_one_plus(m, m.add(above, root))
    return m.choose(1.0, x, _NAN, value)


def atanh(m: Recorder, x: Register) -> Register:
    """Inverse hyperbolic tangent: ln(1 + 2 |x| / (1 - |x|)) / 2 and the sign of x; NaN beyond 1."""
    size = m.abs(x)
    ratio = m.div(m.add(size, size), m.sub(1.0, size))
    value = m.mul(log_one_plus(m, m.min(ratio, _LARGEST)), 0.5)
    value = m.choose(1.0, size, value, m.choose(size, 1.0, _NAN, math.inf))
    return m.or_(value, m.and_(x, 0x8000_0000))


def log_one_plus(m: Recorder, x: Register) -> Register:
    """ln(1 + x) for x of at least 0: its series up to 1/4, where adding 1 would lose digits."""
    near = m.series(m.min(x, 0.25), Table.LOG_SERIES, 16)
    return m.choose(x, 0.25, log_of_normal(m, m.add(x, 1.0)), near)


def _root(m: Recorder, x: Register) -> Register:
    return m.mul(x, m.rsqrt(x))
