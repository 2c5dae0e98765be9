"""Building an int8 function with power-of-two shifts (bm1880.md 11.2): all of its forms together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.elementwise import Sub
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.formulas import I8, product_threshold, rescaling, sum_multipliers
from bmcompiler.passes.quantization.shift.formats import threshold_of
from bmcompiler.passes.quantization.shift.layers import Layers


class ShiftLowering(Layers):
    """Layers (`layers`), and one instruction for each of the others."""

    def total(self, op: TensorOp, operands: Sequence[Value]) -> Value:
        """mac_shift with multipliers t_i / ty."""
        if op.attributes.get("activation"):
            raise NoInt8Form("a sum with an activation inside has no int8 form")
        wanted = self.wanted(op.result)
        ratios = [threshold_of(value) / wanted for value in operands]
        if isinstance(op, Sub):
            ratios[1] = -ratios[1]
        multipliers, shift = sum_multipliers(ratios)
        return self.emit("mac_shift", operands, {"multipliers": multipliers, "rshift": shift}, wanted)

    def product(self, op: TensorOp, operands: Sequence[Value]) -> Value:
        """mul_shift at a threshold that makes the factor a power of two."""
        left, right = map(threshold_of, operands)
        threshold, shift = product_threshold(left, right, self.wanted(op.result))
        return self.emit("mul_shift", operands, {"rshift": shift}, threshold)

    def times(self, op: TensorOp, x: Value, factor: float) -> Value:
        """muls_shift; the range of its multiplier is larger without a sign."""
        wanted = self.wanted(op.result)
        ratio = threshold_of(x) / wanted * factor
        multiplier, shift = rescaling(ratio) if ratio >= 0 else rescaling(-ratio, I8)
        multiplier = multiplier if ratio >= 0 else -multiplier
        return self.emit("muls_shift", [x], {"multiplier": multiplier, "rshift": shift}, wanted)

    def average(self, op: TensorOp, x: Value, divisor: int, attributes: Mapping[str, Any]) -> Value:
        """Sum of the window times m >> s, m / 2**s ~ tx / ty / positions (bm1880.md 11.2)."""
        wanted = self.wanted(op.result)
        multiplier, shift = rescaling(threshold_of(x) / wanted / divisor)
        return self.emit("avg_pool", [x], {**attributes, "multiplier": multiplier, "rshift": shift}, wanted)
