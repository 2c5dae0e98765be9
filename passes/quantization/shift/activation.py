"""Functions of one tensor: a table of 256 bytes, or exact integers where they are cheaper or keep channels apart."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.numeric import arith
from bmcompiler.ops import find_op
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.base import POINTWISE, Scaling, rule
from bmcompiler.passes.quantization.formulas import I8, largest_shift, rescaling
from bmcompiler.passes.quantization.shift.lowering import Lowering, detached, threshold_of

_CODES = np.arange(256).astype(np.uint8).view(np.int8)
"""Entry k of a table answers for the byte k."""


@rule(POINTWISE, scaling=Scaling.FREE)
def by_table(op: TensorOp, low: Lowering, data: int = 0) -> Value:
    """The float op itself, evaluated on all 256 values that operand `data` can have; other operands are scalars."""
    x = low.request(op.operands[data])
    wanted = low.wanted(op.result)
    reals = arith.dequantize(_CODES, threshold_of(x)).reshape(1, 1, 1, 256)
    arguments = [
        reals if i == data else low.need_constant(value, "second operand") for i, value in enumerate(op.operands)
    ]
    probe = find_op(op.opname)([detached(a.shape) for a in arguments], op.attributes)
    with np.errstate(all="ignore"):
        values = np.asarray(probe.evaluate(*arguments), np.float64).reshape(256)
    finite = np.nan_to_num(values, nan=0.0, posinf=wanted, neginf=-wanted)
    table = low.weight(arith.quantize_real(finite, wanted), None, wanted / 128)
    return low.emit("lut", [x, table], {}, wanted)


@rule("clip", scaling=Scaling.FREE)
def clip(op: TensorOp, low: Lowering) -> Value:
    """relu where saturation enforces the upper bound (planning rule 4), else a table."""
    if op in low.plan.saturating:
        x = low.request(op.input)
        if threshold_of(x) <= op.max * (1 + 1e-9):
            return low.emit("relu", [x])
    return by_table(op, low)


@rule("prelu", scaling=Scaling.FREE)
def prelu(op: TensorOp, low: Lowering) -> Value:
    """Positive values times m >> s, negative ones times an i8 slope per channel >> r (bm1880.md 11.2, 12.1)."""
    slope = low.need_constant(op.slope, "slope")
    if slope.size == 1:
        return by_table(op, low)
    x = low.request(op.input)
    wanted = low.wanted(op.result)
    ratio = threshold_of(x) / wanted
    multiplier, shift = rescaling(ratio, I8)
    slope_shift = max(largest_shift(float(np.abs(slope).max(initial=0.0)) * ratio, I8), 0)
    integers = np.floor(slope.astype(np.float64) * ratio * 2.0**slope_shift + 0.5)
    slopes = low.weight(arith.saturate(integers, "i8"), op.slope, wanted / threshold_of(x) / 2.0**slope_shift)
    attributes = {"multiplier": multiplier, "rshift": shift, "slope_rshift": slope_shift}
    out = low.emit("prelu", [low.as_maps(x, op.axis), slopes], attributes, wanted)
    return low.as_before(out, x.shape)
