"""Seven ways to round, on integers that are shifted right and on floats that become whole."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from bmcompiler.numeric.arith import round_shift
from bmcompiler.numeric.arrays import Array, Mask


class Rounding(IntEnum):
    """Rounding modes; the values are their codes in commands (bm1684x-cube.md 4)."""

    HALF_EVEN = 0
    HALF_AWAY = 1
    TO_ZERO = 2
    DOWN = 3
    UP = 4
    HALF_UP = 5
    HALF_DOWN = 6


def shift_right(x: Array, bits: int | Array, mode: int) -> Array:
    """x / 2**bits rounded, exactly, within the dtype of `x`.

    Args:
        x: integers of any dtype and shape.
        bits: 0 to 63, a number or an array that broadcasts against `x`. mode: a `Rounding`.
    Returns: array of the dtype of `x`. Raises ValueError for an unknown mode.
    """
    shift = np.asarray(bits)
    if not shift.any():
        return np.asarray(x)
    if mode == Rounding.HALF_UP and shift.ndim == 0 and shift < 8 * x.dtype.itemsize:
        return round_shift(x, int(shift))
    if x.dtype.itemsize < 8:
        return shift_right(x.astype(np.int64), bits, mode).astype(x.dtype)
    unsigned = shift.astype(np.uint64)
    floor = x >> shift.astype(x.dtype)
    one = np.uint64(1)
    rest = x.view(np.uint64) & ((one << unsigned) - one)
    half = np.maximum((one << unsigned) >> one, one)  # a shift of 0 leaves no rest, which must not look like a half
    return floor + _round_up(mode, floor, rest, half, x < 0).astype(x.dtype)


def _round_up(mode: int, floor: Array, rest: Array, half: Array, negative: Mask) -> Mask:
    """Where the floor is one too low. `rest`: what the floor leaves; `half`: the rest of a tie."""
    if mode == Rounding.DOWN:
        return np.zeros(floor.shape, np.bool_)
    if mode == Rounding.UP:
        return np.asarray(rest != 0)
    if mode == Rounding.TO_ZERO:
        return np.asarray((rest != 0) & negative)
    tie = rest == half
    up = {
        Rounding.HALF_UP: True,
        Rounding.HALF_DOWN: False,
        Rounding.HALF_AWAY: ~negative,
        Rounding.HALF_EVEN: (floor & floor.dtype.type(1)) != 0,
    }.get(Rounding(mode))
    return np.asarray((rest > half) | (tie & up))


def whole(x: Array, mode: int) -> Array:
    """Floats rounded to whole numbers, of the same dtype; the sign of a zero is that of `x`, NaN stays as it is.

    Raises ValueError for an unknown mode.
    """
    with np.errstate(invalid="ignore"):
        rounded = _whole(np.asarray(x), mode)
        return np.where(np.isfinite(x), np.copysign(rounded, x), x)


def _whole(x: Array, mode: int) -> Array:
    """Every difference here is exact where it decides: numbers of half a unit and more lie on a grid finer than it."""
    half = x.dtype.type(0.5)
    if mode == Rounding.HALF_EVEN:
        return np.asarray(np.rint(x))
    if mode == Rounding.DOWN:
        return np.asarray(np.floor(x))
    if mode == Rounding.UP:
        return np.asarray(np.ceil(x))
    if mode == Rounding.HALF_UP:
        low = np.floor(x)
        return np.asarray(low + (x - low >= half))
    if mode == Rounding.HALF_DOWN:
        high = np.ceil(x)
        return np.asarray(high - (high - x >= half))
    inner = np.trunc(x)
    if mode == Rounding.TO_ZERO:
        return np.asarray(inner)
    if mode == Rounding.HALF_AWAY:
        return np.asarray(inner + np.copysign(np.abs(x - inner) >= half, x))
    raise ValueError(f"rounding mode {mode} does not exist")
