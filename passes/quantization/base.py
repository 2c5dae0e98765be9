"""What a quantization rule is, and the table of rules.

    @COMMON.rule("relu", scaling=Scaling.KEEPS)
    def relu(op, low):
        return low.emit("relu", [low.request(op.operands[0])])

A rule builds the integer ops that stand for one float op and returns its results, one i8 value with a quantization per
float result; it raises `NoInt8Form` with the reason when this op (with these attributes) has no such form.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bmcompiler.ir import Operation, Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.ops.activation import FloatUnary
from bmcompiler.ops.base import TensorOp

Build = Callable[[TensorOp, Any], "Value | Sequence[Value]"]
"""(float op, the `Forms` of the scheme) -> integer results."""
_Build = TypeVar("_Build", bound=Build)


class Scaling(enum.Enum):
    """What decides the threshold of an op's result."""

    FREE = "any threshold at no cost"
    KEEPS = "that of its first operand"
    JOINS = "the one threshold that all operands share"
    PRODUCT = "the thresholds of two operands, up to a power of two"


class NoInt8Form(Exception):  # noqa: N818 - not an error: it is how a rule says no
    """This op stays in float; the text says why, without a full stop."""


@dataclass(frozen=True)
class Rule:
    """How ops of one kind are quantized: what builds the integer form, what decides the threshold of the result."""

    build: Build
    scaling: Callable[[Operation], Scaling]


POINTWISE = ""
"""Name of the rule for functions of one float tensor that have none of their own."""


class Rules(dict[str, Rule]):
    """Short op name -> rule, of one scheme; ask with `of`."""

    def of(self, op: type[Operation]) -> Rule | None:
        """The rule for a class of ops, None when it stays in float."""
        if not issubclass(op, TensorOp):
            return None
        return self.get(op.opname) or (self.get(POINTWISE) if op.pointwise and issubclass(op, FloatUnary) else None)

    def rule(self, *names: str, scaling: Scaling | Callable[[Operation], Scaling]) -> Callable[[_Build], _Build]:
        """Declare the rule of ops; `scaling` may depend on the op. Raises ValueError when an op has a rule already."""

        def register(build: _Build) -> _Build:
            decide = (lambda op, fixed=scaling: fixed) if isinstance(scaling, Scaling) else scaling
            for name in names:
                if name in self:
                    raise ValueError(f"two quantization rules for {name}")
                self[name] = Rule(build, decide)
            return build

        return register


COMMON = Rules()
"""Rules of all schemes; each begins its own table with them (filled by `quantization.rules.table`)."""


def is_constant(value: Value) -> bool:
    """Whether a value is a weight."""
    return is_weight(value)
