"""Shortcuts around gates go into the gates."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter, TensorType
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.elementwise import Add, Mul
from bmcompiler.passes.drafts import cycles_saved, without_numbers
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, activates, make, on, sole


@dataclass(frozen=True)
class MergeShortcuts(TargetPatternPass):
    """A sum of a tensor and its product with a smaller one becomes one product: x + x * s is x * (s + 1).

    1. add of x and mul(x, s), f32, the product read once, s with fewer elements : add of s and 1 -> mul
    It is done where the target says that it takes less time in local memory. Both forms are rounded twice, in other
    places, so that pipelines do it at all levels.
    """

    name = "merge-shortcuts"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Add, self.merge)

    def merge(self, op: Add, rewriter: Rewriter) -> bool:
        """Rule 1."""
        import numpy as np

        for x, product in (op.operands, op.operands[::-1]):
            gated = sole(product, Mul)
            if gated is None or x not in gated.operands or {PLACE_CPU} & {*op.attributes, *gated.attributes}:
                continue
            gate = gated.operands[1 - gated.operands.index(x)]
            whole = (x.type, product.type) == (op.type, op.type) == (TensorType(op.type.shape, "f32"),) * 2
            if not whole or activates(op) or gate.dtype != "f32" or gate.type.nbytes >= x.type.nbytes:
                continue
            one = np.ones((1,) * gate.type.rank, np.float32)
            draft = make("add", [gate, without_numbers(op.operands[0], one.shape)])
            if cycles_saved(self.target, [gated, op], [draft, make("mul", [x, draft.results[0]])]) <= 0:
                continue
            more: TensorOp = make("add", [gate, self.weight(one, None, op, rewriter, "one")], location=gated.location)
            rewriter.insert_before(op, more)
            rewriter.replace_with(op, make("mul", [x, more.results[0]]), absorbed=[gated])
            return True
        return False
