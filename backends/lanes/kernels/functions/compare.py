"""Comparison, choice, and logic of bits and booleans."""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.lanes.kernels.functions.elementwise import ElementwiseKernel
from bmcompiler.backends.lanes.recipes import Recorder, Register, logic
from bmcompiler.backends.lanes.recipes.rounding import int_difference
from bmcompiler.backends.lanes.recipes.words import LOADABLE, as_float, as_int
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.functions import IsInf, IsNan
from bmcompiler.ops.elements.integer import BitAnd, BitOr, BitXor
from bmcompiler.ops.elements.logic import BitNot, Compare, Where
from bmcompiler.target import rule


class CompareKernel(ElementwiseKernel[Compare]):
    """compare: floats and what converts to floats exactly; 32-bit integers by the sign of their difference."""

    ops = (Compare,)

    @rule("Operands must be f32, i32, i16, u16, i8, u8 or bool")
    def known_types(self, op: Compare) -> bool:
        return op.a.dtype in LOADABLE

    def recipe(self, op: Compare) -> tuple[Any, ...]:
        return _compare, op.a.dtype, op.method


def _compare(m: Recorder, a: Register, b: Register, dtype: str, method: str) -> Register:
    if dtype == "i32":
        difference = int_difference(m, a, b)
        return logic.COMPARISONS[method](m, difference, m.copy(0.0))
    return logic.COMPARISONS[method](m, as_float(m, a, dtype), as_float(m, b, dtype))


class FloatTestKernel(ElementwiseKernel[IsNan | IsInf]):
    """is_nan and is_inf."""

    ops = (IsNan, IsInf)

    @rule("The operand must be f32")
    def known_types(self, op: IsNan | IsInf) -> bool:
        return bool(op.x.dtype == "f32")

    def recipe(self, op: IsNan | IsInf) -> tuple[Any, ...]:
        return (logic.is_inf, op.positive, op.negative) if isinstance(op, IsInf) else (logic.is_nan,)


class WhereKernel(ElementwiseKernel[Where]):
    """where: words are copied as they are; bytes, which are floats in the tile, become integers again."""

    ops = (Where,)

    @rule("Operands must be f32, i32, i16, u16, i8, u8 or bool")
    def known_types(self, op: Where) -> bool:
        return op.type.dtype in LOADABLE

    def recipe(self, op: Where) -> tuple[Any, ...]:
        return _where, op.type.dtype


def _where(m: Recorder, condition: Register, a: Register, b: Register, dtype: str) -> Register:
    chosen = logic.where(m, condition, a, b)
    return m.to_int(chosen) if dtype in ("i8", "u8", "bool") else chosen


class BitKernel(ElementwiseKernel[TensorOp]):
    """bit_and, bit_or, bit_xor, bit_not of integers and booleans."""

    ops = (BitAnd, BitOr, BitXor, BitNot)

    @rule("Operands must be i32, i16, u16, i8, u8 or bool")
    def known_types(self, op: TensorOp) -> bool:
        return all(v.dtype in LOADABLE for v in op.operands)  # floats have no such op

    def recipe(self, op: TensorOp) -> tuple[Any, ...]:
        return _bits, op.opname, op.type.dtype


def _bits(m: Recorder, *operands: Any) -> Register:
    *registers, name, dtype = operands
    words = [as_int(m, x, dtype) for x in registers]
    if name == "bit_not":
        return m.xor(words[0], 1 if dtype == "bool" else 0xFFFF_FFFF)
    return {"bit_and": m.and_, "bit_or": m.or_, "bit_xor": m.xor}[name](*words)
