"""Which numbers element types hold, and the arrays of numpy that hold them."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from bmcompiler.errors import UsageError
from bmcompiler.frontends.bmlang.fields import shown
from bmcompiler.frontends.bmlang.types import FROM_IR, DataType
from bmcompiler.ir.types import FROM_NUMPY, numpy_dtype
from bmcompiler.numeric.arrays import Array

_BF16 = np.dtype(ml_dtypes.bfloat16)
_LARGEST_BF16 = float(np.array(0x7F7F, np.uint16).view(_BF16))


def numpy_type(dtype: DataType) -> np.dtype[Any]:
    """The element type as numpy knows it; BFLOAT16 is that of the package ml_dtypes."""
    return numpy_dtype(dtype.ir)


def data_type(dtype: Any) -> DataType:
    """A DataType from one, from its number, or from a numpy type. Raises UsageError for anything else."""
    if isinstance(dtype, DataType):
        return dtype
    try:
        if isinstance(dtype, int) and not isinstance(dtype, bool):
            return DataType(dtype)
        return FROM_IR[FROM_NUMPY[np.dtype(dtype).name]]
    except (TypeError, ValueError, KeyError):
        known = ", ".join(each.name for each in DataType)
        raise UsageError(f"{shown(dtype)} is no element type of BMLang; known: {known}") from None


def has_reals(kind: np.dtype[Any]) -> bool:
    """Whether an array holds floats; to numpy, bf16 is of no kind that it knows."""
    return kind.kind == "f" or kind == _BF16


def has_numbers(kind: np.dtype[Any]) -> bool:
    """Whether an array holds numbers."""
    return kind.kind in "biu" or has_reals(kind)


def holds(dtype: DataType, value: float) -> bool:
    """Whether an element type has a number; reals are rounded, but finite ones stay finite."""
    if not dtype.is_integer:
        return not math.isfinite(value) or abs(value) <= largest(numpy_type(dtype))
    limits = np.iinfo(numpy_type(dtype))
    return value.is_integer() and bool(limits.min <= value <= limits.max)


def nearest(dtype: DataType, value: float) -> float:
    """The number of an element type that stands for a number it `holds`."""
    return int(value) if dtype.is_integer else float(np.float64(value).astype(numpy_type(dtype)))


def all_fit(array: Array, kind: np.dtype[Any]) -> bool:
    """Whether an element type `holds` all these numbers."""
    if not array.size or array.dtype == kind:
        return True
    if has_reals(array.dtype):
        array = array.astype(np.float64)
    if has_reals(kind):
        return bool((np.abs(array[np.isfinite(array)].astype(np.float64)) <= largest(kind)).all())
    limits = np.iinfo(kind)
    is_whole = array.dtype.kind in "iub" or bool((array == np.floor(array)).all())
    return is_whole and bool(limits.min <= array.min()) and bool(array.max() <= limits.max)


def largest(kind: np.dtype[Any]) -> float:
    """The largest finite number of a type of floats."""
    return _LARGEST_BF16 if kind == _BF16 else float(np.finfo(kind).max)
