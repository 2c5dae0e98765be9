"""Tiles of one element per 32-bit word: what `load_words` of a build makes of global tensors, and `store_words` takes.

f32 and i32 are words already; bytes become floats on their way in; of 16-bit elements the low half of a word is loaded
(the upper half is undefined). Results of narrow types are the low bytes of their words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.lanes.recipes.recorder import Recorder, Register
from bmcompiler.backends.lanes.recipes.rounding import int_to_float, narrow_to_float
from bmcompiler.ir.types import DTYPES
from bmcompiler.numeric.arrays import Floats

NARROW = ("i8", "u8", "i16", "u16")
LOADABLE = ("f32", "i32", "i16", "u16", "i8", "u8", "bool")


def to_words(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """What `load_words` puts into the tile."""
    if array.dtype.itemsize == 4:
        return array
    if array.dtype.itemsize == 2:
        return array.view(np.uint16).astype(np.int32)
    return array.astype(np.float32)


def from_words(words: Floats, dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    """What `store_words` makes of a tile."""
    if dtype == np.float32:
        return words
    whole = words.view(np.int32)
    return (whole & 0xFF).astype(np.bool_) if dtype.kind == "b" else whole.astype(dtype)


def as_float(m: Recorder, x: Register, dtype: str) -> Register:
    """The value of a loaded word as float."""
    if dtype == "i32":
        return int_to_float(m, x)
    return narrow_to_float(m, x, 16, dtype == "i16") if dtype in ("i16", "u16") else x


def as_int(m: Recorder, x: Register, dtype: str) -> Register:
    """The value of a loaded integer (or bool) as int32."""
    if dtype == "i32":
        return x
    if dtype == "i16":
        return m.shift(m.shift(x, 16), -16, arithmetic=True)
    return m.and_(x, 0xFFFF) if dtype == "u16" else m.to_int(x)


def not_zero(m: Recorder, x: Register, dtype: str) -> Register:
    """1 where the value of a loaded word is not 0, else 0; denormals are 0."""
    value = as_int(m, x, dtype) if dtype in ("i32", "i16", "u16") else m.add(x, 0.0)
    return m.xor(m.same_bits(value, 0, 1), 1)


def saturated(m: Recorder, x: Register, dtype: str) -> Register:
    """A float within the range of an integer type."""
    low, high = limits(dtype)
    return m.min(m.max(x, low), high)


def limits(dtype: str) -> tuple[float, float]:
    """The smallest and the largest value of an integer type."""
    info = np.iinfo(DTYPES[dtype][1])
    return float(info.min), float(info.max)
