"""Numbers at which arithmetic changes: limits of every type, ties of every rounding, denormals, infinities, NaN."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_MANTISSAS = (0, 1, 0x400000, 0x400001, 0x3FFFFF, 0x7FFFFF, 0x1000, 0x1001, 0x0FFF, 0x3000, 0x8000, 0x8001, 0x7FFF,
              0x18000, 0x7FF000, 0x7F8000, 0x7FFFFF - 0xFFF, 0x555555)  # fmt: skip
"""Of float32: ends, and ties of 16-bit types and their neighbours."""
_EXPONENTS = (0, 1, 2, 23, 63, 64, 94, 101, 102, 103, 104, 110, 112, 113, 118, 126, 127, 128, 133, 134, 135, 141, 142,
              143, 149, 150, 151, 157, 158, 159, 191, 253, 254, 255)  # fmt: skip
"""Of float32: its own ends, those of fp16, of 8, 16 and 32 bits, and of whole numbers."""


@cache
def floats() -> Array:
    """float32."""
    bits = [exponent << 23 | mantissa for exponent, mantissa in product(_EXPONENTS, _MANTISSAS)]
    special = np.array([*bits, *(each | 1 << 31 for each in bits)], np.uint32).view(np.float32)
    ends = [
        side * (2.0**power + part) for side in (1, -1) for power in (7, 8, 15, 16) for part in (-1, -0.5, 0, 0.5, 1)
    ]
    return np.concatenate([special, np.array(ends, np.float32), np.arange(-41, 42, dtype=np.float32) / 2])


@cache
def few_floats() -> Array:
    """float32, few enough for all pairs."""
    return np.ascontiguousarray(floats()[::7])


@cache
def halves() -> Array:
    """Bits of 16-bit floats: all ends and neighbours of either type, and some of all."""
    ends = [sign | one + step for sign in (0, 0x8000) for step in (0, 1, 2)
            for one in (0, 0x3FF, 0x400, 0x7B, 0x7F, 0x80, 0x3BFF, 0x3C00, 0x3F7F, 0x3F80, 0x4B00, 0x4300, 0x57F8,
                        0x5BF8, 0x77FF, 0x7BFD, 0x7BFF, 0x7C00, 0x7E00, 0x7F7E, 0x7F80, 0x7FC0, 0x7FFD)]  # fmt: skip
    return np.array([*dict.fromkeys(ends), *range(0, 1 << 16, 211)], np.uint16)


@cache
def integers(dtype: str) -> Array:
    """Of a numpy type: both ends, powers of two, halves of them, and their neighbours."""
    limits, found = np.iinfo(dtype), set(range(-20, 21))
    for power in range(8 * np.dtype(dtype).itemsize + 1):
        for value in (1 << power, 3 << power, 5 << power, 255 << power):
            found |= {side * value + step for side in (1, -1) for step in (-1, 0, 1)}
    found |= {end + step for end in (limits.min, limits.max, limits.max // 3) for step in range(-3, 4)}
    return np.array(sorted(each for each in found if limits.min <= each <= limits.max), dtype)


@cache
def pairs(dtype: str, most: int = 90) -> tuple[Array, Array]:
    """All pairs of some integers, as a column and a row."""
    values = integers(dtype)
    some = np.ascontiguousarray(values[np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int)])
    return some[:, None], some[None, :]


def matrix(seed: int, *shape: int, special: bool = False) -> Array:
    """float32 of many sizes and both signs, a tenth of them 0; `special`: one in eight from `floats`."""
    rng = np.random.RandomState(seed)
    values = rng.randint(-255, 256, shape) * 2.0 ** rng.randint(-9, 10, shape) * (rng.rand(*shape) > 0.1)
    made = values.astype(np.float32)
    return np.where(rng.rand(*shape) < 0.125, rng.choice(floats(), shape), made) if special else made
