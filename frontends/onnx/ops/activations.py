"""Clip, PRelu, Softmax; most functions of one tensor are rows."""

from __future__ import annotations

import numpy as np

from bmcompiler.errors import ShapeError
from bmcompiler.frontends.onnx.node import Node, axis_of
from bmcompiler.frontends.onnx.registry import Tensor, onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder


@onnx_op("Clip")
def clip_by_attributes(node: Node, b: Builder) -> Tensor:
    low = node.float("min") if node.has_attribute("min") else None
    high = node.float("max") if node.has_attribute("max") else None
    return _clip(b, node.input(0), low, high)


@onnx_op("Clip", since=11)
def clip_by_inputs(node: Node, b: Builder) -> Tensor:
    x = node.input(0)
    bounds = [i for i in (1, 2) if node.has(i)]
    if x.type.is_float and all(node.is_constant(i) for i in bounds):
        return _clip(b, x, node.scalar(1), node.scalar(2))
    for i in bounds:
        x = b.max(x, node.input(i)) if i == 1 else b.min(x, node.input(i))
    return x


def _clip(b: Builder, x: Value, low: float | None, high: float | None) -> Tensor:
    bounds = {name: float(value) for name, value in (("min", low), ("max", high)) if value is not None}
    if low is not None and high is not None and low > high:  # ONNX: the upper bound wins
        bounds["min"] = bounds["max"]
    return b.clip(x, **bounds) if bounds else x


@onnx_op("PRelu")
def prelu(node: Node, b: Builder) -> Value:
    """One slope per position of one axis is a prelu; any other slope is max(x, 0) + slope * min(x, 0)."""
    x, slope = node.input(0), node.tensor(1)
    rank = x.type.rank
    if len(slope.shape) > rank:
        raise ShapeError(f"slope {list(slope.shape)} has more axes than input {list(x.shape)}")
    shape = (1,) * (rank - len(slope.shape)) + tuple(slope.shape)
    wide = [axis for axis, size in enumerate(shape) if size != 1]
    if rank > 1 and len(wide) <= 1 and len(slope.shape):
        axis = wide[0] if wide else 1
        return _prelu(node, b, x, slope, axis)
    zero = b.weight(np.zeros((), x.type.numpy), "zero")
    return b.add(b.max(x, zero), b.mul(b.min(x, zero), node.input(1)))


def _prelu(node: Node, b: Builder, x: Value, slope: Tensor, axis: int) -> Value:
    if isinstance(slope, np.ndarray):
        vector = b.weight(slope.reshape(-1), node.proto.input[1])
    else:
        vector = b.reshape(slope, shape=(slope.type.size,))
    return b.prelu(x, vector, axis=axis)


@onnx_op("Softmax", "LogSoftmax", "Hardmax")
def softmax_flattened(node: Node, b: Builder) -> Value:
    """Before opset 13 the axis splits the shape in two, and all of the second part is normalised together."""
    x, rank = node.input(0), node.rank(0, least=1)
    axis = axis_of(node.int("axis", 1), rank) if node.int("axis", 1) != rank else rank
    name = _SOFTMAX[node.type]
    if axis < rank and all(d == 1 for d in x.shape[axis + 1 :]):
        return b.create(name, [x], {"axis": axis}).result
    rows = 1
    for size in x.shape[:axis]:
        rows *= size
    flat = b.reshape(x, shape=(rows, x.type.size // max(rows, 1)))
    return b.reshape(b.create(name, [flat], {"axis": 1}).result, shape=x.shape)


_SOFTMAX = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Hardmax": "hardmax"}


@onnx_op("Softmax", "LogSoftmax", "Hardmax", since=13)
def softmax(node: Node, b: Builder) -> Value:
    axis = axis_of(node.int("axis", -1), node.rank(0, least=1))
    return b.create(_SOFTMAX[node.type], [node.input(0)], {"axis": axis}).result
