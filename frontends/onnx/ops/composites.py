"""Ops without a TensorOp of their own, written with others."""

from __future__ import annotations

import numpy as np

from bmcompiler.builder import Builder
from bmcompiler.frontends.onnx.node import Node, axis_of
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value


def _number(b: Builder, like: Value, number: float, name: str) -> Value:
    return b.weight(np.asarray(number, like.type.numpy), name)


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
