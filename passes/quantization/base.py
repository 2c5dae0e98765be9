"""How a float op becomes integer ops: what a conversion is, and the table of them.

    @COMMON.converts(Relu, scaling=Scaling.KEEPS)
    def relu(op, low):
        return low.emit("relu", [low.request(op.operands[0])])

It builds the integer ops that stand for one float op and returns its results, one i8 value with a quantization per
float result; it raises `NoInt8Form` with the reason when this op (with these attributes) has no such form.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from bmcompiler.ir import Operation, Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import FloatUnary
from bmcompiler.ops.places.shape import Moving

Build = Callable[[TensorOp, Any], "Value | Sequence[Value]"]
"""(float op, the `Forms` of the scheme) -> integer results."""
_Op = TypeVar("_Op", bound=TensorOp)
_Low = TypeVar("_Low")
_Built = TypeVar("_Built", bound="Value | Sequence[Value]")
_TypedBuild = Callable[[_Op, _Low], _Built]


class Scaling(enum.Enum):
    """What decides the threshold of an op's result."""

    FREE = "any threshold at no cost"
    KEEPS = "that of its first operand"
    JOINS = "the one threshold that all operands share"
    PRODUCT = "the thresholds of two operands, up to a power of two"


class NoInt8Form(Exception):  # noqa: N818 - not an error: it is how a conversion says no
    """This op stays in float; the text says why, without a full stop."""


@dataclass(frozen=True)
class Conversion:
    """How ops of one kind are quantized: what builds the integer form, what decides the threshold of the result.

    elements: types of operands and results that it knows; what is not f32 stays what it is (`Building.given`).
    """

    build: Build
    scaling: Callable[[Operation], Scaling]
    elements: Sequence[str] = ("f32",)

    def knows(self, op: Operation) -> bool:
        """Whether it knows the types of all operands and results."""
        return all(value.dtype in self.elements for value in (*op.operands, *op.results))


class Conversions(dict[type[Operation], Conversion]):
    """Class of ops -> conversion, of one scheme; ask with `of`.

    Those of `FloatUnary` and `Moving` are for those ops on one tensor that have none of their own.
    """

    def of(self, op: type[Operation]) -> Conversion | None:
        """The conversion of a class of ops, None when it stays in float."""
        if op in self or not issubclass(op, TensorOp) or [operand.variadic for operand in op.ins] != [False]:
            return self.get(op)
        if issubclass(op, Moving):
            return self.get(Moving)
        return self.get(FloatUnary) if issubclass(op, FloatUnary) and op.pointwise else None

    def converts(
        self,
        *kinds: type[_Op],
        scaling: Scaling | Callable[[Operation], Scaling],
        elements: Sequence[str] = ("f32",),
    ) -> Callable[[_TypedBuild[_Op, _Low, _Built]], _TypedBuild[_Op, _Low, _Built]]:
        """Declare the conversion of ops; `scaling` may depend on the op. Raises ValueError for an op that has one."""

        def register(build: _TypedBuild[_Op, _Low, _Built]) -> _TypedBuild[_Op, _Low, _Built]:
            decide = (lambda op, fixed=scaling: fixed) if isinstance(scaling, Scaling) else scaling
            for kind in kinds:
                if kind in self:
                    raise ValueError(f"two conversions of {kind.opname}")
                self[kind] = Conversion(cast(Build, build), decide, elements)  # `of` gives it ops of its class only
            return build

        return register


COMMON = Conversions()
"""Those of all schemes; each begins its own table with them (filled by `quantization.conversions.table`)."""


def is_constant(value: Value) -> bool:
    """Whether a value is a weight."""
    return is_weight(value)
