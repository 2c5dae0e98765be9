"""Fewer and later reshapes."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS, NO_THRESHOLDS
from bmcompiler.ir import Rewriter
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.places.shape import Permute, Reshape
from bmcompiler.passes.rewriting import (
    PatternPass,
    PatternTable,
    hand_name,
    make,
    merge_into,
    on,
    producer,
    rebuild,
    same_elements,
    sole,
)


@dataclass(frozen=True)
class MergeReshapes(PatternPass):
    """Merge reshapes and let element-wise work happen in the shape of its producer.

    1. reshape(reshape(x))                          : one reshape of x
    2. permute that moves only axes of length 1     : reshape
    3. f(reshape(x)), f element-wise, reshape read once : reshape(f(x)), so f stands next to the op it can fuse with
    """

    name = "merge-reshapes"
    requires = (NO_THRESHOLDS, NO_GROUPS)
    loses_bits = False

    def table(self) -> PatternTable:
        return {
            **on(Reshape, self.merge),
            **on(Permute, self.permute),
            **on(TensorOp, self.sink),
        }

    def merge(self, op: Reshape, rewriter: Rewriter) -> bool:
        """Rule 1."""
        before = producer(op.operands[0], Reshape)
        return before is not None and merge_into(op, before, rewriter)

    def permute(self, op: Permute, rewriter: Rewriter) -> bool:
        """Rule 2."""
        shape = op.operands[0].shape
        moved = [axis for axis in op.order if shape[axis] != 1]
        if moved != sorted(moved):
            return False
        reshape = make("reshape", op.operands, {"shape": op.type.shape})
        reshape.result.type = op.type
        rewriter.replace_with(op, reshape)
        return True

    def sink(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 3."""
        before = sole(op.operands[0], Reshape) if op.pointwise else None
        if before is None or not same_elements(before.operands[0], before.result):
            return False
        work = rebuild(op, [before.operands[0], *op.operands[1:]])
        hand_name(before, before.operands[0])
        reshape = make("reshape", [work.result], {"shape": op.type.shape}, None, before.location)
        rewriter.insert_before(op, work, op)
        rewriter.replace_with(op, reshape)
        return True
