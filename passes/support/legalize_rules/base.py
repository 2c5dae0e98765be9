"""What a legalization rule is, and the table of rules.

    @legalizes("avg_pool")
    def border_means(op, draft):
        ...
        return draft.emit("scale", [...])

A rule drafts ops that compute what `op` computes, and returns the values that stand for its results; it returns None
when it has nothing to offer. It knows no target: a draft is used only where the target refuses the op and takes all
ops of the draft, or what other rules make of them. It is asked about floats, and about integers only where it is
declared for them: their rounding, saturation and zero points have to come out the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bmcompiler.ir import Module, TensorType, Value, type_of_array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.passes.rewriting import make, producer, rebuild

if TYPE_CHECKING:
    import numpy as np


class Draft:
    """Ops that may take the place of `op`, by the rule called `rule`. They are in no block yet."""

    def __init__(self, module: Module, op: TensorOp, rule: str = "") -> None:
        self.module, self.op, self.rule = module, op, rule
        self.ops: list[TensorOp] = []

    def emit(self, name: str, operands: Sequence[Value | None], **attributes: Any) -> Value:
        """Draft an op with one result; its type is inferred."""
        return self.add(make(name, operands, attributes, None, self.op.location)).result

    def like(self, operands: Sequence[Value | None], **changes: Any) -> Value:
        """Draft `op` on other operands, with some attributes changed and the element type that it gives."""
        new = rebuild(self.op, [value for value in operands if value is not None], **changes)
        for note in [name for name in new.attributes if "." in name]:
            del new.attributes[note]
        return self.add(new).result

    def add(self, op: TensorOp) -> TensorOp:
        """Take up an op that the rule made itself; returns it."""
        self.ops.append(op)
        return op

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """`x` in another shape; `x` itself when it has that shape; a constant stays one."""
        if x.shape == tuple(shape):
            return x
        array = self.constant(x)
        if array is not None:
            return self.weight(array.reshape(shape), "reshaped")
        return self.emit("reshape", [x], shape=tuple(shape))

    def weight(self, array: np.ndarray, what: str, type: TensorType | None = None) -> Value:
        """A new constant named after the layer and `what`."""
        key = self.module.weights.add(f"{self.op.label}.{what}", array)
        return self.add(make("weight", (), {"key": key}, [type or type_of_array(array)], self.op.location)).result

    def constant(self, value: Value | None) -> np.ndarray | None:
        """The array behind a weight, None for everything else."""
        weight = producer(value, Weight)
        return None if weight is None else self.module.weights.get(weight.key)

    def discard(self) -> None:
        """Forget all drafted ops and constants."""
        for op in reversed(self.ops):
            if isinstance(op, Weight):
                self.module.weights.pop(op.key, None)
            op.erase()
        self.ops = []


Rule = Callable[[TensorOp, Draft], "Value | None"]
_Op = TypeVar("_Op", bound=TensorOp)
_TypedRule = Callable[[_Op, Draft], "Value | None"]

RULES: dict[type[TensorOp], list[Rule]] = {}
"""Class of an op -> rules in the order they are tried."""
FOR_INTEGERS: set[Rule] = set()
"""Rules that hold for integers as well."""
BROADCASTING: list[Rule] = []
"""Rules for all ops that broadcast, tried after their own."""


def rules_of_kind(kind: type[TensorOp]) -> list[Rule]:
    """The rules for ops of a class, in the order they are tried."""
    return [*RULES.get(kind, ()), *(BROADCASTING if kind.broadcasts else ())]


def rules_of(op: TensorOp) -> list[Rule]:
    """The rules to try for an op, in this order."""
    rules = rules_of_kind(type(op))
    if any(value.type.is_integer for value in (*op.operands[:1], *op.results)):
        return [rule for rule in rules if rule in FOR_INTEGERS]
    return rules


def legalizes(*kinds: type[_Op], integers: bool = False) -> Callable[[_TypedRule[_Op]], _TypedRule[_Op]]:
    """Declare a rule for ops with one result. Its name and docstring go into SUPPORTED_OPS.md.

    Args:
        integers: it holds for integers as well.
    """

    def register(rule: _TypedRule[_Op]) -> _TypedRule[_Op]:
        if integers:
            FOR_INTEGERS.add(cast(Rule, rule))
        for kind in kinds:
            RULES.setdefault(kind, []).append(cast(Rule, rule))  # it is tried on ops of its class only
        return rule

    return register


def legalizes_broadcasting(rule: Rule) -> Rule:
    """Declare a rule for all ops that broadcast (`TensorOp.broadcasts`), of any element type."""
    BROADCASTING.append(rule)
    FOR_INTEGERS.add(rule)
    return rule
