"""Integers of 64 bits, and unsigned ones of 32, inside a net as i32, wherever that changes no result."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeGuard, cast

import numpy as np

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS, SOURCE_TYPES
from bmcompiler.ir import Function, Module, TensorType, Value, erase_dead, type_of_array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.ops.elements.elementwise import Arithmetic, Div, Extreme, Mod
from bmcompiler.ops.elements.integer import Bitwise, Cast
from bmcompiler.ops.elements.logic import BitNot, BitShift, Compare, Where
from bmcompiler.ops.layers.reduce import Reduce
from bmcompiler.ops.places.index import OneHot, Trilu
from bmcompiler.ops.places.order import Cumulate
from bmcompiler.passes.rewriting import hand_name, make, rebuild
from bmcompiler.passes.simplify.spans import Span, Spans, limits, same_type
from bmcompiler.passmanager import Pass, PassContext, PassResult

_WIDE, _NARROW = ("i64", "u64", "u32"), "i32"


class _Need(IntEnum):
    """What must be right of a number."""

    INDEX = 0
    """All of it where it may be an index of an axis; that it is none otherwise."""
    LOW = 1
    """Its low 32 bits."""
    CLIPPED = 2
    """The nearest number that i32 has."""
    ALL = 3


@dataclass(frozen=True)
class NarrowIntegers(Pass):
    """Compute in i32 what is computed in i64, u64 or u32 and needs no more.

    1. Indices: an op that picks by them takes i32 ones. Sums, differences and products on their way to it are modulo
       2**32, as an index that does not fit 32 bits is none.
    2. Casts from these types, comparisons of them and what one_hot tells apart: where types, constants and ops on the
       way say that all numbers fit i32. What was cast to an unsigned type on the way is at least 0.
    3. A saturating cast to i32 of reals that were cut to i64: both saturate, so one cast does.
    4. Reals that are cut to i64 and become f32 again: those below 2**31 by i32, and larger ones are whole already.
    """

    name = "narrow-integers"
    requires = (SOURCE_TYPES, NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        return PassResult(any([_Narrowing(module, function).run() for function in module.functions]))


@dataclass
class _Narrowing:
    module: Module
    function: Function
    made: dict[Value, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.spans = Spans(self.module)

    def run(self) -> bool:
        changed = False
        for op in list(self.function.ops):
            if isinstance(op, TensorOp) and op.parent is not None:
                changed |= self.ends(op)
        if changed:
            erase_dead(self.function)
        return changed

    def ends(self, op: TensorOp) -> bool:
        """Take i32 operands, where this op has another type of result."""
        places, need = list(op.index_operands), _Need.INDEX
        if isinstance(op, OneHot):
            places, need = [0], _Need.ALL
        elif isinstance(op, (Cast, Compare)) and op.results[0].dtype not in _WIDE:
            if isinstance(op, Cast) and op.dtype == "f32" and _cuts(op.x.op):
                return self.cut(op)
            places, need = list(range(len(op.operands))), _Need.ALL
            if isinstance(op, Cast) and op.dtype == _NARROW:
                need = _Need.LOW if op.truncate else _Need.CLIPPED
        places = [place for place in places if op.operands[place].dtype in _WIDE]
        if not places or not all(self.fits(op.operands[place], need) for place in places):
            return False
        for place in places:
            op.set_operand(place, self.narrow(op.operands[place]))
        self.forward(op)
        return True

    def forward(self, op: TensorOp) -> None:
        """A cast to i32 has nothing left to do; outputs that are inputs, constants or other outputs keep it."""
        value = op.operands[0]
        made = isinstance(value.op, TensorOp) and not isinstance(value.op, Weight)
        if isinstance(op, Cast) and op.dtype == value.dtype and made and value not in self.function.returned:
            hand_name(op, value)
            op.result.replace_all_uses_with(value)

    def cut(self, op: Cast) -> bool:
        """Rule 4: i64 has no number beyond 2**63 either."""
        x = cast(Cast, op.x.op).x

        def made(name: str, *operands: Value, **attributes: object) -> Value:
            return self._before(op, make(name, operands, attributes, None, op.location))

        key = self.module.weights.add(f"{op.label}.limit", np.full((1,) * x.type.rank, 2.0**31, np.float32))
        type = type_of_array(self.module.weights[key])
        limit = self._before(op, make("weight", (), {"key": key}, [type], op.location))
        small = made("cast", made("cast", x, dtype=_NARROW, truncate=True), dtype="f32")
        large = made("compare", made("abs", x), limit, method="greater_equal")
        whole = made("where", large, made("clip", x, min=-(2.0**63), max=2.0**63), small)
        hand_name(op, whole)
        op.result.replace_all_uses_with(whole)
        return True

    # -- what fits -----------------------------------------------------------------------------------------------------
    def fits(self, value: Value, need: _Need) -> bool:
        """Whether `narrow` makes what is needed of a value."""
        op, dtype = value.op, value.dtype
        if dtype == _NARROW:
            return True
        if dtype not in _WIDE or not isinstance(op, TensorOp):
            return False
        known = inside(self.spans.of(value), _NARROW)
        if isinstance(op, Weight):
            return known
        if isinstance(op, Cast):
            return self.casts(op, need)
        inner = self.needed(op, need)
        if not known and (need is _Need.ALL or (need is _Need.CLIPPED and inner is not _Need.CLIPPED)):
            return False
        return inner is not None and all(self.fits(x, inner) for x in same_type(op))

    def casts(self, op: Cast, need: _Need) -> bool:
        """Whether `narrow` makes what is needed of a cast to a wide type."""
        if op.x.dtype == "f32":
            return _cuts(op) and need in (_Need.INDEX, _Need.CLIPPED)
        if op.x.dtype not in (*_SMALL, *_WIDE):
            return False
        same = inside(self.spans.of(op.x), op.dtype) or not op.truncate or need is _Need.LOW
        return same and self.fits(op.x, _Need.ALL) if op.x.dtype in _WIDE else same

    def needed(self, op: TensorOp, need: _Need) -> _Need | None:
        """What of its operands, where it may be computed in i32."""
        if need is _Need.CLIPPED and (isinstance(op, (Where, Extreme)) or op.moves_only):
            return need
        sums = isinstance(op, (Reduce, Cumulate)) and op.method == "sum"
        if sums or isinstance(op, (Arithmetic, Bitwise, BitNot)):
            return _Need.LOW
        if isinstance(op, (Where, Trilu)) or op.moves_only or (op.selects and op.index_operands):
            return _Need.LOW if need is _Need.ALL else need
        if isinstance(op, (Extreme, Mod, Div, BitShift)) or (isinstance(op, Reduce) and op.method in ("max", "min")):
            return _Need.ALL
        return None

    # -- in 32 bits ----------------------------------------------------------------------------------------------------
    def narrow(self, value: Value) -> Value:
        """The value as i32; `fits` said that this can be."""
        if value.dtype == _NARROW:
            return value
        if value not in self.made:
            op = cast("TensorOp", value.op)
            for old, new in zip(op.results, self._narrowed(op)):
                self.made[old] = new
        return self.made[value]

    def _narrowed(self, op: TensorOp) -> list[Value]:
        if isinstance(op, Weight):
            key = self.module.weights.add(f"{op.key}.{_NARROW}", self.module.weights[op.key].astype(np.int32))
            new = make("weight", (), {"key": key}, [type_of_array(self.module.weights[key])], op.location)
        elif isinstance(op, Cast):
            return [self._cast(op)]
        else:
            data = set(same_type(op))
            new = rebuild(op, [self.narrow(x) if x in data else x for x in op.operands])
            for result in new.results:
                result.type = TensorType(result.shape, _NARROW)
        self.function.body.insert_before(op, new)
        return list(new.results)

    def _cast(self, op: Cast) -> Value:
        """A cast as i32, of what is below 0 as an unsigned type has it."""
        x = op.x
        below = not op.truncate and not x.type.is_float and self.spans.of(x)[0] < limits(op.dtype)[0]
        if x.dtype in (_NARROW, *_WIDE):
            x = self.narrow(x)
        else:
            x = self._before(op, make("cast", [x], {"dtype": _NARROW, "truncate": op.truncate}, None, op.location))
        return self._before(op, make("relu", [x], {}, None, op.location)) if below else x

    def _before(self, op: TensorOp, new: TensorOp) -> Value:
        self.function.body.insert_before(op, new)
        return new.result


def _cuts(op: object) -> TypeGuard[Cast]:
    """Whether this makes i64 of f32 as programming languages do."""
    return isinstance(op, Cast) and op.truncate and (op.x.dtype, op.dtype) == ("f32", "i64")


def inside(span: Span, dtype: str) -> bool:
    """Whether an integer type has all numbers of a span."""
    low, high = limits(dtype)
    return low <= span[0] and span[1] <= high


_SMALL = ("i32", "i16", "u16", "i8", "u8", "bool")
"""Types whose numbers i32 has."""
