"""Remove ops that return their operand unchanged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmcompiler.conditions import NO_GROUPS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Prelu, Relu
from bmcompiler.ops.elements.elementwise import Binary
from bmcompiler.ops.layers.norm import Scale
from bmcompiler.ops.layers.reduce import Reduce
from bmcompiler.ops.places.shape import Concat, Split
from bmcompiler.passes.rewriting import (
    PatternPass,
    PatternTable,
    activates,
    declared,
    forward,
    make,
    on,
    producer,
    rebuild,
)

_KEEPS_SINGLE = ("sum", "mean", "max", "min", "prod")


@dataclass(frozen=True)
class RemoveIdentity(PatternPass):
    """Replace an op by its operand where both have one type (quantization included) and equal elements.

    1. an op that says so of itself (`TensorOp.is_identity`): reshape to the same shape, permute in the given order, pad
       by nothing, a 1x1 pool, clip without limits...
    2. a binary op with its neutral number: add or sub of 0, mul, div or pow by 1 (constants of any shape that do not
       broadcast the other operand), without an activation inside
    3. scale by 1 without bias (or with bias 0); prelu of slope 1
    4. f(f(x)) of an idempotent f with the same attributes (relu, abs, floor...); relu of what is never negative
    5. reduce over axes of length 1 (sum, mean, max, min, prod); without keepdims it becomes a reshape
    6. operands of concat and pieces of split that hold no element go; a single piece is the operand
    """

    name = "remove-identity"
    requires = (NO_GROUPS,)
    loses_bits = False

    def table(self) -> PatternTable:
        return {
            **on(Scale, self.scale),
            **on(Prelu, self.slope),
            **on(Relu, self.above_zero),
            **on(Reduce, self.reduce),
            **on(Concat, self.empty_operands),
            **on(Split, self.empty_pieces),
            **on(TensorOp, self.identity, self.neutral, self.repeated),
        }

    def _drop(self, op: TensorOp, rewriter: Rewriter, index: int = 0) -> bool:
        value = op.operands[index]
        return op.type == value.type and forward(op, value, rewriter)

    def identity(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 1."""
        return len(op.results) == 1 and op.is_identity() and self._drop(op, rewriter)

    def neutral(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 2, on float only: integer forms may saturate into another meaning of the elements."""
        if not isinstance(op, Binary) or op.neutral is None or not op.type.is_float or activates(op):
            return False
        if self.uniform(op.b) == op.neutral and self._drop(op, rewriter):
            return True
        return op.commutative and self.uniform(op.a) == op.neutral and self._drop(op, rewriter, 1)

    def scale(self, op: Scale, rewriter: Rewriter) -> bool:
        """Rule 3."""
        if self.uniform(op.weight) != 1.0 or (op.bias is not None and self.uniform(op.bias) != 0.0):
            return False
        return op.type.is_float and self._drop(op, rewriter)

    def slope(self, op: Prelu, rewriter: Rewriter) -> bool:
        """Rule 3."""
        return self.uniform(op.slope) == 1.0 and op.type.is_float and self._drop(op, rewriter)

    def repeated(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 4."""
        if not op.idempotent:
            return False
        before = producer(op.operands[0], type(op))
        return before is not None and declared(before) == declared(op) and self._drop(op, rewriter)

    def above_zero(self, op: Relu, rewriter: Rewriter) -> bool:
        """Rule 4."""
        before = op.operands[0].op
        return isinstance(before, TensorOp) and before.result_bounds()[0] >= 0 and self._drop(op, rewriter)

    def reduce(self, op: Reduce, rewriter: Rewriter) -> bool:
        """Rule 5."""
        value = op.operands[0]
        if op.method not in _KEEPS_SINGLE or any(value.shape[axis] != 1 for axis in op.axes):
            return False
        if op.keepdims:
            return self._drop(op, rewriter)
        rewriter.replace_with(op, make("reshape", [value], {"shape": op.type.shape}))
        return True

    def empty_operands(self, op: Concat, rewriter: Rewriter) -> bool:
        """Rule 6."""
        filled = [x for x in op.x if x.type.size]
        if not filled or len(filled) == len(op.x):
            return False
        rewriter.replace_with(op, rebuild(op, filled))
        return True

    def empty_pieces(self, op: Split, rewriter: Rewriter) -> bool:
        """Rule 6."""
        sizes = [size for size in op.sizes if size]
        if not op.x.type.size or len(sizes) == len(op.sizes):
            return False
        pieces = iter([op.x])
        if len(sizes) > 1:
            new = make("split", [op.x], {"axis": op.axis, "sizes": sizes})
            pieces = iter(rewriter.insert_before(op, new, op).results)
        values = [next(pieces) if each.type.size else self._empty(each, op, rewriter) for each in op.results]
        rewriter.replace(op, values)
        return True

    def _empty(self, value: Value, op: Split, rewriter: Rewriter) -> Value:
        return self.weight(np.zeros(value.shape, value.type.numpy), None, op, rewriter, "empty")
