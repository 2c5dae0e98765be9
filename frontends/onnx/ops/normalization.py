"""Normalizations, and what leaves its input alone at inference."""

from __future__ import annotations

import numpy as np

from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.frontends.onnx.node import Node, axis_of
from bmcompiler.frontends.onnx.registry import Tensor, onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder


@onnx_op("BatchNormalization")
def batch_normalization(node: Node, b: Builder) -> Value:
    node.ignore("momentum")
    if node.flag("training_mode") or node.int("spatial", 1) != 1:
        raise UnsupportedError(
            "only the inference form with one value per channel is supported",
            remedy="export the model in inference mode",
        )
    return b.batch_norm(*(node.input(i) for i in range(5)), epsilon=node.float("epsilon", 1e-5))


@onnx_op("LpNormalization")
def lp_normalization(node: Node, b: Builder) -> Value:
    x, p = node.input(0), node.int("p", 2)
    if p not in (1, 2):
        raise FileFormatError(f"p must be 1 or 2, got {p}")
    axis = axis_of(node.int("axis", -1), x.type.rank)
    norm = b.reduce(x, method="l1" if p == 1 else "l2", axes=(axis,))
    least = 4 * np.finfo(x.type.numpy).tiny  # what is all 0 stays 0; chips divide by nothing smaller
    return b.div(x, b.max(norm, b.weight(np.asarray(least), "least")))


def standardized(b: Builder, x: Value, axes: tuple[int, ...], epsilon: float) -> tuple[Value, Value, Value]:
    """(x - mean) / sqrt(variance + epsilon) over `axes`, the mean, and 1 / sqrt(variance + epsilon)."""
    mean = b.reduce(x, method="mean", axes=axes)
    centred = b.sub(x, mean)
    variance = b.reduce(b.mul(centred, centred), method="mean", axes=axes)
    spread = b.sqrt(b.add(variance, b.weight(np.asarray(epsilon, x.type.numpy), "epsilon")))
    return b.div(centred, spread), mean, spread


@onnx_op("InstanceNormalization")
def instance_normalization(node: Node, b: Builder) -> Value:
    x, rank = node.input(0), node.rank(0, least=3)
    normal, _, _ = standardized(b, x, tuple(range(2, rank)), node.float("epsilon", 1e-5))
    return b.scale(normal, node.input(1), node.input(2))


@onnx_op("LayerNormalization", since=17)
def layer_normalization(node: Node, b: Builder) -> tuple[Value, ...]:
    x, rank = node.input(0), node.rank(0, least=1)
    node.ignore("stash_type")
    axis = axis_of(node.int("axis", -1), rank)
    out, mean, spread = standardized(b, x, tuple(range(axis, rank)), node.float("epsilon", 1e-5))
    out = b.mul(out, node.input(1))
    if node.has(2):
        out = b.add(out, node.input(2))
    if len(node.proto.output) == 1:
        return (out,)
    return out, mean, b.div(b.weight(np.ones((), x.type.numpy), "one"), spread)


@onnx_op("Dropout")
def dropout(node: Node, b: Builder) -> tuple[Tensor, Tensor]:
    """The input, and a mask that lets everything through."""
    node.ignore("seed", "is_test")
    ratio = node.float("ratio", 0.5) if node.opset < 12 else node.scalar(1)
    if node.has(2) and node.scalar(2) and ratio != 0:
        raise UnsupportedError("training mode is not supported", remedy="export the model in inference mode")
    return node.tensor(0), np.broadcast_to(np.True_, node.shape())


@onnx_op("Identity")
def identity(node: Node, b: Builder) -> Tensor:
    return node.tensor(0)
