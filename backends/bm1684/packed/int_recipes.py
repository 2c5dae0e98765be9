"""Integer element-wise ops as commands on packed integers (bm1684.md 6.4, 7.3; bm1684-recipes.md)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, permutations
from typing import Any

from bmcompiler.backends.bm1684.isa import Eu
from bmcompiler.backends.bm1684.packed.int_steps import IntMachine, IntProgram, NotExactError, Register, limits, record
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Prelu, Relu
from bmcompiler.ops.elements.elementwise import Add, Max, Min, Mul, Sub
from bmcompiler.ops.elements.integer import (
    AddShift,
    AddsShift,
    BitAnd,
    BitOr,
    BitXor,
    Cast,
    MacShift,
    Maxs,
    Mins,
    MulShift,
    MulsShift,
    RoundRshift,
    SubShift,
)
from bmcompiler.ops.elements.logic import BitNot, Compare, Where

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


PACKED = ("i8", "u8", "i16", "u16", "bool")
"""Element types of which a word holds several."""
_MOST_ORDERS = 24


def add(m: IntMachine, a: Register, b: Register, dtype: str, right: int = 0, activation: str = "") -> Register:
    """Sum; "relu" is the maximum with 0."""
    total = m.add(a, b, dtype, right)
    return m.max(total, 0) if activation and total.span[0] < 0 else total


def muls(m: IntMachine, x: Register, dtype: str, multiplier: int, right: int) -> Register:
    """x times a constant: one command where both are bytes, three for a factor of two bytes, six for such an x.

    Factors of two leave the multiplier and the shift together: round_shift(2 * v, s) = round_shift(v, s - 1).
    """
    while right and multiplier % 2 == 0:
        multiplier, right = multiplier // 2, right - 1
    if x.item == 2:
        return _muls_16(m, x, dtype, multiplier, right)
    if -128 <= multiplier <= 255:
        return m.mul(x, multiplier, dtype, right)
    # x may be read as unsigned in the last product only where the first one is not negative.
    low = multiplier & 255
    if x.span[0] >= 0 and (multiplier < 0 or low < 128):
        low = (low ^ 128) - 128
    high = (multiplier - low) >> 8
    if not -128 <= high <= 255:
        raise NotExactError("the multiplier has more than 16 bits")
    return m.mac(m.product(x, high), x, low, dtype, right, 8)


def _muls_16(m: IntMachine, x: Register, dtype: str, multiplier: int, right: int) -> Register:
    """(high byte * multiplier << 8) + low byte * multiplier; floor(x / 256) = round_shift(x - 128, 8)."""
    if not -128 <= multiplier <= 255:
        raise NotExactError("one of the factors must have 8 bits")
    signed = x.span[0] < 0
    high = m.add(x, -128, "i8", 8) if signed else m.cast(m.bits(Eu.SHIFT, x, -8, (0, 255)), "u8")
    low = m.cast(m.bits(Eu.AND, x, 255, (0, 255)), "u8")
    return m.mac(m.product(high, multiplier), low, multiplier, dtype, right, 8)


def weighted_sum(m: IntMachine, *rest: Any) -> Register:
    """Sum of multipliers times bytes, all but the last product added up in 16 bits, in the order given.

    Terms without weight are left out; a factor of two in all multipliers is one step less of the shift.
    """
    *registers, dtype, multipliers, right, order = rest
    while right and all(multiplier % 2 == 0 for multiplier in multipliers) and any(multipliers):
        multipliers, right = [multiplier // 2 for multiplier in multipliers], right - 1
    terms = [(registers[i], multipliers[i]) for i in order if multipliers[i]] or [(registers[0], 0)]
    first, *others = terms
    if not others:
        return muls(m, first[0], dtype, first[1], right)
    total = m.product(*first)
    for number, (x, multiplier) in enumerate(others, 1):
        low, high = sorted(multiplier * bound for bound in x.span)
        span = (total.span[0] + low, total.span[1] + high)
        last = number == len(others)
        total = m.mac(total, x, multiplier, dtype if last else m.wide(span), right if last else 0)
    return total


def prelu(
    m: IntMachine, x: Register, slope: Register, dtype: str, multiplier: int, right: int, slope_right: int
) -> Register:
    """One of both terms is 0 everywhere (`ops.activation.Prelu`).

    Where no slope is steeper than what is above 0, it is the larger one of both without cutting x: shifts round all
    alike, so that the order of the products stays.
    """
    if limits("i8")[1] << right <= multiplier << slope_right:
        kept = multiplier == 1 << right
        return m.max(x if kept else m.mul(x, multiplier, dtype, right), m.mul(x, slope, dtype, slope_right))
    above = m.mul(m.max(x, 0), multiplier, dtype, right)
    below = m.mul(m.min(x, 0), slope, dtype, slope_right)
    return m.bits(Eu.OR, above, below, (-128, 127))


_TAKEN = (
    *(Add, Sub, Mul, Max, Min, Relu, Prelu),
    *(AddShift, SubShift, MulShift, MulsShift, AddsShift, RoundRshift, MacShift, Maxs, Mins),
    *LOGIC,
)


def program(op: TensorOp) -> IntProgram | None:
    """The commands for an op on packed integers; None where there are none that are exact for all values."""
    dtypes = tuple(v.dtype for v in op.operands)
    if not isinstance(op, _TAKEN) or not {*dtypes, op.type.dtype} <= {*PACKED} or op.attributes.get("wrap"):
        return None
    for recipe, *arguments in _recipes(op):
        found = _recorded(recipe, dtypes, *arguments)
        if found is not None:
            return found
    return None


@lru_cache(maxsize=1024)
def _recorded(recipe: Any, dtypes: tuple[str, ...], *arguments: Any) -> IntProgram | None:
    try:
        return record(recipe, dtypes, *arguments)
    except NotExactError:
        return None


def _recipes(op: TensorOp) -> Iterator[tuple[Any, ...]]:
    """(recipe, arguments after the registers) to try."""
    dtype = op.type.dtype
    if isinstance(op, MacShift):
        for order in islice(permutations(range(len(op.operands))), _MOST_ORDERS):
            yield weighted_sum, dtype, op.multipliers, op.rshift, order
    elif isinstance(op, LOGIC):
        yield logic_recipe(op)
    elif isinstance(op, Add):
        yield add, dtype, 0, op.activation
    elif isinstance(op, MulsShift):
        yield muls, dtype, op.multiplier, op.rshift
    elif isinstance(op, AddsShift):
        yield IntMachine.add, op.value, dtype, op.rshift
    elif isinstance(op, RoundRshift):
        yield IntMachine.add, 0, dtype, op.rshift
    elif isinstance(op, Prelu):
        yield prelu, dtype, op.multiplier, op.rshift, op.slope_rshift
    elif isinstance(op, (Relu, Maxs, Mins)):
        yield (IntMachine.min if isinstance(op, Mins) else IntMachine.max), 0 if isinstance(op, Relu) else op.value
    elif isinstance(op, (Max, Min)):
        yield (IntMachine.max if isinstance(op, Max) else IntMachine.min,)
    else:
        yield _BINARY[type(op)], dtype, op.attributes.get("rshift", 0)


_BINARY: dict[type[TensorOp], Any] = {
    AddShift: IntMachine.add,
    Sub: IntMachine.sub,
    SubShift: IntMachine.sub,
    Mul: IntMachine.mul,
    MulShift: IntMachine.mul,
}
