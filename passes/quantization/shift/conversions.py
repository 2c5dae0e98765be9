"""The conversions of the scheme "shift": those of all schemes and its own."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import Operation, Value
from bmcompiler.numeric import arith
from bmcompiler.ops.custom import Customized
from bmcompiler.ops.elements.activation import Clip, Prelu, Relu
from bmcompiler.ops.elements.elementwise import Mul
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.passes.quantization.base import Conversions, NoInt8Form, Scaling, is_constant
from bmcompiler.passes.quantization.conversions.activation import by_table
from bmcompiler.passes.quantization.conversions.elementwise import product
from bmcompiler.passes.quantization.conversions.linear import matmul
from bmcompiler.passes.quantization.conversions.shape import same_op
from bmcompiler.passes.quantization.conversions.table import COMMON
from bmcompiler.passes.quantization.formulas import I8, largest_shift, rescaling
from bmcompiler.passes.quantization.shift.formats import i8, threshold_of
from bmcompiler.passes.quantization.shift.lowering import ShiftLowering
from bmcompiler.passes.quantization.shift.plain import PLAIN
from bmcompiler.passes.rewriting import declared

CONVERSIONS = Conversions({**COMMON, **PLAIN})
CONVERSIONS.converts(Relu, scaling=Scaling.KEEPS)(same_op)


def _mul_scaling(op: Operation) -> Scaling:
    constants = [value for value in op.operands if is_constant(value)]
    if not constants:
        return Scaling.PRODUCT
    return Scaling.FREE if sum(d > 1 for d in constants[0].shape) <= 1 else Scaling.PRODUCT


def _matmul_scaling(op: Operation) -> Scaling:
    return Scaling.FREE if is_constant(op.operands[1]) else Scaling.PRODUCT


CONVERSIONS.converts(Mul, scaling=_mul_scaling)(product)
CONVERSIONS.converts(Matmul, scaling=_matmul_scaling)(matmul)


@CONVERSIONS.converts(Clip, scaling=Scaling.FREE)
def clip(op: Clip, low: ShiftLowering) -> Value:
    """relu where saturation enforces the upper bound (planning rule 4), else a table."""
    if op in low.plan.saturating:
        x = low.request(op.input)
        if threshold_of(x) <= op.max * (1 + 1e-9):
            return low.emit("relu", [x])
    return by_table(op, low)


@CONVERSIONS.converts(Prelu, scaling=Scaling.FREE)
def prelu(op: Prelu, low: ShiftLowering) -> Value:
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


@CONVERSIONS.converts(Customized, scaling=Scaling.FREE)
def customized(op: Customized, low: ShiftLowering) -> list[Value]:
    """The same op on int8 operands; results at their calibrated thresholds, which the plugin is told."""
    if low.target is None:
        raise NoInt8Form("its integer form depends on the chip, and no target is chosen")
    operands = [low.request(value) for value in op.operands]
    results = low.emit_all(op.opname, operands, {**declared(op), "target": low.target.name}, low.wanted(op.results[0]))
    for old, new in zip(op.results, results):
        new.type = i8(new.shape, low.wanted(old))
    return results
