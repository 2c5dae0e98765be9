"""Integer arithmetic element by element as commands of the unit AR, on integers of any width (bm1684x-vector.md 4.2).

Sums and products are exact before their shift. A result is signed where an operand is; what shall have no sign then is
made with twice the bits and converted, which saturates again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.bm1684x.codes import Ar
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Relu
from bmcompiler.ops.elements.elementwise import Max, Min
from bmcompiler.ops.elements.integer import (
    AddShift,
    AddsShift,
    AffineSum,
    Maxs,
    MulShift,
    MulsShift,
    RoundRshift,
    SubShift,
    WeightedSum,
)

_WIDER = {"u8": "i16", "i8": "u16", "u16": "i32"}
"""Of the other sign, with all values of a type."""


class Register(NamedTuple):
    """An operand of the op, a tensor on the way (numbers from -1 down), or the result: -100."""

    number: int
    dtype: str


class Number(NamedTuple):
    """A constant that a step takes in place of a register."""

    value: int
    signed: bool


RESULT = -100
Source = Register | Number


@dataclass(frozen=True)
class Step:
    """target = saturate((a unit b) >> shift), halves up; of CAST, a saturated."""

    unit: Ar
    target: Register
    a: Register
    b: Source | None = None
    shift: int = 0


def steps_of(op: TensorOp) -> list[Step] | None:
    """The commands of an op, None for what they do not reach."""
    try:
        return _Maker(op).made()
    except ValueError:
        return None


class _Maker:
    def __init__(self, op: TensorOp) -> None:
        self.op, self.steps = op, list[Step]()
        self.operands = [Register(i, value.dtype) for i, value in enumerate(op.operands)]
        self.result = Register(RESULT, op.results[0].dtype)

    def made(self) -> list[Step]:
        op, first, second = self.op, self.operands[0], self.operands[-1]
        shift = int(op.attributes.get("rshift", 0))
        if isinstance(op, WeightedSum):
            self.weighted(op, shift)
        elif isinstance(op, MulShift):
            self.end(Ar.MUL, first, second, shift)
        elif isinstance(op, AddShift):
            self.end(Ar.ADD, first, second, shift)
        elif isinstance(op, SubShift):
            self.end(Ar.SUB, first, second, shift)
        elif isinstance(op, MulsShift):
            self.end(Ar.MUL, first, self.number(op.multiplier), shift)
        elif isinstance(op, AddsShift):
            self.end(Ar.ADD, first, self.number(op.value), shift)
        elif isinstance(op, RoundRshift):
            self.end(Ar.MUL, first, self.number(1), shift)
        else:
            self.extreme(shift)
        return self.steps

    def extreme(self, shift: int) -> None:
        op, (first, *rest) = self.op, self.operands
        if shift or {each.dtype for each in (first, *rest, self.result)} != {first.dtype}:
            raise ValueError("several types")
        unit = Ar.MAX if isinstance(op, (Relu, Max, Maxs)) else Ar.MIN
        other: Source = Number(int(op.attributes.get("value", 0)), signed(first.dtype))
        if isinstance(op, (Max, Min)):
            other = rest[0]
        self.steps.append(Step(unit, self.result, first, other))

    def weighted(self, op: WeightedSum, shift: int) -> None:
        value = op.value if isinstance(op, AffineSum) else 0
        terms = list(zip(self.operands, op.multipliers))
        if len(terms) == 1 and not value:
            self.end(Ar.MUL, terms[0][0], self.number(terms[0][1]), shift)
            return
        bound = abs(value) + sum(_most(each.dtype) * abs(m) for each, m in terms)
        last = terms.pop() if not value else None
        total: Register | None = None
        for k, (each, multiplier) in enumerate(terms):
            dtype = _holding(bound if k else _most(each.dtype) * abs(multiplier))
            total = self.add_to(total, self.times(each, multiplier, dtype), dtype)
        assert total is not None, "there is at least one term"
        if last is None:
            self.end(Ar.ADD, total, self.number(value), shift)
            return
        each, multiplier = last
        if multiplier == -1:
            self.end(Ar.SUB, total, each, shift)
        else:
            self.end(Ar.ADD, total, self.times(each, multiplier, _holding(_most(each.dtype) * abs(multiplier))), shift)

    def times(self, each: Register, multiplier: int, dtype: str) -> Register:
        if multiplier == 1:
            return each
        target = self.fresh(dtype)
        self.steps.append(Step(Ar.MUL, target, each, Number(multiplier, True)))
        return target

    def add_to(self, total: Register | None, term: Register, dtype: str) -> Register:
        if total is None:
            return term
        target = self.fresh(dtype)
        self.steps.append(Step(Ar.ADD, target, total, term))
        return target

    def end(self, unit: Ar, a: Register, b: Source, shift: int) -> None:
        """The last command, and one that takes the sign away where it has to."""
        natural = unit is Ar.SUB or signed(a.dtype) or (b.signed if isinstance(b, Number) else signed(b.dtype))
        relu = bool(self.op.attributes.get("activation")) and signed(self.result.dtype)
        if relu:
            raise ValueError("an activation")
        if natural == signed(self.result.dtype):
            self.steps.append(Step(unit, self.result, a, b, shift))
            return
        wide = self.fresh(_WIDER[self.result.dtype]) if self.result.dtype in _WIDER else None
        if wide is None:
            raise ValueError("no wider type")
        self.steps += [Step(unit, wide, a, b, shift), Step(Ar.CAST, self.result, wide)]

    def number(self, value: int) -> Number:
        """A constant, without sign where that makes the result one without."""
        if not -(1 << 31) <= value < 1 << 31:
            raise ValueError("a constant of more than 32 bits")
        return Number(value, value < 0 or signed(self.result.dtype))

    def fresh(self, dtype: str) -> Register:
        return Register(-1 - sum(step.target.number != RESULT for step in self.steps), dtype)


def signed(dtype: str) -> bool:
    """Whether integers of a type have a sign."""
    return not dtype.startswith("u")


def _most(dtype: str) -> int:
    limits = np.iinfo(numpy_dtype(dtype))
    return max(-int(limits.min), int(limits.max))


def _holding(bound: int) -> str:
    """The type of numbers up to a magnitude. Raises ValueError where there is none."""
    if bound >= 1 << 31:
        raise ValueError("sums of more than 32 bits")
    return "i16" if bound < 1 << 15 else "i32"
