"""Shifts whose counts are tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.lanes.kernels.functions.elementwise import ElementwiseKernel
from bmcompiler.backends.lanes.recipes import Recorder, Register
from bmcompiler.backends.lanes.recipes.rounding import int_to_float
from bmcompiler.backends.lanes.recipes.words import as_float, as_int, saturated
from bmcompiler.ir.types import DTYPES
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.logic import ArithShift, BitShift, RoundRshiftBy
from bmcompiler.target import rule

_MOST = 31
"""Places of one shift of a word."""
_WIDTH = 32.0
"""From so many places on nothing is left of any element."""
_HALVES = ("i8", "u8", "i16", "u16")
_INTEGERS = (*_HALVES, "i32")


class ShiftKernel(ElementwiseKernel[TensorOp]):
    """arith_shift, bit_shift and round_rshift_by."""

    ops = (ArithShift, BitShift, RoundRshiftBy)

    @rule("Operands must be i8, u8, i16, u16 or i32, and rounded ones no i32")
    def known_types(self, op: TensorOp) -> bool:
        shifted = _HALVES if isinstance(op, RoundRshiftBy) else _INTEGERS
        return op.operands[0].dtype in shifted and all(v.dtype in _INTEGERS for v in (*op.operands, op.result))

    @rule("The result of a rounded shift must not be i32")
    def known_result(self, op: TensorOp) -> bool:
        return not isinstance(op, RoundRshiftBy) or op.type.dtype in _HALVES

    def recipe(self, op: TensorOp) -> tuple[Any, ...]:
        types = op.operands[0].dtype, op.operands[1].dtype
        if isinstance(op, RoundRshiftBy):
            return _rounded, *types, op.type.dtype
        return _moved if isinstance(op, ArithShift) else _moved_bits, *types, op.attributes["direction"] == "left"


def _moved(m: Recorder, x: Register, places: Register, dtype: str, counts: str, left: bool) -> Register:
    """Words of 32 bits can move further than one shift does; of narrower ones nothing is left by then."""
    by = as_float(m, places, counts)
    return _moved_by(m, x, by if left else m.neg(by), dtype, np.iinfo(DTYPES[counts][1]).max > _MOST)


def _moved_bits(m: Recorder, x: Register, places: Register, dtype: str, counts: str, left: bool) -> Register:
    """A count below 0 is a large one, after which nothing is left of an element but its sign."""
    by = as_float(m, places, counts)
    by = m.min(m.choose(-0.5, by, _WIDTH, by), _WIDTH)
    return _moved_by(m, x, by if left else m.neg(by), dtype, dtype == "i32")


def _moved_by(m: Recorder, x: Register, by: Register, dtype: str, far: bool) -> Register:
    """Up by so many bits, or down where that is below 0. far: by more than one shift does, if that is seen."""
    first = m.max(m.min(by, _MOST), -_MOST)
    moved = m.shift(as_int(m, x, dtype), m.to_int(first), arithmetic=True)
    if dtype != "i32" or not far:
        return moved
    rest = m.max(m.min(m.sub(by, first), _MOST), -_MOST)
    return m.shift(moved, m.to_int(rest), arithmetic=True)


def _rounded(m: Recorder, x: Register, places: Register, dtype: str, counts: str, target: str) -> Register:
    """((x >> (n - 1)) + 1) >> 1, which is exact in floats between the shifts; x for n = 0."""
    count = m.max(m.min(as_float(m, places, counts), _MOST), 0.0)
    value = as_int(m, x, dtype)
    half = m.shift(value, m.to_int(m.min(m.sub(1.0, count), 0.0)), arithmetic=True)
    up = m.to_int(m.add(int_to_float(m, half), 1.0))
    rounded = int_to_float(m, m.shift(up, -1, arithmetic=True))
    return m.to_int(saturated(m, m.choose(count, 0.5, rounded, int_to_float(m, value)), target))
