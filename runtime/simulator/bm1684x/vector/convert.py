"""Conversion between element types, all roundings, on elements as memory has them (bm1684x-vector.md 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.codes import Precision, Rounding
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import Floats, Ints
from bmcompiler.numeric.floats import Stored
from bmcompiler.numeric.halves import BF16, FP16
from bmcompiler.numeric.narrowing import to_bf16, to_fp16
from bmcompiler.numeric.rounding import shift_right, whole
from bmcompiler.runtime.simulator.bm1684x.operands import HALVES, Reader
from bmcompiler.runtime.simulator.bm1684x.vector.integers import saturated
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind

_MANTISSA = {Precision.FP32: 24, Precision.FP16: 11, Precision.BF16: 8}  # with the leading one
_LARGEST_FP16 = 65504
_TO_HALF = {Precision.FP16: to_fp16, Precision.BF16: to_bf16}
_CAST = {Precision.FP16: FP16.cast, Precision.BF16: BF16.cast}


def checked(source: Kind, target: Kind, mode: int) -> None:
    """Raises SimulatorError for pairs of types and roundings that the chip refuses."""
    if mode not in list(Rounding):
        raise SimulatorError(f"rounding mode {mode} has no meaning for conversions")
    if {source.precision, target.precision} == set(HALVES):
        raise SimulatorError("conversion between fp16 and bf16 does not exist; go through fp32")
    if source.is_float and not target.is_float and mode in (Rounding.HALF_UP, Rounding.HALF_DOWN):
        raise SimulatorError(f"rounding mode {mode} does not exist for conversion from floats to integers")


def converter(source: Kind, target: Kind, mode: int, read: Reader) -> Reader:
    """What reads elements of `source` with `read` and gives them as `target`. Raises SimulatorError, see `checked`."""
    checked(source, target, mode)
    return lambda: convert(read(), source, target, mode)


def convert(x: Stored, source: Kind, target: Kind, mode: int) -> Stored:
    """Elements of `source` as `target`, for types that `checked` lets pass."""
    if not source.is_float:
        return _from_integers(x, target, mode)
    if not target.is_float:
        return _to_integers(whole(_exact(x, source.precision), mode), target.dtype)
    if source.precision == target.precision:
        return _whole_of_same_type(x, source.precision, mode)
    if target.precision == Precision.FP32:
        return _CAST[source.precision](x)
    return _TO_HALF[target.precision](x, mode)


def _exact(x: Stored, precision: Precision) -> Floats:
    """As fp32, denormals of bf16, too."""
    if precision == Precision.FP32:
        return x
    if precision == Precision.FP16:
        return x.view(np.float16).astype(np.float32)
    return BF16.cast(x)


def _whole_of_same_type(x: Stored, precision: Precision, mode: int) -> Stored:
    """NaN and infinity keep their bits."""
    if precision == Precision.FP32:
        return whole(x, mode)
    wide = _exact(x, precision)
    rounded = whole(wide, mode)
    if precision == Precision.FP16:
        bits = rounded.astype(np.float16).view(np.uint16)
    else:
        bits = (np.ascontiguousarray(rounded).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isfinite(wide), bits, x)


def _to_integers(numbers: Floats, target: np.dtype[Any]) -> Stored:
    """Whole numbers, saturated; NaN becomes 0."""
    limits = np.iinfo(target)
    wide = numbers if target.itemsize < numbers.itemsize else numbers.astype(np.float64)  # limits must be exact
    inside = np.clip(wide, wide.dtype.type(limits.min), wide.dtype.type(limits.max))
    return np.where(np.isnan(inside), wide.dtype.type(0), inside).astype(target)


def _from_integers(x: Stored, target: Kind, mode: int) -> Stored:
    if not target.is_float:
        return saturated(x, target.dtype)
    if x.dtype.itemsize < 4:
        numbers = x.astype(np.float32)
        return numbers if target.precision == Precision.FP32 else _TO_HALF[target.precision](numbers, mode)
    if target.precision == Precision.FP32 and mode == Rounding.HALF_EVEN:
        return x.astype(np.float32)
    numbers = _with_mantissa(x.astype(np.int64), _MANTISSA[target.precision], mode)
    if target.precision == Precision.FP32:
        return numbers
    if target.precision == Precision.BF16:
        return to_bf16(numbers)
    return _fp16_within_range(numbers, mode)


def _with_mantissa(x: Ints, mantissa: int, mode: int) -> Floats:
    """Integers rounded to so many significant bits, which float32 has exactly."""
    _, length = np.frexp(np.abs(x).astype(np.float64))
    dropped = np.maximum(length - mantissa, 0)
    return (shift_right(x, dropped, mode) << dropped).astype(np.float32)


def _fp16_within_range(numbers: Floats, mode: int) -> Stored:
    """Rounding towards zero stops at the largest number; to nearest, too large numbers become infinite."""
    towards_zero = {
        Rounding.TO_ZERO: np.ones(numbers.shape, np.bool_),
        Rounding.DOWN: numbers > 0,
        Rounding.UP: numbers < 0,
    }.get(Rounding(mode), np.zeros(numbers.shape, np.bool_))
    limited = np.clip(numbers, -_LARGEST_FP16, _LARGEST_FP16)
    return to_fp16(np.where(towards_zero, limited, numbers))
