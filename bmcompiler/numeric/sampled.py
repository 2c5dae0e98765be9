"""Float sums of which one row in 64 is added as the chip adds, and the others are real sums, rounded once.

What a proof does where the chip's order would take too long. Rows are chosen by what they hold, and the real sums are
made in float64 and rounded to so few bits that no order shows in them: a part of a product gives what the whole product
gives there, so that both executions can be compared bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bmcompiler.numeric.arrays import Floats, Indices
from bmcompiler.numeric.fp32 import flush

ONE_IN = 64
"""Of so many rows of a product one is added in the chip's order."""
_SHIFT = np.uint32(33 - ONE_IN.bit_length())  # the first bits of a hash, 0 for one in so many
_FACTOR = np.uint32(0x9E37_79B1)
_LOST = np.uint32(12)  # of the 24 bits of a float32
_VALUES = 1 << 16  # results at a time: they stay in the second-level cache
_Stored = TypeVar("_Stored", np.float32, np.uint16)
_ON: ContextVar[bool] = ContextVar("sampled sums", default=False)


@contextmanager
def sampled_sums(on: bool = True) -> Iterator[None]:
    """Within it this thread adds so, in simulators and in `evaluate`: 16-bit products, and convolutions of float32."""
    before = _ON.set(on)
    try:
        yield
    finally:
        _ON.reset(before)


def sampled() -> bool:
    """Whether this thread adds so now."""
    return _ON.get()


def real_sums(a: Floats, b: Floats, start: Floats, rounded: Callable[[Floats], NDArray[_Stored]]) -> NDArray[_Stored]:
    """start + a.T @ b for (K, M), (K, N) and what broadcasts to (M, N), then `rounded`; NaN have one sign."""
    shape = (a.shape[1], b.shape[1])
    left, start = a.astype(np.float64).T, np.broadcast_to(start, shape)
    found: list[NDArray[_Stored]] = []
    step = max(1, _VALUES // max(1, shape[0]))
    for x in range(0, shape[1], step):
        sums = (left @ b[:, x : x + step].astype(np.float64) + start[:, x : x + step]).astype(np.float32)
        np.copyto(sums, np.float32(np.nan), where=np.isnan(sums))
        found.append(rounded(flush(sums)))
    return np.concatenate(found, axis=1)


def chosen(a: Floats) -> Indices:
    """The rows of a.T, of (K, M), that are added in the chip's order; zeros among its values do not matter."""
    words = np.ascontiguousarray(a).view(np.uint32)
    return np.flatnonzero((np.add.reduce(words, dtype=np.uint32) * _FACTOR) >> _SHIFT == 0)


def convolution_sums(a: Floats, b: Floats, bias: Floats, exact: Callable[[Floats, Floats, Floats], Floats]) -> Floats:
    """exact(a, b, bias) for float32 (K, M), (K, N) and (M, 1); sampled where this thread does so."""
    if not sampled():
        return exact(a, b, bias)
    sums = real_sums(a, b, bias, _short)
    rows = chosen(a)
    if rows.size:
        sums[rows] = exact(np.ascontiguousarray(a[:, rows]), b, np.broadcast_to(bias, (len(sums), 1))[rows])
    return sums


def _short(x: Floats) -> Floats:
    """To half of the bits of float32, nearest even."""
    bits = x.view(np.uint32)
    half = (np.uint32(1) << (_LOST - np.uint32(1))) - np.uint32(1)
    bits = (bits + half + ((bits >> _LOST) & np.uint32(1))) >> _LOST << _LOST
    return np.where(np.isnan(x), x, bits.view(np.float32))
