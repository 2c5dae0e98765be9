"""fp32 to floats of 16 bits, as their bits, with all seven roundings (bm1684x-vector.md 5).

NaN becomes sign | 7FFF, too large numbers become infinite, denormals of fp32 count as 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmcompiler.numeric.arrays import Array, Bits16, Floats
from bmcompiler.numeric.rounding import Rounding, whole

Words = NDArray[np.uint32]

NAN_BITS = np.uint16(0x7FFF)
_SIGN = np.uint32(0x8000_0000)
_INFINITE = np.uint32(0x7F80_0000)
_TINY = np.uint32(0x0080_0000)
_BRAIN_BITS, _HALF_BITS = 16, 13  # mantissa bits that fp32 has more
_BIAS_STEP = np.uint32(112 << 23)  # between the exponents of fp32 and fp16
_LEAST_HALF = np.uint32(113 << 23)  # 2**-14, the smallest normal fp16 number, as fp32
_HALF_INFINITE = np.uint32(0x7C00)
_DENORMAL_STEPS = np.float32(2.0**24)


def to_bf16(x: Floats, mode: int = Rounding.HALF_EVEN) -> Bits16:
    """fp32 to bf16. Modes HALF_UP and HALF_DOWN act on the magnitude.

    Raises ValueError for an unknown mode.
    """
    bits = _bits(x)
    magnitude = bits & ~_SIGN
    rounded = magnitude + _addend(bits, _BRAIN_BITS, mode)
    rounded >>= np.uint32(_BRAIN_BITS)
    rounded[magnitude < _TINY] = 0
    return _signed(bits, magnitude, rounded).reshape(np.shape(x))


def to_fp16(x: Floats, mode: int = Rounding.HALF_EVEN) -> Bits16:
    """fp32 to fp16 with gradual underflow. Modes HALF_UP and HALF_DOWN act on the magnitude.

    Raises ValueError for an unknown mode.
    """
    if mode == Rounding.HALF_EVEN:
        return _nearest_fp16(x)
    bits = _bits(x)
    magnitude = bits & ~_SIGN
    rounded = magnitude + _addend(bits, _HALF_BITS, mode) - _BIAS_STEP
    rounded >>= np.uint32(_HALF_BITS)
    np.minimum(rounded, _HALF_INFINITE, out=rounded)
    small = magnitude < _LEAST_HALF
    if small.any():
        rounded[small] = _denormal_fp16(bits[small], mode)
    return _signed(bits, magnitude, rounded).reshape(np.shape(x))


def _nearest_fp16(x: Floats) -> Bits16:
    """Adding 0.5 puts the last bit of a denormal fp16 number at the end of the mantissa, where the sum is rounded."""
    bits = _bits(x)
    magnitude = bits & ~_SIGN
    rounded = bits >> np.uint32(_HALF_BITS)
    rounded &= np.uint32(1)
    rounded += magnitude
    rounded += np.uint32((1 << (_HALF_BITS - 1)) - 1 - int(_BIAS_STEP) & 0xFFFF_FFFF)
    rounded >>= np.uint32(_HALF_BITS)
    np.minimum(rounded, _HALF_INFINITE, out=rounded)
    small = magnitude < _LEAST_HALF
    if small.any():
        steps = (magnitude.view(np.float32) + np.float32(0.5)).view(np.uint32) - np.float32(0.5).view(np.uint32)
        rounded = np.where(small, steps, rounded)
    return _signed(bits, magnitude, rounded).reshape(np.shape(x))


def _bits(x: Floats) -> Words:
    """At least one axis: numpy computes numbers out of arrays of none, and nothing can be written into those."""
    return np.ascontiguousarray(x, np.float32).view(np.uint32)


def _addend(bits: Words, dropped: int, mode: int) -> Words | np.uint32:
    """What to add to magnitudes so that cutting off `dropped` bits rounds."""
    half, below = np.uint32(1 << (dropped - 1)), np.uint32((1 << dropped) - 1)
    if mode == Rounding.HALF_EVEN:
        return (bits >> np.uint32(dropped) & np.uint32(1)) + (half - np.uint32(1))
    if mode in (Rounding.HALF_AWAY, Rounding.HALF_UP):
        return half
    if mode == Rounding.HALF_DOWN:
        return half - np.uint32(1)
    if mode == Rounding.TO_ZERO:
        return np.uint32(0)
    if mode in (Rounding.DOWN, Rounding.UP):
        outward = (bits >= _SIGN) == (mode == Rounding.DOWN)
        return np.where(outward, below, np.uint32(0))
    raise ValueError(f"rounding mode {mode} does not exist")


def _denormal_fp16(bits: Words, mode: int) -> Words:
    """Magnitudes, in steps of 2**-24, of numbers below 2**-14."""
    on_magnitude = mode in (Rounding.HALF_UP, Rounding.HALF_DOWN)
    kept = np.where((bits & ~_SIGN) < _TINY, bits & _SIGN, bits & ~_SIGN if on_magnitude else bits)
    return np.abs(whole(kept.view(np.float32) * _DENORMAL_STEPS, mode)).astype(np.uint32)


def _signed(bits: Words, magnitude: Words, rounded: Array) -> Bits16:
    if magnitude.max(initial=0) > _INFINITE:
        rounded[magnitude > _INFINITE] = NAN_BITS
    sign = bits >> np.uint32(16)
    sign &= np.uint32(0x8000)
    return np.bitwise_or(rounded, sign, dtype=np.uint16, casting="unsafe")
