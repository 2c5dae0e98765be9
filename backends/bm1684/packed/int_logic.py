"""Conversion, comparison, choice and logic on packed integers (bm1684-recipes.md 30 to 53, 85, M7, M7s, M10)."""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.bm1684.isa import Eu
from bmcompiler.backends.bm1684.packed.int_steps import IntMachine, NotExactError, Register, limits
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.integer import BitAnd, BitOr, BitXor, Cast
from bmcompiler.ops.logic import BitNot, Compare, Where

_UNITS = {"bit_and": Eu.AND, "bit_or": Eu.OR, "bit_xor": Eu.XOR}
LOGIC = (BitAnd, BitOr, BitXor, BitNot, Compare, Where, Cast)


def logic_recipe(op: TensorOp) -> tuple[Any, ...]:
    """(recipe, arguments after the registers) of an op of `LOGIC`."""
    dtype = op.type.dtype
    if isinstance(op, Compare):
        return _compare, op.method
    if isinstance(op, Where):
        return (_where, dtype)
    if isinstance(op, Cast):
        return _cast, dtype, op.truncate
    if isinstance(op, BitNot):
        return _invert, dtype
    return _bits, _UNITS[op.opname], dtype


def _bits(m: IntMachine, a: Register, b: Register, unit: Eu, dtype: str) -> Register:
    return m.bits(unit, a, b, limits(dtype))


def _invert(m: IntMachine, x: Register, dtype: str) -> Register:
    return m.bits(Eu.XOR, x, 1 if dtype == "bool" else -1, limits(dtype))


def _cast(m: IntMachine, x: Register, dtype: str, truncate: bool) -> Register:
    low, high = limits(dtype)
    fits = low <= x.span[0] and x.span[1] <= high
    if not fits and (truncate or dtype == "bool"):
        raise NotExactError("saturation is not what is asked for")
    return m.cast(x, dtype)


def _compare(m: IntMachine, a: Register, b: Register, method: str) -> Register:
    if method == "equal":
        return _negated(m, _flag(m, m.bits(Eu.XOR, a, b, (0, (1 << 8 * a.item) - 1))))
    if method.startswith("less"):
        a, b = b, a
    if method.endswith("_equal"):
        return _negated(m, _above(m, b, a))
    return _above(m, a, b)


def _above(m: IntMachine, a: Register, b: Register) -> Register:
    """Whether a > b: the sign of a difference survives saturation."""
    return _flag(m, m.max(m.sub(a, b, "i16"), 0))


def _flag(m: IntMachine, x: Register) -> Register:
    """1 where x >= 0 is not 0."""
    return m.cast(m.min(x, 1), "bool")


def _negated(m: IntMachine, x: Register) -> Register:
    return m.bits(Eu.XOR, x, 1, (0, 1))


def _where(m: IntMachine, condition: Register, a: Register, b: Register, dtype: str) -> Register:
    """The bits of a ^ b where all bits of the mask are set, back on b."""
    mask = m.sub(0, condition, "i8" if a.item == 1 else "i16")
    different = m.bits(Eu.XOR, a, b, limits(dtype))
    return m.bits(Eu.XOR, m.bits(Eu.AND, different, mask, limits(dtype)), b, limits(dtype))
