"""BatchNormalization (inference), LRN, and what leaves its input alone at inference."""

from __future__ import annotations

from bmcompiler.builder import Builder
from bmcompiler.errors import UnsupportedError
from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.registry import Tensor, onnx_op
from bmcompiler.ir import Value


@onnx_op("BatchNormalization")
def batch_normalization(node: Node, b: Builder) -> Value:
    node.ignore("momentum")
    if node.flag("training_mode") or node.int("spatial", 1) != 1:
        raise UnsupportedError(
            "only the inference form with one value per channel is supported",
            remedy="export the model in inference mode",
        )
    out: Value = b.batch_norm(*(node.input(i) for i in range(5)), epsilon=node.float("epsilon", 1e-5))
    return out


@onnx_op("LRN")
def lrn(node: Node, b: Builder) -> Value:
    out: Value = b.lrn(
        node.input(0),
        size=node.int("size"),
        alpha=node.float("alpha", 1e-4),
        beta=node.float("beta", 0.75),
        k=node.float("bias", 1.0),
    )
    return out


@onnx_op("Dropout")
def dropout(node: Node, b: Builder) -> Tensor:
    node.ignore("ratio", "seed", "is_test")
    if node.has(2) and node.scalar(2):
        raise UnsupportedError("training mode is not supported", remedy="export the model in inference mode")
    return node.tensor(0)


@onnx_op("Identity")
def identity(node: Node, b: Builder) -> Tensor:
    return node.tensor(0)
