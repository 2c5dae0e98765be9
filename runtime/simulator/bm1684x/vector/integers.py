"""Integer arithmetic of the vector units: exact, then shifted with rounding, then wrapped or saturated (4.2).

All functions are pure. `target` is the numpy type of the result; its sign is that of the operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import IntArray
from bmcompiler.numeric.rounding import Rounding, shift_right

Shift = int | IntArray

MOST_LEFT, MOST_RIGHT = 31, 63
"""Shift amounts with a known result (bm1684x-vector.md 4.2)."""
_MODE_BITS, _DOWN_TOO = 7, 7  # mode 7 behaves as rounding down (bm1684x-cube.md 4)
_INT, _LONG, _UNSIGNED_LONG = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint64)


def rounding_of(code: int) -> int:
    """The rounding mode of the low three bits of a field."""
    mode = code & _MODE_BITS
    return Rounding.DOWN if mode == _DOWN_TOO else mode


def exact(operation: np.ufunc, a: IntArray, b: IntArray) -> IntArray:
    """a op b without overflow, in 32 bits where they are enough. `operation`: add, subtract or multiply."""
    bits = 8 * (a.dtype.itemsize + b.dtype.itemsize)
    unsigned = a.dtype.kind == b.dtype.kind == "u"
    wide: np.dtype[Any] = _LONG
    if bits < 32 or (bits == 32 and not unsigned):
        wide = _INT
    elif unsigned and bits == 64 and operation is np.multiply:
        wide = _UNSIGNED_LONG
    return np.asarray(operation(a, b, dtype=wide, casting="unsafe"))


def shifted(values: IntArray, shift: Shift, mode: int, target: np.dtype[Any], *, saturating: bool) -> IntArray:
    """Exact `values` * 2**shift in the type `target`.

    Args:
        shift: positive to the left, negative to the right with the rounding `mode`; a number or a broadcasting array.
        saturating: nearest value of `target` instead of its low bits.
    Raises SimulatorError for shifts beyond 31 to the left or 63 to the right.
    """
    amounts = np.asarray(shift)
    if amounts.max() > MOST_LEFT or amounts.min() < -MOST_RIGHT:
        raise SimulatorError(f"a shift must be {MOST_LEFT} to the left at most and {MOST_RIGHT} to the right")
    values = shift_right(values, np.maximum(-amounts.astype(np.int16), 0), mode)
    left = np.maximum(amounts, 0)
    if not left.any():
        return saturated(values, target) if saturating else values.astype(target)
    if values.dtype.itemsize < 8:
        values = values.astype(_LONG)
    left = left.astype(values.dtype)
    if not saturating:
        return (values << left).astype(target)
    return _saturated_left(values, left, target)


def _saturated_left(values: IntArray, left: IntArray, target: np.dtype[Any]) -> IntArray:
    """values << left, saturated, although it may need more than 64 bits: limits are compared before shifting."""
    limits = np.iinfo(target)
    top = values.dtype.type(limits.max) >> left
    result = np.where(values > top, values.dtype.type(limits.max), values << left)
    if values.dtype.kind == "i":
        bottom = -(values.dtype.type(-int(limits.min)) >> left)
        result = np.where(values < bottom, values.dtype.type(int(limits.min)), result)
    return result.astype(target)


def saturated(values: IntArray, target: np.dtype[Any]) -> IntArray:
    """Nearest values of the integer type `target`."""
    limits, have = np.iinfo(target), np.iinfo(values.dtype)
    if have.min < limits.min:
        values = np.maximum(values, values.dtype.type(limits.min))
    if have.max > limits.max:
        values = np.minimum(values, values.dtype.type(limits.max))
    return values.astype(target)


def high_product(a: IntArray, b: IntArray, mode: int) -> IntArray:
    """a * b / 2**(bits - 1), rounded and saturated to the signed type of both."""
    return saturated(shift_right(exact(np.multiply, a, b), 8 * a.dtype.itemsize - 1, mode), a.dtype)


def rotated(x: IntArray, amount: IntArray) -> IntArray:
    """Unsigned x with its bits rotated, to the left for positive amounts."""
    bits = 8 * x.dtype.itemsize
    left = np.mod(amount.astype(np.int64), bits)
    wide = x.astype(np.uint64)
    return ((wide << left.astype(np.uint64)) | (wide >> (bits - left).astype(np.uint64))).astype(x.dtype)


def leading_zeros(x: IntArray) -> IntArray:
    """Number of zero bits above the highest one of unsigned x."""
    _, length = np.frexp(x.astype(np.float64))
    return np.asarray(8 * x.dtype.itemsize - length)


def leading_ones(x: IntArray) -> IntArray:
    """Number of one bits above the highest zero of unsigned x."""
    return leading_zeros(~x)


def multiplied_onto(
    a: IntArray, b: IntArray, old: IntArray, left: int, right: int, mode: int, target: np.dtype[Any]
) -> IntArray:
    """(a * b + (old << left)) >> right, rounded and saturated to `target`."""
    total = exact(np.multiply, a, b) + (old.astype(_LONG) << left)
    return saturated(shift_right(total, right, mode), target)
