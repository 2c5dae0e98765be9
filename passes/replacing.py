"""Layers of one's own in the place of ops: what a package says of a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, activates, make
from bmcompiler.plugins.custom_layers import CUSTOMIZED
from bmcompiler.target import unsupported_reason

Numbers = tuple[Sequence[int], Sequence[float]]


@dataclass(frozen=True)
class ReplacePattern(TargetPatternPass):
    """Base of passes of other packages: where the target runs the layer, it takes the place of what matches.

    1. the ops of `pattern`, each result but the last read by one of them alone : `customized` of sub type `layer`

        class AddNorm(ReplacePattern):
            name, canonicalize_after = "add-norm", "fuse-norms"
            pattern, layer = ("layer_norm", ("add", "x", "y"), "gamma", "beta"), "AddNorm"

            def numbers(self, norm, add):
                return (), (norm.epsilon,)

    Class attributes:
        pattern: the last op as (its name, what it reads...): a name stands for an operand of the layer, the same name
            for the same value; a tuple for an op. Operands come in the order in which names appear.
        layer: the sub type.
    """

    requires = (NO_THRESHOLDS, NO_LAYOUT)
    pattern: ClassVar[tuple[Any, ...]] = ()
    layer: ClassVar[str] = ""

    def numbers(self, *ops: Any) -> Numbers | None:
        """`i32_params` and `f32_params` of the layer; None where the ops are not what its kernel computes.

        Args:
            ops: those that match, in the order in which the pattern names them. They apply no activation.
        """
        return (), ()

    def table(self) -> PatternTable:
        return {TensorOp: (self.replace,)}

    def replace(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 1."""
        operands, ops = dict[str, Value](), list[TensorOp]()
        if not _matches(self.pattern, op, operands, ops):
            return False
        numbers = self.numbers(*ops)
        if numbers is None:
            return False
        ints, floats = numbers
        shapes = [result.shape for result in op.results]
        attributes = {"sub_type": self.layer, "output_shapes": shapes, "i32_params": ints, "f32_params": floats}
        made = make(CUSTOMIZED, operands.values(), attributes, [result.type for result in op.results])
        if unsupported_reason(self.target, made) is not None:
            made.drop_operands()
            return False
        rewriter.replace_with(op, made)
        return True


def _matches(pattern: tuple[Any, ...], op: TensorOp, operands: dict[str, Value], ops: list[TensorOp]) -> bool:
    """Whether an op is the last one of a pattern; fills what its names stand for, and the ops in it."""
    name, *read = pattern
    if op.short_name != name or len(op.operands) != len(read) or activates(op):
        return False
    ops.append(op)
    for wanted, value in zip(read, op.operands):
        if isinstance(wanted, str):
            if operands.setdefault(wanted, value) is not value:
                return False
            continue
        inside = value.op
        if not isinstance(inside, TensorOp) or len(value.uses) != 1 or len(inside.results) != 1:
            return False
        if not _matches(wanted, inside, operands, ops):
            return False
    return True
