"""Functions of one tensor: a table of 256 entries, or exact integers where they are cheaper or keep channels apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.ir import Value
from bmcompiler.numeric import quant_modes
from bmcompiler.ops import find_op
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.base import POINTWISE, Scaling
from bmcompiler.passes.quantization.formulas import I8, U8, largest_shift, rescaling
from bmcompiler.passes.quantization.scale.base import rule
from bmcompiler.passes.quantization.scale.formats import Format, format_of
from bmcompiler.passes.quantization.scale.lowering import ScaleLowering
from bmcompiler.passes.quantization.shift.lowering import detached


@rule(POINTWISE, scaling=Scaling.FREE)
def by_table(op: TensorOp, low: ScaleLowering, data: int = 0) -> Value:
    """The float op itself, evaluated on all 256 values that operand `data` can have; other operands are scalars.

    Where only layers read the result that take a zero point, it has one if its values are not symmetric.
    """
    x = low.request(op.operands[data])
    source, wanted = format_of(x), low.wanted(op.result)
    reals = quant_modes.dequantize(source.codes(), source.scale, source.zero_point).reshape(1, 1, 1, 256)
    arguments = [
        reals if i == data else low.need_constant(value, "second operand") for i, value in enumerate(op.operands)
    ]
    probe = find_op(op.opname)([detached(a.shape) for a in arguments], op.attributes)
    with np.errstate(all="ignore"):
        values = np.asarray(probe.evaluate(*arguments), np.float32).reshape(256)
    finite = np.nan_to_num(values, nan=0.0, posinf=wanted.top, neginf=-wanted.top)
    if low.may_have_zero_point(op.result):
        wanted = _tight(finite, wanted)
    table = low.constant_in(low.integers(finite, wanted), None, wanted)
    return low.emit("lut", [x, table], {}, wanted)


def _tight(values: NDArray[Any], wanted: Format) -> Format:
    """`wanted`, or the format with a zero point whose steps are smaller by a quarter or more."""
    within = np.clip(values, -wanted.top, wanted.top)
    bottom, top = min(float(within.min()), 0.0), max(float(within.max()), 0.0)
    spanning = Format.spanning(bottom, top) if top > bottom else wanted
    return spanning if spanning.scale <= 0.75 * wanted.scale else wanted


@rule("relu", scaling=Scaling.KEEPS)
def relu(op: TensorOp, low: ScaleLowering) -> Value:
    """Nothing where the operand is unsigned: saturation did it (`plan` rule 3)."""
    x = low.request(op.input)
    return x if format_of(x).unsigned else low.emit("relu", [x], {}, format_of(x))


@rule("clip", scaling=Scaling.FREE)
def clip(op: TensorOp, low: ScaleLowering) -> Value:
    """Nothing where saturation enforces both bounds, else a table."""
    if op in low.plan.saturating:
        x = low.request(op.input)
        if format_of(x).unsigned and format_of(x).top <= op.max * (1 + 1e-6):
            return x
    return by_table(op, low)


@rule("prelu", scaling=Scaling.FREE)
def prelu(op: TensorOp, low: ScaleLowering) -> Value:
    """Positive values times m >> s, negative ones times an i8 slope per channel >> r (`ops.activation.Prelu`)."""
    slope = low.need_constant(op.slope, "slope")
    if slope.size == 1:
        return by_table(op, low)
    threshold = low.plan.thresholds
    x = low.request(op.input, Format.symmetric(threshold[op.input]))
    wanted = Format.symmetric(threshold[op.result])
    ratio = format_of(x).scale / wanted.scale
    multiplier, shift = rescaling(ratio, U8)
    slope_shift = max(largest_shift(float(np.abs(slope).max(initial=0.0)) * ratio, I8), 0)
    integers = np.rint(slope.astype(np.float64) * ratio * 2.0**slope_shift)
    slopes = low.weight(np.clip(integers, -128, 127).astype(np.int8), op.slope, 2.0**-slope_shift / ratio)
    attributes = {"multiplier": multiplier, "rshift": shift, "slope_rshift": slope_shift}
    out = low.emit("prelu", [low.as_maps(x, op.axis), slopes], attributes, wanted)
    return low.as_before(out, x.shape)
