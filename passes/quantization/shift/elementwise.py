"""Two tensors element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.ir import Operation, Value
from bmcompiler.numeric import arith
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.base import NoInt8Form, Scaling, is_constant, rule
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.formulas import (
    I8,
    constant_threshold,
    product_threshold,
    rescaling,
    sum_multipliers,
)
from bmcompiler.passes.quantization.shift.activation import by_table
from bmcompiler.passes.quantization.shift.linear import per_channel
from bmcompiler.passes.quantization.shift.lowering import Lowering, threshold_of


@rule("add", "sub", scaling=Scaling.FREE)
def weighted_sum(op: TensorOp, low: Lowering) -> Value:
    """mac_shift with multipliers t_i / ty; one value per channel becomes the bias of a 1x1 depthwise convolution."""
    data, constant = split_operands(op, low)
    if constant is not None and constant.size == 1:
        return by_table(op, low, data)
    if op.attributes.get("activation"):
        raise NoInt8Form("a sum with an activation inside has no int8 form")
    axis = None if constant is None else channel_axis(constant, op.operands[data].shape, op.type.shape)
    if constant is not None and axis is not None:
        signs = (1.0, -1.0) if op.opname == "sub" else (1.0, 1.0)
        weight = np.full(op.type.shape[axis], signs[data])
        bias = constant.reshape(-1) * signs[1 - data]
        return per_channel(op, low, op.operands[data], weight=weight, bias=bias, axis=axis, like=None)
    operands = [_full(op, low, value, None) for value in op.operands]
    wanted = low.wanted(op.result)
    ratios = [threshold_of(value) / wanted for value in operands]
    if op.opname == "sub":
        ratios[1] = -ratios[1]
    multipliers, shift = sum_multipliers(ratios)
    return low.emit("mac_shift", operands, {"multipliers": multipliers, "rshift": shift}, wanted)


def _mul_scaling(op: Operation) -> Scaling:
    constants = [value for value in op.operands if is_constant(value)]
    if not constants:
        return Scaling.PRODUCT
    return Scaling.FREE if sum(d > 1 for d in constants[0].shape) <= 1 else Scaling.PRODUCT


@rule("mul", scaling=_mul_scaling)
def product(op: TensorOp, low: Lowering) -> Value:
    """mul_shift at a threshold that makes the factor a power of two; constant factors are cheaper."""
    data, constant = split_operands(op, low)
    if constant is not None and constant.size == 1:
        return _times_scalar(op, low, op.operands[data], float(constant.flat[0]))
    axis = None if constant is None else channel_axis(constant, op.operands[data].shape, op.type.shape)
    if constant is not None and axis is not None:
        source, like = op.operands[data], op.operands[1 - data]
        return per_channel(op, low, source, weight=constant.reshape(-1), bias=None, axis=axis, like=like)
    left, right = (low.request(value) for value in op.operands)
    threshold, shift = product_threshold(threshold_of(left), threshold_of(right), low.wanted(op.result))
    return low.emit("mul_shift", [left, right], {"rshift": shift}, threshold)


@rule("div", scaling=Scaling.FREE)
def quotient(op: TensorOp, low: Lowering) -> Value:
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
def power(op: TensorOp, low: Lowering) -> Value:
    data, constant = split_operands(op, low)
    if constant is None or constant.size != 1:
        raise NoInt8Form("only a power with one constant has an int8 form")
    return by_table(op, low, data)


def _extreme_scaling(op: Operation) -> Scaling:
    return Scaling.FREE if any(is_constant(v) and v.type.size == 1 for v in op.operands) else Scaling.JOINS


@rule("max", "min", scaling=_extreme_scaling)
def extreme(op: TensorOp, low: Lowering) -> Value:
    data, constant = split_operands(op, low)
    if constant is not None and constant.size == 1:
        return by_table(op, low, data)
    common = low.plan.joined[op]
    return low.emit(op.opname, [_full(op, low, value, common) for value in op.operands], {}, common)


def split_operands(op: TensorOp, low: Building[Any]) -> tuple[int, NDArray[Any] | None]:
    """(index of the computed operand, array of the other one when it is a constant)."""
    left, right = (low.constant(value) for value in op.operands)
    if left is not None and right is not None:
        raise NoInt8Form("both operands are constants")
    return (1, left) if left is not None else (0, right)


def channel_axis(constant: NDArray[Any], data: tuple[int, ...], result: tuple[int, ...]) -> int | None:
    """The axis along which a constant has one value per position of the data, when it varies along no other."""
    if data != result or constant.ndim > len(data):
        return None
    shape = (1,) * (len(data) - constant.ndim) + constant.shape
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    return axes[0] if len(axes) == 1 and shape[axes[0]] == data[axes[0]] else None


def _full(op: TensorOp, low: Lowering, value: Value, threshold: float | None) -> Value:
    """An operand in the shape of the result: constants are spread at compile time, tensors repeated."""
    shape = op.type.shape
    if value.shape == shape:
        return low.request(value, threshold)
    array = low.constant(value)
    if array is not None:
        scale = threshold or constant_threshold(array)
        return low.weight(np.broadcast_to(arith.quantize_real(array, scale), shape), value, scale / 128)
    x = low.request(value, threshold)
    aligned = (1,) * (len(shape) - len(x.shape)) + x.shape
    if aligned != x.shape:
        x = low.emit("reshape", [x], {"shape": aligned})
    return low.emit("tile", [x], {"reps": tuple(whole // part for whole, part in zip(shape, aligned))})


def _times_scalar(op: TensorOp, low: Lowering, source: Value, factor: float) -> Value:
    x = low.request(source)
    wanted = low.wanted(op.result)
    ratio = threshold_of(x) / wanted * factor
    multiplier, shift = rescaling(ratio) if ratio >= 0 else rescaling(-ratio, I8)
    multiplier = multiplier if ratio >= 0 else -multiplier
    return low.emit("muls_shift", [x], {"multiplier": multiplier, "rshift": shift}, wanted)
