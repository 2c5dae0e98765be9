"""Evaluate what depends on weights only."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS
from bmcompiler.errors import UsageError
from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir import Rewriter
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.rewriting import PatternPass, PatternTable, make, on


@dataclass(frozen=True)
class FoldConstants(PatternPass):
    """Replace ops on constants by constants.

    1. an op whose operands are all weights becomes one weight per result, unless the results hold more than
       `max_elements` elements and more than the operands do (so a tile cannot blow up the side file)
    """

    name = "fold-constants"
    requires = (NO_GROUPS,)
    loses_bits = False
    drops_work = True
    max_elements: int = 1 << 22

    def __post_init__(self) -> None:
        if self.max_elements < 1:
            raise UsageError(f"pass {self.name}: option max_elements must be at least 1, got {self.max_elements}")

    def table(self) -> PatternTable:
        return {**on(TensorOp, self.fold)}

    def fold(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 1."""
        arrays = [array for value in op.operands if (array := self.constant(value)) is not None]
        if not arrays or len(arrays) != len(op.operands):
            return False
        size = sum(result.type.size for result in op.results)
        if size > max(self.max_elements, sum(array.size for array in arrays)):
            return False
        values = []
        for result, array in zip(op.results, evaluate_op(op, arrays)):
            key = self.module.weights.add(f"{op.label}.folded", array)
            weight = make("weight", (), {"key": key}, [result.type], op.location)
            rewriter.insert_before(op, weight)
            values.append(weight.result)
        rewriter.replace(op, values)
        return True
