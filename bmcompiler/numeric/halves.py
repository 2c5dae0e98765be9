"""The 16-bit float types, fp16 and bf16, as bits: to fp32 and back (bm1684x-cube.md 4).

fp16 keeps its denormals in both directions. bf16 has none: denormal operands count as 0 with their sign. NaN results
are 0x7FFF with their sign.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmcompiler.numeric.fp32 import FloatArray, flush
from bmcompiler.numeric.narrowing import to_fp16

Bits = NDArray[np.uint16]

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
    widen: Callable[[NDArray[Any]], FloatArray]
    narrow: Callable[[FloatArray], Bits]
    cast: Callable[[NDArray[Any]], FloatArray]


@cache
def _fp16_values() -> FloatArray:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def _widen_fp16(bits: NDArray[Any]) -> FloatArray:
    return _fp16_values().take(bits)


def _widen_bf16(bits: NDArray[Any]) -> FloatArray:
    return flush(_cast_bf16(bits))


def _narrow_bf16(x: FloatArray) -> Bits:
    words = np.ascontiguousarray(x, np.float32).view(np.uint32)
    odd = (words >> 16) & np.uint32(1)
    bits = ((words + np.uint32(0x7FFF) + odd) >> 16).astype(np.uint16)
    return _with_nans(x, bits.reshape(np.shape(x)))


def _with_nans(x: FloatArray, bits: Bits) -> Bits:
    missing = np.isnan(x)
    if missing.any():
        bits = np.where(missing, np.where(np.signbit(x), np.uint16(0xFFFF), _QUIET), bits)
    return bits


def _cast_fp16(bits: NDArray[Any]) -> FloatArray:
    wide = _widen_fp16(bits)
    lost = np.isnan(wide)
    if lost.any():
        all_ones = np.where(bits >= 0x8000, np.uint32(0xFFFF_FFFF), np.uint32(0x7FFF_FFFF)).view(np.float32)
        wide = np.where(lost, all_ones, wide)
    return wide


def _cast_bf16(bits: NDArray[Any]) -> FloatArray:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


FP16 = Half("fp16", _widen_fp16, to_fp16, _cast_fp16)
BF16 = Half("bf16", _widen_bf16, _narrow_bf16, _cast_bf16)
