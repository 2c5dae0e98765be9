"""Exact integers that float32 holds, and what ends operations on them, in float32 without any rounding that shows.

Products of integers come out of BLAS as float32. Up to 2**24 in magnitude those are exact, and so are their sums, their
quotients by powers of two, and what is below these: integer instructions would take more passes over more memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.numeric import arith
from bmcompiler.numeric.arrays import Array, Floats

HELD = 1 << 24
"""Integers up to this magnitude are float32 numbers."""
_NARROW = ("i8", "u8", "i16", "u16")


def is_held(array: Array) -> bool:
    """Whether an array holds integers as float32."""
    return array.dtype == np.float32


def peak(array: Array) -> float:
    """The largest magnitude."""
    return max(float(array.max()), -float(array.min())) if array.size else 0.0


def requantized(total: Array, bias: Array | None, shift: int, dtype: str) -> Array:
    """saturate(round_shift(total + bias, shift)), as float32 where `total` is and all on the way is exact in it.

    Args:
        total: integers of any type, or held by float32, which may change. bias: integers that broadcast against it.
        dtype: i8, u8, i16, u16 or i32.
    Returns: an array of `dtype`, or the same numbers as float32.
    """
    half = (1 << shift) >> 1
    if is_held(total):
        most = 0.0 if bias is None else peak(bias)
        if dtype in _NARROW and peak(total) + most + half <= HELD:
            return ended(total, bias, shift, dtype)
        total = total.astype(np.int32)
    if bias is not None:  # sums of products of bytes in int32 leave room for a bias of 16 bits, not for a wider one
        total = total.astype(np.int64 if bias.dtype.itemsize > 2 else total.dtype, copy=False) + bias
    return arith.requantize(total, shift, dtype)


def ended(total: Floats, bias: Array | None, shift: int, dtype: str) -> Floats:
    """`requantized` of what is known to be exact in float32 all the way, or else to saturate."""
    if bias is not None:
        total += bias.astype(np.float32)
    if shift:
        total *= np.float32(0.5**shift)
        total += np.float32(0.5)
        np.floor(total, out=total)
    return _saturated(total, dtype)


def floor_shifted(x: Array, shifts: Array, dtype: str) -> Array:
    """saturate(floor(x / 2**shifts)); x: integers of any type, or held by float32; shifts: integers, broadcasting."""
    if not is_held(x):
        return arith.saturate(x >> shifts.astype(x.dtype), dtype)
    return _saturated(np.floor(x * np.ldexp(np.float32(1), -shifts)), dtype)


def _saturated(x: Floats, dtype: str) -> Floats:
    limits: Any = np.iinfo(arith.NUMPY_DTYPES[dtype])
    return np.clip(x, np.float32(limits.min), np.float32(limits.max), out=x)
