"""Two tensors element by element."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from bmcompiler.ir import Operation, Value
from bmcompiler.numeric import quant_modes
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.base import NoInt8Form, Scaling, is_constant
from bmcompiler.passes.quantization.formulas import I8, product_threshold, rescaling, sum_multipliers
from bmcompiler.passes.quantization.scale.activation import by_table
from bmcompiler.passes.quantization.scale.base import rule
from bmcompiler.passes.quantization.scale.formats import Format, format_of, single
from bmcompiler.passes.quantization.scale.linear import after, per_channel, within
from bmcompiler.passes.quantization.scale.lowering import ScaleLowering
from bmcompiler.passes.quantization.shift.elementwise import channel_axis, split_operands


@rule("add", "sub", scaling=Scaling.FREE)
def weighted_sum(op: TensorOp, low: ScaleLowering) -> Value:
    """mac_shift with multipliers scale_i / scale of -127..127, which the chip does exactly: the first product fits 16
    bits, the second is added before the one rounding shift (bm1684.md 6.4). One value per channel is a 1x1 convolution.
    """
    data, constant = split_operands(op, low)
    if constant is not None and constant.size == 1:
        return by_table(op, low, data)
    axis = None if constant is None else channel_axis(constant, op.operands[data].shape, op.type.shape)
    if constant is not None and axis is not None:
        signs = (1.0, -1.0) if op.opname == "sub" else (1.0, 1.0)
        weight = np.full(op.type.shape[axis], signs[data])
        bias = constant.reshape(-1) * signs[1 - data]
        return per_channel(op, low, op.operands[data], weight=weight, bias=bias, axis=axis, like=None)
    operands = [_full(op, low, value, None) for value in op.operands]
    signed = [format_of(operands[0]).scale, format_of(operands[1]).scale * (-1 if op.opname == "sub" else 1)]
    wanted = within(op, low.wanted(op.result))
    if max(map(abs, signed)) > (I8 + 0.5) * wanted.scale:
        raise NoInt8Form("an operand is more than 127 times as large as the sum")
    if low.is_free(op.result):
        wanted = _fitting(signed, wanted)
    multipliers, shift = sum_multipliers([scale / wanted.scale for scale in signed])
    total = low.emit("mac_shift", operands, {"multipliers": multipliers, "rshift": shift}, wanted)
    return low.emit("relu", [total]) if after(op, wanted) else total


def _fitting(scales: list[float], wanted: Format) -> Format:
    """`wanted`, its scale changed by up to 1 %, so that multipliers of 7 bits stand for the ratios as well as can be.

    A wrong ratio is an error of the whole tensor, a scale that is a little larger costs next to nothing.
    """

    def loss(scale: float) -> float:
        multipliers, shift = sum_multipliers([each / scale for each in scales])
        return sum((each - m * scale / 2.0**shift) ** 2 for each, m in zip(scales, multipliers))

    candidates = [wanted.scale * (1 + step / 2000) for step in range(20)]
    return replace(wanted, scale=single(min(candidates, key=loss)))


@rule("mul", scaling=Scaling.FREE)
def product(op: TensorOp, low: ScaleLowering) -> Value:
    """Two tensors: the product in 16 bits, then one factor; or where the target lacks that, one shift and a scale of
    the result that fits it. Constant factors are cheaper."""
    data, constant = split_operands(op, low)
    if constant is not None and constant.size == 1:
        return _times_scalar(op, low, op.operands[data], float(constant.flat[0]))
    axis = None if constant is None else channel_axis(constant, op.operands[data].shape, op.type.shape)
    if constant is not None and axis is not None:
        source, like = op.operands[data], op.operands[1 - data]
        return per_channel(op, low, source, weight=constant.reshape(-1), bias=None, axis=axis, like=like)
    operands = [low.request(value) for value in op.operands]
    return low.first_of([partial(form, op, low, operands) for form in (_in_16_bits, _by_shift)])


def _in_16_bits(op: TensorOp, low: ScaleLowering, operands: list[Value]) -> Value:
    wanted = low.wanted(op.result)
    formats = [format_of(value) for value in operands]
    shift = 1 if all(each.unsigned for each in formats) else 0  # 255 * 255 / 2 fits 16 bits, as all others do whole
    wide = Format("i16", single(formats[0].scale * formats[1].scale * 2.0**shift))
    exact = low.emit("mul_shift", operands, {"rshift": shift}, wide)
    multiplier, rshift = rescaling(wide.scale / wanted.scale, I8)
    return low.emit("muls_shift", [exact], {"multiplier": multiplier, "rshift": rshift}, wanted)


def _by_shift(op: TensorOp, low: ScaleLowering, operands: list[Value]) -> Value:
    wanted = low.wanted(op.result)
    left, right = (format_of(value).scale for value in operands)
    scale, shift = product_threshold(left * 128, right * 128, wanted.scale * 128)
    return low.emit("mul_shift", operands, {"rshift": shift}, Format(wanted.dtype, single(scale / 128)))


def _times_scalar(op: TensorOp, low: ScaleLowering, source: Value, factor: float) -> Value:
    x = low.request(source)
    wanted = low.wanted(op.result)
    ratio = format_of(x).scale / wanted.scale * factor
    multiplier, shift = rescaling(abs(ratio), I8)
    sign = 1 if ratio >= 0 else -1
    return low.emit("muls_shift", [x], {"multiplier": sign * multiplier, "rshift": shift}, wanted)


@rule("div", scaling=Scaling.FREE)
def quotient(op: TensorOp, low: ScaleLowering) -> Value:
    """Division by a constant is multiplication; of a scalar by a tensor, a table."""
    data, constant = split_operands(op, low)
    if constant is None or (constant == 0).any():
        raise NoInt8Form("only division by a constant other than 0 has an int8 form")
    if constant.size == 1:
        return by_table(op, low, data)
    axis = channel_axis(constant, op.operands[data].shape, op.type.shape)
    if data != 0 or axis is None:
        raise NoInt8Form("only division by one constant, or one per channel, has an int8 form")
    weight = 1.0 / constant.reshape(-1).astype(np.float64)
    return per_channel(op, low, op.a, weight=weight, bias=None, axis=axis, like=op.b)


@rule("pow", scaling=Scaling.FREE)
def power(op: TensorOp, low: ScaleLowering) -> Value:
    data, constant = split_operands(op, low)
    if constant is None or constant.size != 1:
        raise NoInt8Form("only a power with one constant has an int8 form")
    return by_table(op, low, data)


def _extreme_scaling(op: Operation) -> Scaling:
    return Scaling.FREE if any(is_constant(v) and v.type.size == 1 for v in op.operands) else Scaling.JOINS


@rule("max", "min", scaling=_extreme_scaling)
def extreme(op: TensorOp, low: ScaleLowering) -> Value:
    data, constant = split_operands(op, low)
    if constant is not None and constant.size == 1:
        return by_table(op, low, data)
    common = low.wanted(op.result)
    return low.emit(op.opname, [_full(op, low, value, common) for value in op.operands], {}, common)


def _full(op: TensorOp, low: ScaleLowering, value: Value, wanted: Format | None) -> Value:
    """An operand in the shape of the result: constants are spread at compile time, tensors repeated."""
    shape = op.type.shape
    if value.shape == shape:
        return low.request(value, wanted)
    array = low.constant(value)
    if array is not None:
        chosen = wanted or low.of_constant(array)
        spread = np.broadcast_to(quant_modes.quantize_away(array, chosen.scale, chosen.dtype), shape)
        return low.constant_in(spread, value, chosen)
    x = low.request(value, wanted)
    aligned = (1,) * (len(shape) - len(x.shape)) + x.shape
    if aligned != x.shape:
        x = low.emit("reshape", [x], {"shape": aligned}, format_of(x))
    return low.emit("tile", [x], {"reps": tuple(whole // part for whole, part in zip(shape, aligned))}, format_of(x))
