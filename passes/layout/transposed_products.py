"""Matrix products that read their right operand transposed, instead of a permute that swaps its last axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter
from bmcompiler.ir.keys import PLACE_CPU, TENSOR_NAME
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.places.shape import Permute
from bmcompiler.passes.drafts import cycles_in_lanes, without_numbers
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on, rebuild, sole
from bmcompiler.target import unsupported_reason

_THIN = 16
"""Columns that are few."""
_ALIKE = 1.1
"""How many times as long a product may take in lanes whose permute moves whole rows, not single elements."""


@dataclass(frozen=True)
class TransposedProducts(TargetPatternPass):
    """The keys of an attention are multiplied as they are: rows stay rows.

    For chips that move single elements slowly: a permute that leaves the last axis in place moves whole rows.

    1. matmul(a, permute(x)), the last axis of x before the last in the permute : matmul(a, x, transpose_right), with a
       permute of the other axes of x where there is one
    2. matmul(a, constant, transpose_right) of f32, the constant read once: matmul(a, transposed constant), which tiles
       need not transpose
    3. matmul(a, b) of f32 with few columns : permute(matmul(permute(b), a, transpose_right)), rows as columns: short
       rows are moved badly, one by one
    Rules 1 and 2 hold where that takes the target no more time, but for a tenth in lanes; rule 3 where all takes half
    of the time.
    A sum has the same products in the same order.
    """

    name = "transposed-products"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return {**on(Matmul, self.product, self.constant_right, self.thin)}

    def product(self, op: Matmul, rewriter: Rewriter) -> bool:
        """Rule 1."""
        permute = sole(op.right, Permute)
        if permute is None or op.transpose_right or PLACE_CPU in op.attributes:
            return False
        *others, rows, last = permute.order
        if rows != permute.type.rank - 1:
            return False
        order = (*others, last, rows)
        moved = None if order == tuple(range(len(order))) else rebuild(permute, permute.operands, order=order)
        if moved is not None:
            moved.attributes.pop(TENSOR_NAME, None)
        right = permute.operands[0] if moved is None else moved.result
        product = rebuild(op, [op.left, right, *op.operands[2:]], transpose_right=True)
        made = [product] if moved is None else [moved, product]
        if not self._is_as_quick(made, [permute, op]):
            for each in reversed(made):
                each.drop_operands()
            return False
        if moved is not None:
            rewriter.insert_before(op, moved)
        rewriter.insert_before(op, product, op)
        rewriter.replace(op, product.results)
        return True

    def constant_right(self, op: Matmul, rewriter: Rewriter) -> bool:
        """Rule 2."""
        weight = self.constant(op.right)
        if weight is None or not op.transpose_right or op.type.dtype != "f32" or len(op.right.uses) != 1:
            return False
        if PLACE_CPU in op.attributes or op.left.dtype != "f32":
            return False
        shape = (*weight.shape[:-2], *weight.shape[:-3:-1])
        draft = rebuild(op, [op.left, without_numbers(op.right, shape), *op.operands[2:]], transpose_right=False)
        quick = self._is_as_quick([draft], [op])
        draft.drop_operands()
        if not quick:
            return False
        right = self.weight(weight.swapaxes(-1, -2), op.right, op, rewriter, "weight")
        product = rebuild(op, [op.left, right, *op.operands[2:]], transpose_right=False)
        rewriter.replace_with(op, product)
        return True

    def thin(self, op: Matmul, rewriter: Rewriter) -> bool:
        """Rule 3."""
        *batch, rows, columns = op.type.shape
        shapes = [list(value.shape[:-2]) for value in op.operands]
        floats = all(value.dtype == "f32" for value in (*op.operands, op.result))
        if shapes != [batch, batch] or not floats or PLACE_CPU in op.attributes or columns > min(_THIN, rows - 1):
            return False
        if op.transpose_left or any(self.constant(value) is not None for value in op.operands):
            return False
        order = (*range(len(batch)), len(batch) + 1, len(batch))
        taken, before = (self._planned(op, order if swaps else ()) for swaps in (True, False))
        if taken is None or before is None or 2 * taken > before:
            return False
        swapped = [] if op.transpose_right else [make("permute", [op.right], {"order": order})]
        product = rebuild(op, [swapped[0].result if swapped else op.right, op.left], transpose_right=True)
        product.attributes.pop(TENSOR_NAME, None)
        made = [*swapped, product, make("permute", [product.result], {"order": order})]
        for each in made[:-1]:
            rewriter.insert_before(op, each, op, is_part=True)
        rewriter.replace_with(op, made[-1])
        return True

    def _planned(self, op: Matmul, order: tuple[int, ...]) -> float | None:
        """Cycles of a program of the product alone; order: of axes, by which it is transposed."""
        b = Builder.new("product")
        left, right = (b.input(name, value.type) for name, value in zip(("left", "right"), op.operands))
        if not order:
            made = b.matmul(left, right, transpose_right=op.transpose_right)
        else:
            right = right if op.transpose_right else b.permute(right, order=order)
            made = b.permute(b.matmul(right, left, transpose_right=True), order=order)
        function = b.outputs([made], ["result"]).main
        if any(isinstance(each, TensorOp) and unsupported_reason(self.target, each) for each in function.ops):
            return None
        return self.target.planned_cycles(function, 2)

    def _is_as_quick(self, made: Sequence[TensorOp], before: Sequence[TensorOp]) -> bool:
        """In lanes, where all of it fits them; else the product alone: what it reads is stored by the permute."""
        new, old = (cycles_in_lanes(self.target, each) for each in (made, before))
        if new is not None and old is not None:
            return new <= _ALIKE * old
        if any(unsupported_reason(self.target, op) is not None for op in made):
            return False
        new, old = (self.target.cycles(each[-1]) for each in (made, before))
        return new is not None and old is not None and new <= old
