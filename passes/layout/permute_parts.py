"""Permutes of concatenations, part by part where the parts then lie one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter
from bmcompiler.ir.keys import PLACE_CPU, TENSOR_NAME
from bmcompiler.ops.places.shape import Concat, Permute
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, on, rebuild, sole
from bmcompiler.target import unsupported_reason


@dataclass(frozen=True)
class PermuteParts(TargetPatternPass):
    """What is concatenated between other elements and permuted then is permuted into its place.

    1. concat -> permute, one use, parts that are no runs of bytes of the concatenation, but of the permuted one:
       permute of each part -> concat, which has nothing to move
    For the rows of detections, which heads of several sizes make: a part is permuted while the next one is computed.
    It is done where most is permuted as fast as in one piece.
    """

    name = "permute-parts"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return {**on(Permute, self.permute_parts)}

    def permute_parts(self, op: Permute, rewriter: Rewriter) -> bool:
        """Rule 1."""
        concat = sole(op.operands[0], Concat)
        if concat is None or PLACE_CPU in {*op.attributes, *concat.attributes}:
            return False
        shape = concat.type.shape
        before = concat.axis % len(shape)
        axis = op.order.index(before)
        if prod(shape[:before]) == 1 or prod(op.type.shape[:axis]) != 1:
            return False
        parts = [rebuild(op, [value]) for value in concat.operands]
        if not self._stays_fast(op, parts):
            for part in parts:
                part.drop_operands()
            return False
        for part in parts:
            part.attributes.pop(TENSOR_NAME, None)
            rewriter.insert_before(op, part)
        rewriter.replace_with(op, rebuild(concat, [part.result for part in parts], axis=axis))
        return True

    def _stays_fast(self, op: Permute, parts: Sequence[Permute]) -> bool:
        """Whether most of what is faster than element by element, which has no estimate, stays so in parts."""
        if any(unsupported_reason(self.target, part) is not None for part in parts):
            return False
        slow = sum(part.type.size for part in parts if self.target.cycles(part) is None)
        return self.target.cycles(op) is None or 2 * slow <= op.type.size
