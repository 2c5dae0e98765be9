"""Bring per-channel scales to the layer that can take them in."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Conv, Deconv, Matmul
from bmcompiler.ops.layers.norm import Scale
from bmcompiler.ops.layers.pool import AvgPool, MaxPool
from bmcompiler.ops.places.shape import Concat, Reshape
from bmcompiler.passes.rewriting import PatternPass, PatternTable, activates, make, on, rebuild, sole


@dataclass(frozen=True)
class MoveScales(PatternPass):
    """Exchange a scale of channels with the op before it, when a conv, deconv or scale stands before that (floats).

    1. scale(avg_pool(x)), without a shift where padding counts : avg_pool(scale(x))
    2. scale(max_pool(x)) with factors above 0                  : max_pool(scale(x))
    3. scale(reshape(x)) that keeps batch and channels          : reshape(scale(x))
    4. scale(reshape(x)) that keeps the last axis, which is scaled, x a matmul : reshape(scale(x))
    5. scale(concat(x...)) along channels, each x from a taker  : concat(scale(x)...)
    All are read once and have constant factors; fold-batch-norm then folds the scale into the weights.
    """

    name = "move-scales"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return {**on(Scale, self.before_one, self.before_concat)}

    def before_one(self, op: Scale, rewriter: Rewriter) -> bool:
        """Rules 1 to 4."""
        before = sole(op.operands[0], AvgPool, MaxPool, Reshape)
        factor = self.constant(op.weight)
        if before is None or factor is None or not op.type.is_float:
            return False
        if op.bias is not None and self.constant(op.bias) is None:
            return False
        x = before.operands[0]
        if op.axis != 1 or not self.taken(x):
            return self.last_axis(op, before, rewriter)
        kept = not isinstance(before, Reshape) or _same_channels(x.shape, op.type.shape)
        shift = op.bias is not None and isinstance(before, AvgPool) and before.count_include_pad and any(before.pads)
        if not kept or shift or (isinstance(before, MaxPool) and not (factor > 0).all()):
            return False
        return self.exchange(op, before, 1, rewriter)

    def last_axis(self, op: Scale, before: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 4."""
        x = before.operands[0]
        product = sole(x, Matmul)
        if not isinstance(before, Reshape) or product is None or activates(product):
            return False
        if self.constant(product.right) is None:
            return False
        last = (op.axis % op.type.rank, x.shape[-1:]) == (op.type.rank - 1, op.type.shape[-1:])
        return last and self.exchange(op, before, x.type.rank - 1, rewriter)

    def exchange(self, op: TensorOp, before: TensorOp, axis: int, rewriter: Rewriter) -> bool:
        """`before` of the scale in place of the scale of `before`. Always True."""
        scaled = make("scale", [before.operands[0], *op.operands[1:]], {"axis": axis}, None, op.location)
        rewriter.insert_before(op, scaled)
        rewriter.replace_with(op, rebuild(before, [scaled.result]))
        return True

    def before_concat(self, op: Scale, rewriter: Rewriter) -> bool:
        """Rule 5."""
        concat = sole(op.operands[0], Concat)
        factor, shift = self.constant(op.weight), self.constant(op.bias)
        if concat is None or factor is None or not op.type.is_float or (op.axis, concat.axis) != (1, 1):
            return False
        if (op.bias is not None and shift is None) or not all(map(self.taken, concat.operands)):
            return False
        start, parts = 0, []
        for index, x in enumerate(concat.operands):
            stop = start + x.shape[1]
            vectors = [self.weight(factor[start:stop], op.weight, op, rewriter, f"{op.label}.scale{index}")]
            if shift is not None:
                vectors.append(self.weight(shift[start:stop], op.bias, op, rewriter, f"{op.label}.shift{index}"))
            part = make("scale", [x, *vectors], {"axis": 1}, None, op.location)
            rewriter.insert_before(op, part)
            parts.append(part.result)
            start = stop
        rewriter.replace_with(op, rebuild(concat, parts))
        return True

    def taken(self, value: Value) -> bool:
        """Whether a scale after `value` would go into the weights of the op before."""
        op = sole(value, Conv, Deconv, Scale)
        return op is not None and self.constant(op.operands[1]) is not None and not activates(op)


def _same_channels(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    return len(before) > 1 and before[:2] == after[:2] and prod(before[2:]) == prod(after[2:])
