"""Rounding as it is defined, on exact fractions: what tests of arithmetic compare with."""

from __future__ import annotations

import math
from fractions import Fraction

from bmcompiler.numeric.rounding import Rounding


def rounded(x: Fraction, mode: Rounding) -> int:
    """The definition, in words: the integers on both sides, and what a tie does."""
    low = math.floor(x)
    rest = x - low
    if mode == Rounding.DOWN or rest == 0:
        return low
    if mode == Rounding.UP:
        return low + 1
    if mode == Rounding.TO_ZERO:
        return low + (x < 0)
    if rest != Fraction(1, 2):
        return low + (rest > Fraction(1, 2))
    even = low + low % 2
    away = low + (x > 0)
    return {Rounding.HALF_EVEN: even, Rounding.HALF_AWAY: away, Rounding.HALF_UP: low + 1, Rounding.HALF_DOWN: low}[
        mode
    ]


def sixteen(x: Fraction, negative: bool, mode: Rounding, mantissa: int, least: int, infinite: int) -> int:
    """Bits of |x| in a format whose normal numbers begin at 2**least; halves go by the magnitude."""
    exponent = max(least, math.floor(math.log2(x)) if x else least)
    exponent -= x < Fraction(2) ** exponent and exponent > least
    if mode in (Rounding.HALF_UP, Rounding.HALF_DOWN):
        negative = False
    steps = abs(rounded((-x if negative else x) / Fraction(2) ** (exponent - mantissa), mode))
    return min(steps + (exponent - least << mantissa), infinite)
