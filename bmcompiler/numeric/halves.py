"""The 16-bit float types, fp16 and bf16, as bits: to fp32 and back (bm1684x-cube.md 4).

fp16 keeps its denormals in both directions. bf16 has none: denormal operands count as 0 with their sign. NaN results
are 0x7FFF with their sign.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from bmcompiler.numeric.arrays import Array, Bits16, Floats
from bmcompiler.numeric.fp32 import flush
from bmcompiler.numeric.narrowing import to_fp16

_QUIET = np.uint16(0x7FFF)


class Half(NamedTuple):
    """A 16-bit float type.

    Attributes:
        widen: bits to float32, exact but for denormals of bf16.
        narrow: float32 to bits, rounded to nearest even; too large values become infinite.
        cast: bits to float32 as a conversion gives them (bm1684x-vector.md 5): denormals of bf16 stay, NaN of fp16
            become sign | 7FFFFFFF.
    """

    name: str
    widen: Callable[[Array], Floats]
    narrow: Callable[[Floats], Bits16]
    cast: Callable[[Array], Floats]


@cache
def _fp16_values() -> Floats:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def _widen_fp16(bits: Array) -> Floats:
    return _fp16_values().take(bits)


def _widen_bf16(bits: Array) -> Floats:
    return flush(_cast_bf16(bits))


def _narrow_bf16(x: Floats) -> Bits16:
    words = np.ascontiguousarray(x, np.float32).view(np.uint32)
    odd = (words >> 16) & np.uint32(1)
    bits = ((words + np.uint32(0x7FFF) + odd) >> 16).astype(np.uint16)
    return _with_nans(x, bits.reshape(np.shape(x)))


def _with_nans(x: Floats, bits: Bits16) -> Bits16:
    missing = np.isnan(x)
    if missing.any():
        bits = np.where(missing, np.where(np.signbit(x), np.uint16(0xFFFF), _QUIET), bits)
    return bits


def _cast_fp16(bits: Array) -> Floats:
    wide = _widen_fp16(bits)
    lost = np.isnan(wide)
    if lost.any():
        all_ones = np.where(bits >= 0x8000, np.uint32(0xFFFF_FFFF), np.uint32(0x7FFF_FFFF)).view(np.float32)
        wide = np.where(lost, all_ones, wide)
    return wide


def _cast_bf16(bits: Array) -> Floats:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


FP16 = Half("fp16", _widen_fp16, to_fp16, _cast_fp16)
BF16 = Half("bf16", _widen_bf16, _narrow_bf16, _cast_bf16)
