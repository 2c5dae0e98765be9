"""Packed weights as floats, for chips and types without products by them."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter
from bmcompiler.numeric.packed_weights import PackedWeights, dequantized
from bmcompiler.ops.layers.weight_only import WeightOnlyMatmul
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on
from bmcompiler.target import unsupported_reason


@dataclass(frozen=True)
class DequantizeWeights(TargetPatternPass):
    """weight_only_matmul of constants that the target does not take becomes a matmul by the floats that they stand for.

    The floats have the type of the activations: those of 16 bits are rounded as the op rounds them.
    """

    name = "dequantize-weights"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(WeightOnlyMatmul, self.as_floats)

    def as_floats(self, op: WeightOnlyMatmul, rewriter: Rewriter) -> bool:
        """The only pattern."""
        codes, scale, zero = map(self.constant, (op.weight, op.scale, op.zero_point))
        if codes is None or scale is None or (zero is None) != (op.zero_point is None):
            return False
        if unsupported_reason(self.target, op) is None:
            return False
        packed = PackedWeights(codes, scale, zero, op.bits, op.group_size)
        floats = dequantized(packed, op.x.shape[-1], op.x.dtype)
        weight = self.weight(floats, op.weight, op, rewriter, "weight")
        made = make("matmul", [op.x, weight], {"transpose_right": True}, location=op.location)
        rewriter.insert_before(op, made)
        rewriter.replace(op, made.results)
        return True
