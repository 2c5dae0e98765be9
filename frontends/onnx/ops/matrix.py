"""Gemm and MatMul."""

from __future__ import annotations

import numpy as np

from bmcompiler.builder import Builder
from bmcompiler.errors import ShapeError
from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value


@onnx_op("Gemm")
def gemm(node: Node, b: Builder) -> Value:
    """alpha * A' B' + beta * C. Constant factors go into constant operands, so the usual layer is one matmul."""
    alpha, beta = node.float("alpha", 1.0), node.float("beta", 1.0)
    left, turn_left, turn_right = node.input(0), node.flag("transA"), node.flag("transB")
    if node.rank(0) != 2 or node.rank(1) != 2:
        raise ShapeError(f"inputs must have 2 axes, got {list(node.shape(0))} and {list(node.shape(1))}")
    node.ignore("broadcast")
    names = node.proto.input
    right = node.input(1)
    if alpha != 1 and node.is_constant(1):
        matrix = node.constant(1)
        right, alpha = b.weight(matrix * matrix.dtype.type(alpha), names[1]), 1.0
    columns = right.shape[0 if turn_right else 1]
    bias = _bias(node, beta, columns) if alpha == 1 and node.is_constant(2) else None
    turned = {"transpose_left": turn_left, "transpose_right": turn_right}
    if bias is not None:
        out: Value = b.matmul(left, right, b.weight(bias, names[2]), **turned)
        return out
    out = b.matmul(left, right, **turned)
    if alpha != 1:
        out = b.mul(out, b.weight(_scalar(out, alpha), "alpha"))
    if node.has(2) and beta != 0:
        term = node.input(2)
        out = b.add(out, term if beta == 1 else b.mul(term, b.weight(_scalar(term, beta), "beta")))
    return out


def _scalar(like: Value, number: float) -> np.ndarray:
    return np.asarray(number, like.type.numpy)


def _bias(node: Node, beta: float, columns: int) -> np.ndarray | None:
    """beta * C as a vector of one value per column; None when C differs from row to row."""
    term = node.constant(2)
    if term.ndim > 2 or (term.ndim == 2 and term.shape[0] != 1) or (term.ndim and term.shape[-1] not in (1, columns)):
        return None
    scaled = term if beta == 1 else term * term.dtype.type(beta)
    return np.broadcast_to(scaled.reshape(-1), (columns,))


@onnx_op("MatMul")
def mat_mul(node: Node, b: Builder) -> Value:
    """Vectors become a row (left) or a column (right), and that axis goes again in the result."""
    left, right = node.input(0), node.input(1)
    drop_row, drop_column = node.rank(0, least=1) == 1, node.rank(1, least=1) == 1
    if drop_row:
        left = b.reshape(left, shape=(1, *left.shape))
    if drop_column:
        right = b.reshape(right, shape=(*right.shape, 1))
    out: Value = b.matmul(left, right)
    if drop_row or drop_column:
        *batch, rows, columns = out.shape
        kept = ([] if drop_row else [rows]) + ([] if drop_column else [columns])
        out = b.reshape(out, shape=(*batch, *kept))
    return out
