"""Real factors as a multiplier and a right shift, and integers times them (bm1684x-cube.md 9, rq1).

Of each factor: multiplier an integer of 31 bits, shift 0 to 45; factor = multiplier / 2**shift. A float32 number is
exact unless it is so small that its shift would be larger. Results round to the nearest, halves to the even number, as
ONNX Runtime rounds: integers differ from its own only where its product in float32 is rounded across a half.
"""

from __future__ import annotations

import numpy as np

from bmcompiler.numeric import arith
from bmcompiler.numeric.arrays import Array, Doubles, Int16s, Int32s

CHANNEL = "channel"
"""The mode of sums of products with a multiplier and a shift of its own for each output channel."""
MOST_SHIFT = 45
"""The largest shift that commands were seen to compute with (bm1684x-cube.md 9)."""
MOST_MULTIPLIER = (1 << 31) - 1
MOST_STEPS = 15
"""The largest shift of sums of 16 bits."""
OFFSETS = {"u8": (0, (1 << 16) - 1), "u16": (0, (1 << 16) - 1), "i8": (-1 << 15, (1 << 15) - 1)}
OFFSETS |= {dtype: OFFSETS["i8"] for dtype in ("i16", "i32")}
"""The least and the largest number that is added behind a factor, by the result's type, whose sign it shares
(bm1684x-cube.md 9: 16 bits, sign opd2_sign)."""
_BITS = 31


def apart(factors: Array | float) -> Int32s:
    """(multiplier, shift) of each of some positive factors, (N, 2).

    Raises ValueError for a factor that is not finite, is negative, or is `MOST_MULTIPLIER` or more.
    """
    reals = np.atleast_1d(np.asarray(factors, np.float64))
    if not (np.isfinite(reals).all() and (reals >= 0).all() and (reals < MOST_MULTIPLIER).all()):
        raise ValueError("factors of integers must be finite, not negative and below 2**31")
    _, exponent = np.frexp(reals)
    shift = np.minimum(_BITS - exponent, MOST_SHIFT)
    multiplier = np.rint(np.ldexp(reals, shift))
    over = multiplier > MOST_MULTIPLIER  # rounded up to 2**31
    shift = np.where(over, shift - 1, shift)
    multiplier = np.where(over, np.rint(np.ldexp(reals, shift)), multiplier)
    return np.stack([multiplier, shift], axis=1).astype(np.int32)


def real(factors: Array) -> Doubles:
    """The real numbers that rows of (multiplier, shift) stand for."""
    return np.ldexp(factors[..., 0].astype(np.float64), -factors[..., 1].astype(np.int64))


def requantize(x: Array, multiplier: Array, shift: Array, dtype: str, zero_point: int | Array = 0) -> Array:
    """saturate(round(x * multiplier / 2**shift) + zero_point), exact, halves to even.

    Args:
        x: integers of at most 32 bits. multiplier, shift: broadcast against it, 0 to 2**31 - 1 and 0 to 62.
        zero_point: broadcasts, too.
        dtype: i8, u8, i16 or i32.
    """
    total = x.astype(np.int64) * multiplier
    bits = np.asarray(shift).astype(np.int64)
    half = (np.int64(1) << bits) >> 1
    odd = (total >> bits) & 1
    total += np.where(bits > 0, half - 1 + odd, 0)
    total >>= bits
    if np.any(zero_point):
        total += zero_point
    return arith.saturate(total, dtype)


def requantize_real(x: Array, factor: Array, offset: Array, dtype: str) -> Array:
    """saturate(round(fl(fl(fl(x) * factor) + offset))), halves to even, in float32 (bm1684x-cube.md 9, rq0).

    Args:
        x: integers of at most 32 bits. factor, offset: finite f32 that broadcast against it. dtype: i8, u8 or i16.
    """
    real = x.astype(np.float32)
    real *= factor
    real += offset  # denormals that the chip takes for zeros are less than the half that decides
    limits = np.iinfo(arith.NUMPY_DTYPES[dtype])
    np.clip(real, limits.min, limits.max, out=real)
    return np.rint(real, out=real).astype(limits.dtype)


def shifts(rows: Int16s) -> Int16s:
    """Shifts of channels; one outside of 0 to `MOST_STEPS` is the nearest one there."""
    return np.clip(rows[:, 0], 0, MOST_STEPS)
