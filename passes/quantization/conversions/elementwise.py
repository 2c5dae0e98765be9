"""Two tensors element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.ir import Operation, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.elementwise import Add, Arithmetic, Div, Extreme, Max, Min, Mul, Pow, Sub
from bmcompiler.passes.quantization.base import COMMON, NoInt8Form, Scaling, is_constant
from bmcompiler.passes.quantization.conversions.activation import by_table
from bmcompiler.passes.quantization.formats import F
from bmcompiler.passes.quantization.forms import Affine, Forms


@COMMON.converts(Add, Sub, scaling=Scaling.FREE)
def weighted_sum(op: Arithmetic, low: Forms[Any]) -> Value:
    """Of two tensors; with one constant a table, with one per channel a bias."""
    data, constant = _split(op, low)
    if constant is not None and constant.size == 1:
        return by_table(op, low, data)
    axis = None if constant is None else _channel_axis(constant, op.operands[data].shape, op.type.shape)
    if constant is not None and axis is not None:
        signs = (1.0, -1.0) if isinstance(op, Sub) else (1.0, 1.0)
        weight = np.full(op.type.shape[axis], signs[data])
        bias = constant.reshape(-1) * signs[1 - data]
        return low.per_channel(op, Affine(op.operands[data], weight, bias, axis))
    return low.total(op, [_full(op, low, value, None) for value in op.operands])


def product(op: Mul, low: Forms[Any]) -> Value:
    """Of two tensors; constant factors, one or one per channel, are cheaper. Schemes differ in its `Scaling`."""
    data, constant = _split(op, low)
    if constant is not None and constant.size == 1:
        return low.times(op, low.request(op.operands[data]), float(constant.flat[0]))
    axis = None if constant is None else _channel_axis(constant, op.operands[data].shape, op.type.shape)
    if constant is not None and axis is not None:
        affine = Affine(op.operands[data], constant.reshape(-1), None, axis, like=op.operands[1 - data])
        return low.per_channel(op, affine)
    return low.product(op, [low.request(value) for value in op.operands])


@COMMON.converts(Div, scaling=Scaling.FREE)
def quotient(op: Div, low: Forms[Any]) -> Value:
    """Division by a constant is multiplication; of a scalar by a tensor, a table."""
    data, constant = _split(op, low)
    if constant is None or (constant == 0).any():
        raise NoInt8Form("only division by a constant other than 0 has an int8 form")
    if constant.size == 1:
        return by_table(op, low, data)
    axis = _channel_axis(constant, op.operands[data].shape, op.type.shape)
    if data != 0 or axis is None:
        raise NoInt8Form("only division by one constant, or one per channel, has an int8 form")
    weight = 1.0 / constant.reshape(-1).astype(np.float64)
    return low.per_channel(op, Affine(op.a, weight, None, axis, like=op.b))


@COMMON.converts(Pow, scaling=Scaling.FREE)
def power(op: Pow, low: Forms[Any]) -> Value:
    data, constant = _split(op, low)
    if constant is None or constant.size != 1:
        raise NoInt8Form("only a power with one constant has an int8 form")
    return by_table(op, low, data)


def _extreme_scaling(op: Operation) -> Scaling:
    return Scaling.FREE if any(is_constant(v) and v.type.size == 1 for v in op.operands) else Scaling.JOINS


@COMMON.converts(Max, Min, scaling=_extreme_scaling)
def extreme(op: Extreme, low: Forms[Any]) -> Value:
    data, constant = _split(op, low)
    if constant is not None and constant.size == 1:
        return by_table(op, low, data)
    common = low.wanted(op.result)
    return low.emit(op.opname, [_full(op, low, value, common) for value in op.operands], {}, common)


def _split(op: TensorOp, low: Forms[Any]) -> tuple[int, Array | None]:
    """(index of the computed operand, array of the other one when it is a constant)."""
    left, right = (low.constant(value) for value in op.operands)
    if left is not None and right is not None:
        raise NoInt8Form("both operands are constants")
    return (1, left) if left is not None else (0, right)


def _channel_axis(constant: Array, data: tuple[int, ...], result: tuple[int, ...]) -> int | None:
    """The axis along which a constant has one value per position of the data, when it varies along no other."""
    if data != result or constant.ndim > len(data):
        return None
    shape = (1,) * (len(data) - constant.ndim) + constant.shape
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    return axes[0] if len(axes) == 1 and shape[axes[0]] == data[axes[0]] else None


def _full(op: TensorOp, low: Forms[F], value: Value, wanted: F | None) -> Value:
    """An operand in the shape of the result: constants are spread at compile time, tensors repeated."""
    shape = op.type.shape
    if value.shape == shape:
        return low.request(value, wanted)
    array = low.constant(value)
    if array is not None:
        chosen = low.of_constant(array) if wanted is None else wanted
        return low.constant_in(np.broadcast_to(low.integers(array, chosen), shape), value, chosen)
    x = low.request(value, wanted)
    aligned = (1,) * (len(shape) - len(x.shape)) + x.shape
    if aligned != x.shape:
        x = low.emit("reshape", [x], {"shape": aligned}, low.format_of(x))
    reps = tuple(whole // part for whole, part in zip(shape, aligned))
    return low.emit("tile", [x], {"reps": reps}, low.format_of(x))
