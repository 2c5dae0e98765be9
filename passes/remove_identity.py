"""Remove ops that return their operand unchanged."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bmcompiler.ir import Module, Rewriter
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.rewriting import PatternPass, Rule, Rules, activates, forward, inherit, kind, make

_SAME_TYPE = ("reshape", "slice", "cast", "tile", "upsample", "pad", "concat", "split")
_NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0, "pow": 1.0}
_COMMUTES = ("add", "mul")
_IDEMPOTENT = ("relu", "abs", "floor", "ceil", "round")
_KEEPS_SINGLE = ("sum", "mean", "max", "min", "prod")


@dataclass(frozen=True)
class RemoveIdentity(PatternPass):
    """Replace an op by its operand where both have one type (quantization included) and equal elements.

    1. reshape, cast, full slice, tile by 1, upsample by 1, pad by nothing, concat or split of one: type unchanged
    2. permute in the given order
    3. max_pool or avg_pool with a 1x1 window, stride 1, no pads
    4. add or sub of 0, mul, div or pow by 1 (constants of any shape that do not broadcast the other operand), without
       an activation inside
    5. scale by 1 without bias (or with bias 0)
    6. relu, abs, floor, ceil or round of itself; relu of sigmoid, hard_sigmoid, softmax, exp, sqrt or abs
    7. clip without limits, leaky_relu or prelu of slope 1
    8. reduce over axes of length 1 (sum, mean, max, min, prod); without keepdims it becomes a reshape
    """

    name = "remove-identity"

    def rules(self, module: Module) -> Rules:
        return _RemoveIdentity(module)


class _RemoveIdentity(Rules):
    def table(self) -> dict[str, tuple[Rule, ...]]:
        return {
            **dict.fromkeys(_SAME_TYPE, (self.same_type,)),
            **dict.fromkeys(_NEUTRAL, (self.neutral,)),
            **dict.fromkeys(_IDEMPOTENT, (self.repeated,)),
            "permute": (self.permute,),
            "max_pool": (self.pool,),
            "avg_pool": (self.pool,),
            "scale": (self.scale,),
            "clip": (self.no_limits,),
            "leaky_relu": (self.slope,),
            "prelu": (self.slope,),
            "reduce": (self.reduce,),
        }

    def drop(self, op: TensorOp, rewriter: Rewriter, index: int = 0) -> bool:
        value = op.operands[index]
        return op.type == value.type and forward(op, value, rewriter)

    def same_type(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 1. An op of these that keeps the shape changes nothing, but for a reversing slice or a negative pad."""
        if len(op.results) != 1 or len(op.operands) != 1:
            return False
        if op.opname == "slice" and any(step != 1 for step in op.steps):
            return False
        if op.opname == "pad" and any(op.pads):
            return False
        return self.drop(op, rewriter)

    def permute(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 2."""
        return tuple(op.order) == tuple(range(len(op.order))) and self.drop(op, rewriter)

    def pool(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 3."""
        rescales = op.opname == "avg_pool" and (op.multiplier, op.rshift) != (1, 0)
        plain = op.kernel == op.strides == (1, 1) and not any(op.pads)
        return plain and not rescales and self.drop(op, rewriter)

    def neutral(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 4, on float only: integer forms may saturate into another meaning of the elements."""
        wanted = _NEUTRAL[op.opname]
        if not op.type.is_float or activates(op):
            return False
        if self.uniform(op.operands[1]) == wanted and self.drop(op, rewriter):
            return True
        return op.opname in _COMMUTES and self.uniform(op.operands[0]) == wanted and self.drop(op, rewriter, 1)

    def scale(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 5."""
        if self.uniform(op.weight) != 1.0 or (op.bias is not None and self.uniform(op.bias) != 0.0):
            return False
        return op.type.is_float and self.drop(op, rewriter)

    def repeated(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 6."""
        before = kind(op.operands[0].op)
        never_negative = ("sigmoid", "hard_sigmoid", "softmax", "exp", "sqrt", "abs") if op.opname == "relu" else ()
        return (before == op.opname or before in never_negative) and self.drop(op, rewriter)

    def no_limits(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 7."""
        return (op.min, op.max) == (-math.inf, math.inf) and self.drop(op, rewriter)

    def slope(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 7."""
        slope = op.slope if op.opname == "leaky_relu" else self.uniform(op.slope)
        return slope == 1.0 and op.type.is_float and self.drop(op, rewriter)

    def reduce(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 8."""
        value = op.operands[0]
        if op.method not in _KEEPS_SINGLE or any(value.shape[axis] != 1 for axis in op.axes):
            return False
        if op.keepdims:
            return self.drop(op, rewriter)
        reshape = inherit(make("reshape", [value], {"shape": op.type.shape}), op)
        rewriter.replace_with(op, reshape)
        return True
