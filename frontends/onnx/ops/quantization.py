"""Quantized ops. Those that compute on integers (QLinearConv, ...) become dequantize, the float op, quantize.

So every quantized model has the same form, and the pass absorb-qdq gives its scales to the target's own quantization.
"""

from __future__ import annotations

import numpy as np

from bmcompiler.errors import UnsupportedError
from bmcompiler.frontends.onnx.node import Node, axis_of
from bmcompiler.frontends.onnx.ops.convolution import convolve
from bmcompiler.frontends.onnx.ops.matrix import product
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.frontends.onnx.tensors import NARROW, dtype_name
from bmcompiler.ir import Value
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.ops.builder import Builder


def _axis(node: Node, scale: Value, rank: int) -> int:
    """The axis of a scale with several elements; ops with one scale per tensor do not look at it."""
    axis = node.int("axis", 1)
    return axis_of(axis, rank) if scale.type.size > 1 else 1


@onnx_op("QuantizeLinear")
def quantize_linear(node: Node, b: Builder) -> Value:
    node.ignore("saturate")  # of 8-bit floats
    x, scale, zero_point = node.input(0), node.input(1), node.optional(2)
    stated = dtype_name(node.int("output_dtype")) if node.int("output_dtype", 0) else "u8"
    precision = node.int("precision", 0)
    if precision and dtype_name(precision) != scale.dtype:
        scale = b.cast(scale, dtype=dtype_name(precision))
    return b.quantize_linear(
        x,
        scale,
        zero_point,
        dtype=stated if zero_point is None else zero_point.dtype,
        axis=_axis(node, scale, x.type.rank),
        block_size=node.int("block_size", 0),
    )


@onnx_op("DequantizeLinear")
def dequantize_linear(node: Node, b: Builder) -> Value:
    """Constants of 4 bits become bytes; one scale per output of a matrix of them is that of a block."""
    x, scale, stated, size = _bytes(node, b, 0), node.input(1), node.int("output_dtype", 0), node.int("block_size", 0)
    zero_point = _bytes(node, b, 2) if node.has(2) else None
    axis = _axis(node, scale, x.type.rank)
    if _is_narrow(node, 0) and not size and x.type.rank == 2 and scale.shape == (x.shape[axis],):
        axis, size = 1 - axis, x.shape[1 - axis]
        scale, zero_point = _as_column(b, scale, axis), zero_point and _as_column(b, zero_point, axis)
    out = b.dequantize_linear(x, scale, zero_point, axis=axis, block_size=size)
    if stated and dtype_name(stated) != out.dtype:
        out = b.cast(out, dtype=dtype_name(stated))
    return out


def _as_column(b: Builder, vector: Value, axis: int) -> Value:
    """A vector as a matrix that has one position along an axis; a constant stays one."""
    shape = (-1, 1) if axis else (1, -1)
    if vector.op is None or vector.op.name != WEIGHT:
        return b.reshape(vector, shape=tuple(vector.type.size if n < 0 else n for n in shape))
    key = vector.op.attributes["key"]
    return b.weight(b.module.weights[key].reshape(shape), key)


def _is_narrow(node: Node, index: int) -> bool:
    return node.is_constant(index) and node.constant(index).dtype.name in NARROW


def _bytes(node: Node, b: Builder, index: int) -> Value:
    """An input; constants of 4 bits as bytes."""
    if not _is_narrow(node, index):
        return node.input(index)
    array = node.constant(index)
    return b.weight(array.astype(NARROW[array.dtype.name]), node.proto.input[index])


def _real(node: Node, b: Builder, index: int, axis: int = 1) -> Value:
    """Inputs index (quantized), index + 1 (scale) and index + 2 (zero point) as reals."""
    scale = node.input(index + 1)
    return b.dequantize_linear(
        node.input(index), scale, node.optional(index + 2), axis=axis if scale.type.size > 1 else 1
    )


def _quantized(node: Node, b: Builder, x: Value, index: int) -> Value:
    """A real as the integers that inputs index (scale) and index + 1 (zero point) describe."""
    scale, zero_point = node.input(index), node.input(index + 1)
    if scale.type.size != 1:
        raise UnsupportedError("only one scale for the whole result is supported")
    return b.quantize_linear(x, scale, zero_point, dtype=zero_point.dtype)


@onnx_op("QLinearConv")
def qlinear_conv(node: Node, b: Builder) -> Value:
    """The bias is in units of input scale times weight scale."""
    weight = _real(node, b, 3, axis=0)
    bias = None
    if node.has(8):
        unit = b.mul(b.reshape(node.input(1), shape=(1,)), b.reshape(node.input(4), shape=(node.input(4).type.size,)))
        bias = b.mul(b.cast(node.input(8), dtype="f32"), unit)
    return _quantized(node, b, convolve(node, b, _real(node, b, 0), weight, bias), 6)


@onnx_op("QLinearMatMul")
def qlinear_matmul(node: Node, b: Builder) -> Value:
    rows, columns = node.rank(0, least=1), node.rank(3, least=1)
    left = _real(node, b, 0, axis=max(0, rows - 2))
    right = _real(node, b, 3, axis=columns - 1)
    return _quantized(node, b, product(b, left, right), 6)


def _exact(node: Node, b: Builder, index: int, zero_point: int, axis: int) -> Value:
    """Integers without their zero point as f64, in which the sums of their products are exact."""
    x = b.cast(node.input(index), dtype="f64")
    if not node.has(zero_point):
        return x
    offset = b.cast(node.input(zero_point), dtype="f64")
    shape = [1] * x.type.rank
    if offset.type.size > 1:
        shape[axis] = offset.type.size
    return b.sub(x, b.reshape(offset, shape=shape if x.type.rank else ()))


@onnx_op("ConvInteger")
def conv_integer(node: Node, b: Builder) -> Value:
    return b.cast(convolve(node, b, _exact(node, b, 0, 2, 1), _exact(node, b, 1, 3, 0), None), dtype="i32")


@onnx_op("MatMulInteger")
def matmul_integer(node: Node, b: Builder) -> Value:
    left = _exact(node, b, 0, 2, max(0, node.rank(0, least=1) - 2))
    right = _exact(node, b, 1, 3, node.rank(1, least=1) - 1)
    return b.cast(product(b, left, right), dtype="i32")


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: Node, b: Builder) -> tuple[Value, Value, Value]:
    """u8 over the range of the input, which is made to hold 0."""
    x = node.input(0)
    zero, steps = b.weight(np.float32(0), "zero"), b.weight(np.float32(255), "steps")
    axes = tuple(range(x.type.rank))
    low = b.min(b.reshape(b.reduce(x, method="min", axes=axes, keepdims=True), shape=()), zero)
    high = b.max(b.reshape(b.reduce(x, method="max", axes=axes, keepdims=True), shape=()), zero)
    scale = b.div(b.sub(high, low), steps)
    zero_point = b.cast(b.clip(b.round(b.div(b.neg(low), scale)), min=0.0, max=255.0), dtype="u8")
    return b.quantize_linear(x, scale, zero_point, dtype="u8"), scale, zero_point
