"""Circular functions and their inverses."""

from __future__ import annotations

import math

from bmcompiler.backends.lanes.recipes.powers import root
from bmcompiler.backends.lanes.recipes.recorder import SIGN, Recorder, Register
from bmcompiler.backends.lanes.recipes.rounding import round_small
from bmcompiler.backends.lanes.tables import Table

_HALF_PI, _PI_BITS = math.pi / 2, 0x4049_0FDB
_TURN = (6.28125, 0.0019353071795864769)  # 2 pi in two parts: products of the first with whole numbers are exact
_TERMS = 14
# Abramowitz and Stegun 4.4.49: atan(x) / x in x**2 for |x| up to 1, off by 2e-8.
_ARCTANGENT = (
    1.0,
    -0.3333314528,
    0.1999355085,
    -0.1420889944,
    0.1065626393,
    -0.0752896400,
    0.0429096138,
    -0.0161657367,
    0.0028662257,
)
_NAN = float("nan")


def _sine(m: Recorder, x: Register, turns: Register, shift: float) -> Register:
    """sin(x + shift) where x is near `turns` turns."""
    whole = round_small(m, turns)
    angle = m.sub(m.sub(x, m.mul(whole, _TURN[0])), m.mul(whole, _TURN[1]))
    if shift:
        angle = m.add(angle, shift)
    mirrored = m.sub(m.or_(m.and_(angle, SIGN), _PI_BITS), angle)
    folded = m.choose(m.abs(angle), _HALF_PI, mirrored, angle)
    return m.series(folded, Table.SINE_SERIES, _TERMS)


def sin(m: Recorder, x: Register) -> Register:
    """Sine; digits are lost with the size of x, and from 2e7 on all are."""
    return _sine(m, x, m.mul(x, 0.5 / math.pi), 0.0)


def cos(m: Recorder, x: Register) -> Register:
    """Cosine; precise as `sin`."""
    return _sine(m, x, m.add(m.mul(x, 0.5 / math.pi), 0.25), _HALF_PI)


def tan(m: Recorder, x: Register) -> Register:
    """Tangent, sin / cos."""
    return m.div(sin(m, x), cos(m, x))


def _atan_of_ratio(m: Recorder, top: Register, bottom: Register) -> Register:
    """Inverse tangent of top / bottom, both from 0 on: of the ratio up to 1, of its inverse beyond."""
    ratio = m.div(m.min(top, bottom), m.max(top, bottom))
    near = m.mul(m.polynomial(m.mul(ratio, ratio), _ARCTANGENT), ratio)
    return m.choose(top, bottom, m.sub(_HALF_PI, near), near)


def atan(m: Recorder, x: Register) -> Register:
    """Inverse tangent, in -pi/2 to pi/2."""
    size = m.min(m.abs(x), 1e30)
    return m.or_(_atan_of_ratio(m, size, m.copy(1.0)), m.and_(x, SIGN))


def asin(m: Recorder, x: Register) -> Register:
    """Inverse sine: atan(|x| / sqrt(1 - x**2)) with the sign of x; NaN beyond 1."""
    size = m.abs(x)
    value = m.choose(size, 1.0, _NAN, _atan_of_ratio(m, size, _cathetus(m, size)))
    return m.or_(value, m.and_(x, SIGN))


def acos(m: Recorder, x: Register) -> Register:
    """Inverse cosine: atan(sqrt(1 - x**2) / |x|), for negative x pi minus it; NaN beyond 1."""
    size = m.abs(x)
    angle = _atan_of_ratio(m, _cathetus(m, size), size)
    value = m.choose(0.0, x, m.sub(math.pi, angle), angle)
    return m.choose(size, 1.0, _NAN, value)


def _cathetus(m: Recorder, size: Register) -> Register:
    """sqrt((1 - x) * (1 + x)) of x in 0 .. 1."""
    return root(m, m.mul(m.sub(1.0, size), m.add(size, 1.0)))
