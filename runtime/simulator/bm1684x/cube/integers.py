"""How sums of integers become results: wrapped to 32 bits, shifted, saturated (bm1684x-cube.md 4, 5.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.codes import Precision
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import IntArray
from bmcompiler.numeric.rounding import shift_right
from bmcompiler.runtime.simulator.bm1684x.operands import Operands, dtype_of
from bmcompiler.runtime.simulator.bm1684x.vector.integers import saturated

INTEGER_RESULTS = (Precision.INT8, Precision.INT16, Precision.INT32)
_MOST_SHIFT = 31


def result_type(ops: Operands, signed: bool, *allowed: Precision) -> np.dtype[Any]:
    """numpy type of an integer result. Raises SimulatorError for precisions that the command does not have."""
    precision = ops.precision("res0")
    if precision not in (allowed or INTEGER_RESULTS):
        raise SimulatorError(f"the result of this command cannot be {precision.name.lower()}")
    return dtype_of(precision, signed)


def signed_by(ops: Operands, *names: str) -> bool:
    """Whether any of these operands is signed."""
    return any(ops.signed(name) for name in names)


def wrapped(sums: IntArray, signed: bool) -> IntArray:
    """Integers as a 32-bit accumulator holds them."""
    return sums.astype(np.int32 if signed else np.uint32, copy=False)


def shift_of(value: int) -> int:
    """A right shift. Raises SimulatorError outside of 0 to 31."""
    if not 0 <= value <= _MOST_SHIFT:
        raise SimulatorError(f"a right shift by {value} has no known result")
    return value


def requantized(sums: IntArray, shift: int, mode: int, dtype: np.dtype[Any], relu: bool = False) -> IntArray:
    """Sums shifted right with rounding, then in the range of `dtype`; `relu`: 0 for negative ones."""
    values = shift_right(sums, shift, mode)
    return saturated(np.maximum(values, 0) if relu else values, dtype)
