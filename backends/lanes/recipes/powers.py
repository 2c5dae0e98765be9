"""Roots, reciprocals and powers."""

from __future__ import annotations

from bmcompiler.backends.lanes.recipes.exponential import exp, log_of_normal
from bmcompiler.backends.lanes.recipes.recorder import ONE, SIGN, Number, Recorder, Register
from bmcompiler.backends.lanes.recipes.rounding import floor, round_even

_LARGEST, _SMALLEST = 3.4028234663852886e38, 2.0**-126
_LOG_OF_ZERO = -1e30  # finite, so that 0 to the power 0 is 1
_UPPER_HALF = 0xFFFF_F000  # sign, exponent and the upper 12 bits of the mantissa
_NAN = float("nan")


def root(m: Recorder, x: Register) -> Register:
    """Square root of numbers from 0 on; of 0 it is 0 since 1 / sqrt(0) is finite on this chip."""
    return m.mul(m.rsqrt(x), x)


def sqrt(m: Recorder, x: Register) -> Register:
    """Square root, NaN below 0."""
    return m.choose(0.0, x, _NAN, root(m, x))


def reciprocal(m: Recorder, x: Register) -> Register:
    """1 / x."""
    return m.div(1.0, x)


def quotient(m: Recorder, a: Register, b: Register) -> Register:
    """a / b, which the chip's division misses by up to 5 units of the last place, put right.

    What the first quotient leaves of a is exact, since factors are split into halves whose products fit 24 bits. Small
    whole quotients come out whole; an infinite b gives 0, b = 0 infinity.
    """
    divisor = m.max(-_LARGEST, m.min(_LARGEST, b))
    inverse = m.div(1.0, divisor)
    first = m.mul(a, inverse)
    right = m.add(m.mul(product_rest(m, a, first, divisor), inverse), first)
    return m.choose(m.abs(right), -1.0, right, first)


def product_rest(m: Recorder, a: Register, x: Register, y: Register) -> Register:
    """a - x * y, exact where x * y is near a."""
    (x_high, x_low), (y_high, y_low) = _halves(m, x), _halves(m, y)
    rest = m.sub(a, m.mul(x_high, y_high))
    rest = m.sub(m.sub(rest, m.mul(x_high, y_low)), m.mul(x_low, y_high))
    return m.sub(rest, m.mul(x_low, y_low))


def _halves(m: Recorder, x: Register) -> tuple[Register, Register]:
    high = m.and_(x, _UPPER_HALF)
    return high, m.sub(x, high)


def remainder(m: Recorder, a: Register, b: Register, like_dividend: bool) -> Register:
    """The rest of a / b with the sign of b, or of a; NaN for b = 0."""
    size, unit = m.abs(a), m.abs(b)
    rest = product_rest(m, size, floor(m, quotient(m, size, unit)), unit)
    rest = m.choose(0.0, rest, m.add(rest, unit), rest)  # when the quotient was rounded up to a whole number
    rest = m.choose(unit, size, size, rest)  # also of an infinite divisor
    if like_dividend:
        return m.or_(rest, m.and_(a, SIGN))
    apart = m.xor(a, b)  # negative when the signs differ; 0 with the sign of a stays
    mirrored = m.choose(rest, 0.0, m.sub(unit, rest), rest)
    rest = m.choose(0.0, m.or_(m.and_(apart, SIGN), ONE), mirrored, rest)
    return m.or_(rest, m.and_(b, SIGN))


def power(m: Recorder, x: Register, y: Register) -> Register:
    """x to the power y; of a negative x only whole powers exist, others are NaN."""
    size = _magnitude_power(m, x, y)
    whole = round_even(m, y)
    is_whole = m.same_bits(m.add(whole, 0.0), m.add(y, 0.0))
    half = m.mul(whole, 0.5)
    is_even = m.same_bits(m.add(round_even(m, half), 0.0), m.add(half, 0.0))
    signed = m.choose(is_even, 0.0, size, m.neg(size))
    negative = m.choose(is_whole, 0.0, signed, _NAN)
    return m.choose(0.0, x, negative, size)


def _magnitude_power(m: Recorder, x: Register, y: Number) -> Register:
    """|x| to the power y."""
    size = m.abs(x)
    limited = m.max(m.min(size, _LARGEST), _SMALLEST)
    logarithm = m.choose(_SMALLEST, size, _LOG_OF_ZERO, log_of_normal(m, limited))
    return exp(m, m.mul(logarithm, y))
