"""A 1x1 convolution of a convolution, with nothing between them, is one convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.passes.drafts import cycles_saved, without_numbers
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, activates, on, rebuild, sole

if TYPE_CHECKING:
    import numpy as np

_NO_PADS, _ONES = (0, 0, 0, 0), (1, 1)


@dataclass(frozen=True)
class ComposeConvs(TargetPatternPass):
    """Products of the weights of two convolutions become the weights of one.

    Inverted residual blocks (MobileNetV2) end in few channels without an activation, and the next block begins with a
    1x1 convolution: few channels use few lanes of a chip that has a channel per lane.

    1. conv -> conv 1x1, the first one read by the second alone : one conv

    Floats, one group each, constant weights, no activation and no padding between them. It is done where the target
    says that it takes less time in local memory. Sums are added in another order, so that results differ in their last
    bits; weights are multiplied in float64 and rounded once.
    """

    name = "compose-convs"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Conv, self.compose)

    def compose(self, op: Conv, rewriter: Rewriter) -> bool:
        """Rule 1."""
        import numpy as np

        first = sole(op.input, Conv)
        if first is None or activates(first) or not _is_pointwise(op):
            return False
        if not all(
            each.type.dtype == "f32" and each.group == 1 and PLACE_CPU not in each.attributes for each in (first, op)
        ):
            return False
        (inner, inner_bias), (outer, outer_bias) = self._constants(first), self._constants(op)
        if inner is None or outer is None:
            return False
        outputs, middle = outer.shape[:2]
        shape = (outputs, *inner.shape[1:])
        draft = _composed(first, op, without_numbers(op.weight, shape), without_numbers(op.weight, (outputs,)))
        if cycles_saved(self.target, [first, op], [draft]) <= 0:
            return False
        factors = outer.reshape(outputs, middle)
        kernel = (factors @ inner.reshape(middle, -1)).reshape(shape).astype(np.float32)
        vector = (factors @ inner_bias + outer_bias).astype(np.float32)
        if not (np.isfinite(kernel).all() and np.isfinite(vector).all()):
            return False
        weight = self.weight(kernel, op.weight, op, rewriter, "weight")
        bias = self.weight(vector, op.bias, op, rewriter, "bias")
        rewriter.replace_with(op, _composed(first, op, weight, bias))
        return True

    def _constants(self, op: Conv) -> tuple[np.ndarray | None, np.ndarray]:
        """Weights and bias, None for weights unless both are constant."""
        import numpy as np

        weight, bias = self.constant(op.weight), self.constant(op.bias)
        if weight is None or (op.bias is not None and bias is None):
            return None, np.zeros(0)
        vector = np.zeros(op.type.shape[1]) if bias is None else bias
        return weight.astype(np.float64), vector.astype(np.float64)


def _is_pointwise(op: Conv) -> bool:
    return op.weight.shape[2:] == _ONES and tuple(op.strides) == _ONES and tuple(op.pads) == _NO_PADS


def _composed(first: Conv, last: Conv, weight: Value, bias: Value) -> Conv:
    """One convolution that reads what the first one reads, in no block, with the activation of the last."""
    activation = {name: value for name, value in last.attributes.items() if name == "activation"}
    return rebuild(first, [first.input, weight, bias], **activation)
