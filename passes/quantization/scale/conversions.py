"""The conversions of the scheme "scale": those of all schemes and its own."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.elements.activation import Clip, Prelu, Relu
from bmcompiler.ops.elements.elementwise import Mul
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.passes.quantization.base import Conversions, NoInt8Form, Scaling
from bmcompiler.passes.quantization.conversions.activation import by_table
from bmcompiler.passes.quantization.conversions.elementwise import product
from bmcompiler.passes.quantization.conversions.linear import matmul
from bmcompiler.passes.quantization.conversions.table import COMMON
from bmcompiler.passes.quantization.formulas import I8, U8, largest_shift, rescaling
from bmcompiler.passes.quantization.scale.formats import Format, format_of
from bmcompiler.passes.quantization.scale.lowering import ScaleLowering

_AS_COARSE = 1.25
"""How many times coarser than its own steps those of its operand may be that a result takes over."""

SCALE_CONVERSIONS = Conversions(COMMON)
SCALE_CONVERSIONS.converts(Mul, scaling=Scaling.FREE)(product)
SCALE_CONVERSIONS.converts(Matmul, scaling=Scaling.FREE)(matmul)


@SCALE_CONVERSIONS.converts(Relu, scaling=Scaling.KEEPS)
def relu(op: Relu, low: ScaleLowering) -> Value:
    """Nothing where the operand is unsigned: saturation did it (`plan` rule 3)."""
    x = low.request(op.input)
    return x if format_of(x).unsigned else low.emit("relu", [x], {}, format_of(x))


@SCALE_CONVERSIONS.converts(Cast, scaling=Scaling.FREE, elements=("f32", "u8"))
def bytes_as_numbers(op: Cast, low: ScaleLowering) -> Value:
    """Bytes without a sign are numbers as they are: of scale 1."""
    x = low.real(op.operands[0])
    if (x.dtype, op.dtype) != ("u8", "f32"):
        raise NoInt8Form(f"'cast' has no int8 form for {x.dtype} to {op.dtype}")
    x.type = Format("u8", 1.0).type_of(x.shape)
    return x


@SCALE_CONVERSIONS.converts(Clip, scaling=Scaling.FREE)
def clip(op: Clip, low: ScaleLowering) -> Value:
    """Nothing where saturation enforces both bounds, else a table."""
    if op in low.plan.saturating:
        x = low.request(op.input)
        if format_of(x).unsigned and format_of(x).top <= op.max * (1 + 1e-6):
            return x
    return by_table(op, low)


@SCALE_CONVERSIONS.converts(Prelu, scaling=Scaling.FREE)
def prelu(op: Prelu, low: ScaleLowering) -> Value:
    """Positive values times m >> s, negative ones times an i8 slope per channel >> r (`ops.activation.Prelu`).

    Positive values stay as they are where the result may have the scale of the operand: they are not known any better.
    """
    slope = low.need_constant(op.slope, "slope")
    if slope.size == 1:
        return by_table(op, low)
    threshold = low.plan.thresholds
    x = low.request(op.input)
    if format_of(x).unsigned:
        x = low.request(op.input, Format.symmetric(threshold[op.input]))
    wanted = Format.symmetric(threshold[op.result])
    least = 0.0 if np.abs(slope).max(initial=0.0) <= 1 else wanted.scale  # steeper slopes reach further than x does
    if low.is_free(op.result) and least <= format_of(x).scale <= _AS_COARSE * wanted.scale:
        wanted = format_of(x)
    ratio = format_of(x).scale / wanted.scale
    multiplier, shift = rescaling(ratio, U8)
    slope_shift = max(largest_shift(float(np.abs(slope).max(initial=0.0)) * ratio, I8), 0)
    integers = np.rint(slope.astype(np.float64) * ratio * 2.0**slope_shift)
    slopes = low.weight(np.clip(integers, -128, 127).astype(np.int8), op.slope, 2.0**-slope_shift / ratio)
    attributes = {"multiplier": multiplier, "rshift": shift, "slope_rshift": slope_shift}
    out = low.emit("prelu", [low.as_maps(x, op.axis), slopes], attributes, wanted)
    return low.as_before(out, x.shape)
