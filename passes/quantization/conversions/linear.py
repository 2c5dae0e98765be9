"""Convolution, inner product, scaling per channel: what they multiply by and add."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.layers.nn import Conv, Convolution, Deconv, Matmul
from bmcompiler.ops.layers.norm import BatchNorm, Scale
from bmcompiler.passes.quantization.base import COMMON, NoInt8Form, Scaling
from bmcompiler.passes.quantization.forms import Affine, Forms


@COMMON.converts(Conv, Deconv, scaling=Scaling.FREE)
def convolution(op: Convolution, low: Forms[Any]) -> Value:
    return _layer(op, low)


def _layer(op: Convolution | Matmul, low: Forms[Any]) -> Value:
    weight = low.need_constant(op.operands[1], "weight")
    return low.layer(op, weight, None if op.bias is None else low.need_constant(op.bias, "bias"))


def matmul(op: Matmul, low: Forms[Any]) -> Value:
    """With constant weights a layer, else a product of two tensors. Schemes differ in its `Scaling`."""
    if low.constant(op.right) is not None:
        return _layer(op, low)
    if op.bias is not None:
        raise NoInt8Form("a product of two computed tensors takes no bias")
    return low.matrix_product(op, low.request(op.left), low.request(op.right))


@COMMON.converts(Scale, scaling=Scaling.FREE)
def scale(op: Scale, low: Forms[Any]) -> Value:
    weight = low.need_constant(op.weight, "weight")
    bias = None if op.bias is None else low.need_constant(op.bias, "bias")
    return low.per_channel(op, Affine(op.input, weight, bias, op.axis, like=op.weight))


@COMMON.converts(BatchNorm, scaling=Scaling.FREE)
def batch_norm(op: BatchNorm, low: Forms[Any]) -> Value:
    gamma, beta, mean, variance = (
        low.need_constant(value, "statistics").astype(np.float64) for value in op.operands[1:]
    )
    weight = gamma / np.sqrt(variance + op.epsilon)
    return low.per_channel(op, Affine(op.input, weight, beta - mean * weight, 1, like=op.gamma))
