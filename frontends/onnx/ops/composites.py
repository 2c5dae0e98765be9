"""Ops without a TensorOp of their own, written with others."""

from __future__ import annotations

import numpy as np

from bmcompiler.builder import Builder
from bmcompiler.errors import ShapeError
from bmcompiler.frontends.onnx.node import Node, axis_of
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value


def _number(b: Builder, like: Value, number: float, name: str) -> Value:
    return b.weight(np.asarray(number, like.type.numpy), name)


@onnx_op("Selu")
def selu(node: Node, b: Builder) -> Value:
    x = node.input(0)
    grown = b.elu(x, alpha=node.float("alpha", 1.6732631921768188))
    out: Value = b.mul(grown, _number(b, x, node.float("gamma", 1.0507010221481323), "gamma"))
    return out


@onnx_op("Celu")
def celu(node: Node, b: Builder) -> Value:
    """alpha * elu(x / alpha)."""
    x, alpha = node.input(0), node.float("alpha", 1.0)
    if alpha == 0:
        raise ShapeError("alpha must not be 0")
    factor = _number(b, x, alpha, "alpha")
    out: Value = b.mul(b.elu(b.div(x, factor)), factor)
    return out


@onnx_op("Softsign")
def softsign(node: Node, b: Builder) -> Value:
    x = node.input(0)
    out: Value = b.div(x, b.add(b.abs(x), _number(b, x, 1.0, "one")))
    return out


@onnx_op("Mish")
def mish(node: Node, b: Builder) -> Value:
    x = node.input(0)
    out: Value = b.mul(x, b.tanh(b.softplus(x)))
    return out


@onnx_op("Swish")
def swish(node: Node, b: Builder) -> Value:
    x, alpha = node.input(0), node.float("alpha", 1.0)
    inner = x if alpha == 1 else b.mul(x, _number(b, x, alpha, "alpha"))
    out: Value = b.mul(x, b.sigmoid(inner))
    return out


def _standardized(b: Builder, x: Value, axes: tuple[int, ...], epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over `axes`."""
    centred = b.sub(x, b.reduce(x, method="mean", axes=axes))
    variance = b.reduce(b.mul(centred, centred), method="mean", axes=axes)
    out: Value = b.div(centred, b.sqrt(b.add(variance, _number(b, x, epsilon, "epsilon"))))
    return out


@onnx_op("InstanceNormalization")
def instance_normalization(node: Node, b: Builder) -> Value:
    x, rank = node.input(0), node.rank(0, least=3)
    normal = _standardized(b, x, tuple(range(2, rank)), node.float("epsilon", 1e-5))
    out: Value = b.scale(normal, node.input(1), node.input(2))
    return out


@onnx_op("LayerNormalization", since=17)
def layer_normalization(node: Node, b: Builder) -> Value:
    x, rank = node.input(0), node.rank(0, least=1)
    node.ignore("stash_type")
    axis = axis_of(node.int("axis", -1), rank)
    out: Value = _standardized(b, x, tuple(range(axis, rank)), node.float("epsilon", 1e-5))
    out = b.mul(out, node.input(1))
    if node.has(2):
        out = b.add(out, node.input(2))
    return out
