"""Recognise activations that an exporter wrote out as arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Abs, Clip, Exp, HardSigmoid, Log, Neg, Relu
from bmcompiler.ops.elements.elementwise import Add, Arithmetic, Div, Extreme, Max, Min, Mul, Sub
from bmcompiler.ops.elements.logic import Compare, Where
from bmcompiler.ops.layers.norm import Scale
from bmcompiler.ops.layers.reduce import Reduce
from bmcompiler.passes.rewriting import (
    PatternPass,
    PatternTable,
    activates,
    channel_axis,
    make,
    on,
    on_each,
    producer,
    sole,
)
from bmcompiler.passes.simplify.formulas import ArithmeticPatterns, Line, become

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class FusePatterns(PatternPass, ArithmeticPatterns):
    """Replace decomposed activations by one op; what is inside a pattern must have no other reader (floats only).

    1. max or min with one number                            : clip
    2. clip of clip, clip of relu, relu of clip              : one clip; clip to [0, inf) : relu
    3. clip(a*x + b) scaled and shifted to the range [0, 1]  : hard_sigmoid
    4. x * hard_sigmoid(x), x * clip(x + 3, 0, 6) / 6 in any order of the factors : hard_swish
    5. relu(x) + slope * min(x, 0), the latter also as -relu(-x) or (x - |x|) / 2; max(x, slope*x), slope in [0, 1] :
       leaky_relu, with one slope per channel prelu
    6. exp(x - max(x)) / sum(exp(x - max(x))) along one axis, also without the maximum : softmax
    7. log(sum(exp(x))) : reduce log_sum_exp, whose powers of e are of x - max(x), so that none is out of range
    8. where(x < 0, a * exp(x) - a, c * x), c above 0, in all orders : elu, times c
    """

    name = "fuse-patterns"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return {
            **on(Max, self.limit, self.leaky_max),
            **on(Min, self.limit),
            **on(Clip, self.clip_of_clip, self.hard_sigmoid),
            **on(Relu, self.clip_of_clip),
            **on_each((Mul, Scale), self.hard_sigmoid, self.hard_swish),
            **on(Add, self.hard_sigmoid, self.hard_swish, self.leaky_sum),
            **on(Sub, self.leaky_sum),
            **on(Div, self.hard_sigmoid, self.hard_swish, self.softmax),
            **on(Log, self.log_sum_exp),
            **on(Where, self.elu),
        }

    # -- rules 1 and 2 -----------------------------------------------------------------------------------------------
    def limit(self, op: Extreme, rewriter: Rewriter) -> bool:
        """Rule 1."""
        for x, bound in (op.operands, op.operands[::-1]):
            number = self.uniform(bound)
            if number is None or self.constant(x) is not None or x.shape != op.type.shape or math.isnan(number):
                continue
            limits = {"min": number} if isinstance(op, Max) else {"max": number}
            return become(op, make("clip", [x], limits), rewriter)
        return False

    def clip_of_clip(self, op: Clip | Relu, rewriter: Rewriter) -> bool:
        """Rule 2."""
        low, high = _limits(op)
        if isinstance(op, Clip) and (low, high) == (0.0, math.inf):
            return become(op, make("relu", op.operands), rewriter)
        before = sole(op.operands[0], Clip, Relu)
        if before is None or not op.type.is_float or (isinstance(before, Relu) and isinstance(op, Relu)):
            return False
        first = _limits(before)
        limits = {"min": min(max(first[0], low), high), "max": min(max(first[1], low), high)}
        return become(op, make("clip", before.operands, limits), rewriter)

    # -- rules 3 and 4 -----------------------------------------------------------------------------------------------
    def ramp(self, value: Value, *, top: bool = False) -> Line | None:
        """`value` as a clipped straight line: clip(factor * source + offset, 0, 1), None when it is anything else."""
        outer = self.line_of(value, top=top)
        middle = producer(outer.source, Clip, HardSigmoid)
        if middle is None or (outer.source is not value and len(outer.source.uses) != 1):
            return None
        if isinstance(middle, HardSigmoid):
            if outer.ops:
                return None
            return Line(middle.operands[0], middle.alpha, middle.beta, [middle])
        ends = sorted(outer.factor * limit + outer.offset for limit in _limits(middle))
        inner = self.line_of(middle.operands[0])
        if not (_close(ends[0], 0.0) and _close(ends[1], 1.0)) or outer.factor <= 0 or inner.offset == 0:
            return None
        factor, offset = outer.factor * inner.factor, outer.factor * inner.offset + outer.offset
        return Line(inner.source, factor, offset, [*outer.ops, middle, *inner.ops])

    def hard_sigmoid(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 3."""
        found = self.ramp(op.result, top=True)
        if found is None:
            return False
        fresh = make("hard_sigmoid", [found.source], {"alpha": found.factor, "beta": found.offset})
        return become(op, fresh, rewriter)

    def hard_swish(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 4."""
        outer = self.line_of(op.result, top=True)
        product = producer(outer.source, Mul)
        if product is None or outer.offset or (outer.ops and len(product.result.uses) != 1):
            return False
        for straight, bent in (product.operands, product.operands[::-1]):
            line, clip = self.line_of(straight), sole(bent, Clip, HardSigmoid)
            if clip is None or line.offset:
                continue
            inner = self.line_of(clip.operands[0])
            if isinstance(clip, HardSigmoid):
                inner = Line(clip.operands[0], clip.alpha, clip.beta)
            limits = (0.0, 1.0) if isinstance(clip, HardSigmoid) else _limits(clip)
            total = outer.factor * line.factor
            shape = (limits[0], total * limits[1], total * inner.factor, total * inner.offset)
            if inner.source is line.source and all(map(_close, shape, (0.0, 1.0, 1 / 6, 0.5))):
                return become(op, make("hard_swish", [line.source]), rewriter)
        return False

    # -- rule 5 ------------------------------------------------------------------------------------------------------
    def leaky_max(self, op: Max, rewriter: Rewriter) -> bool:
        """Rule 5, max(x, slope * x)."""
        for x, line in (op.operands, op.operands[::-1]):
            found = self.line_of(line)
            if found.ops and found.source is x and found.offset == 0 and 0 <= found.factor <= 1:
                fresh = make("leaky_relu", [x], {"slope": found.factor})
                return become(op, fresh, rewriter)
        return False

    def leaky_sum(self, op: Arithmetic, rewriter: Rewriter) -> bool:
        """Rule 5, relu(x) + slope * min(x, 0)."""
        import numpy as np

        if activates(op):
            return False
        for side in (0, 1):
            relu = sole(op.operands[side], Relu)
            below = self.below_zero(op.operands[1 - side]) if relu is not None else None
            if relu is None or below is None or below[0] is not relu.operands[0] or (isinstance(op, Sub) and side == 1):
                continue
            x, slope = below
            slope = -slope if isinstance(op, Sub) else slope
            axis = channel_axis(slope.shape, x.shape) if slope.size > 1 else 1
            if axis is None or not op.type.is_float:
                return False
            if slope.size == 1:
                fresh = make("leaky_relu", [x], {"slope": float(slope.flat[0])})
            else:
                vector = np.ascontiguousarray(slope.ravel().astype(x.type.numpy))
                value = self.weight(vector, None, op, rewriter, f"{op.label}.slope")
                fresh = make("prelu", [x, value], {"axis": axis})
            return become(op, fresh, rewriter)
        return False

    def below_zero(self, value: Value) -> tuple[Value, np.ndarray] | None:
        """(x, slope) when value = slope * min(x, 0), slope a number or one per channel in float64."""
        import numpy as np

        op = sole(value, Mul, Scale, Neg, Clip, Relu, Sub)
        if op is None:
            return None
        if isinstance(op, Clip):
            return (op.operands[0], np.ones(())) if _limits(op) == (-math.inf, 0.0) else None
        if isinstance(op, Relu):
            inner = self.line_of(op.operands[0])
            negated = bool(inner.ops) and (inner.factor, inner.offset) == (-1.0, 0.0)
            return (inner.source, -np.ones(())) if negated else None
        if isinstance(op, Sub):
            size = sole(op.operands[1], Abs)
            same = size is not None and size.operands[0] is op.operands[0]
            return (op.operands[0], np.full((), 2.0)) if same else None
        return self.scaled_below_zero(op)

    def scaled_below_zero(self, op: TensorOp) -> tuple[Value, np.ndarray] | None:
        """`below_zero` through neg, and through mul or scale by a constant."""
        import numpy as np

        for side in range(2 if isinstance(op, Mul) else 1):
            factor: Any = -np.ones(())
            if not isinstance(op, Neg):
                factor = self.constant(op.operands[1 - side])
            if factor is None or (isinstance(op, Scale) and op.bias is not None):
                continue
            if isinstance(op, Scale):
                factor = factor.reshape(-1, *(1,) * (op.type.rank - 1 - op.axis))
            below = self.below_zero(op.operands[side])
            if below is not None and op.operands[side].shape == op.type.shape:
                return below[0], below[1] * factor.astype(np.float64)
        return None

    # -- rule 6 ------------------------------------------------------------------------------------------------------
    def softmax(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 6."""
        exp, total = producer(op.operands[0], Exp), sole(op.operands[1], Reduce)
        if exp is None or total is None or total.operands[0] is not exp.result or len(exp.result.uses) != 2:
            return False
        if total.method != "sum" or len(total.axes) != 1 or not total.keepdims:
            return False
        x = exp.operands[0]
        shift = sole(x, Sub)
        top = sole(shift.operands[1], Reduce) if shift is not None else None
        like_total = top is not None and (top.method, top.axes, top.keepdims) == ("max", total.axes, True)
        if shift is not None and top is not None and like_total and top.operands[0] is shift.operands[0]:
            x = shift.operands[0]
        return become(op, make("softmax", [x], {"axis": total.axes[0]}), rewriter)

    # -- rule 7 ------------------------------------------------------------------------------------------------------
    def log_sum_exp(self, op: Log, rewriter: Rewriter) -> bool:
        """Rule 7."""
        total = sole(op.operands[0], Reduce)
        exp = None if total is None or total.method != "sum" else sole(total.operands[0], Exp)
        if total is None or exp is None or not op.type.is_float:
            return False
        how = {"method": "log_sum_exp", "axes": total.axes, "keepdims": total.keepdims}
        return become(op, make("reduce", exp.operands, how), rewriter)

    # -- rule 8 ------------------------------------------------------------------------------------------------------
    def elu(self, op: Where, rewriter: Rewriter) -> bool:
        """Rule 8."""
        import numpy as np

        test = producer(op.condition, Compare)
        if test is None or not op.type.is_float or self.uniform(test.operands[1]) != 0 or test.method == "equal":
            return False
        x, below = test.operands[0], test.method in ("less", "less_equal")
        curve, line = (self.line_of(value) for value in ((op.a, op.b) if below else (op.b, op.a)))
        exp = sole(curve.source, Exp)
        if exp is None or exp.operands[0] is not x or line.source is not x or x.shape != op.type.shape:
            return False
        if not _close(curve.offset, -curve.factor) or line.offset or line.factor <= 0:
            return False
        fresh = make("elu", [x], {"alpha": curve.factor / line.factor}, location=op.location)
        if _close(line.factor, 1.0):
            return become(op, fresh, rewriter)
        factor = self.weight(np.full((), line.factor, op.type.numpy), None, op, rewriter, f"{op.label}.factor")
        scaled = make("mul", [fresh.result, factor])
        scaled.result.type = op.type
        rewriter.replace_with(op, fresh, scaled)
        return True


def _limits(op: TensorOp) -> tuple[float, float]:
    """Those of a clip or of a relu."""
    return (op.min, op.max) if isinstance(op, Clip) else (0.0, math.inf)


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6)
