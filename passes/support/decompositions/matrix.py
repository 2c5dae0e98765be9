"""Matrix products whose constant stands on the left, or that read transposed operands."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.passes.support.decompositions.base import Draft, legalizes

_MOST = 64
"""Constant matrices of one product; beyond that it is no longer worth a layer each."""


@legalizes(Matmul, integers=True)
def constant_left(op: Matmul, draft: Draft) -> Value | None:
    """constant (M, K) times x (..., K, N): a 1x1 convolution over N positions of K channels."""
    weight = draft.constant(op.left)
    if weight is None or weight.ndim != 2 or op.bias is not None or op.right.type.rank < 2:
        return None
    if op.mode == "asymmetric":  # it rounds by another rule in convolutions (bmlang.md 6, row 5)
        return None
    kernels = draft.weight((weight.T if op.transpose_left else weight)[:, :, None, None].copy(), "weight")
    x = _swapped(op.right, draft) if op.transpose_right else op.right
    batch, (depth, columns) = prod(x.shape[:-2]), x.shape[-2:]
    product = draft.emit("conv", [draft.reshape(x, (batch, depth, 1, columns)), kernels], **_finish(op))
    product.type = replace(op.type, shape=product.shape)
    return draft.reshape(product, op.type.shape)


@legalizes(Matmul, integers=True)
def transposed_before(op: Matmul, draft: Draft) -> Value | None:
    """A transposed operand, on the right a computed one, becomes a permute before the product."""
    right = op.transpose_right and draft.constant(op.right) is None
    if not op.transpose_left and not right:
        return None
    operands = [_swapped(op.left, draft) if op.transpose_left else op.left]
    operands += [_swapped(op.right, draft) if right else op.right, *op.operands[2:]]
    return draft.like(operands, transpose_left=False, transpose_right=op.transpose_right and not right)


@legalizes(Matmul, integers=True)
def equal_batches(op: Matmul, draft: Draft) -> Value | None:
    """Two computed tensors whose leading axes broadcast are repeated to the same ones."""
    batch = op.type.shape[:-2]
    if draft.constant(op.left) is not None or op.bias is not None:
        return None
    if all(value.shape[:-2] == batch for value in op.operands) or min(v.type.rank for v in op.operands) < 2:
        return None
    operands = [_repeated(value, batch, draft) for value in op.operands]
    return draft.like(operands)


@legalizes(Matmul, integers=True)
def constant_batches(op: Matmul, draft: Draft) -> Value | None:
    """Constant matrices, one per batch: a product each, joined again."""
    weight, left = draft.constant(op.right), op.left
    if weight is None or weight.ndim < 3 or op.bias is not None or op.transpose_left:
        return None
    batch = op.type.shape[:-2]
    count = prod(batch)
    if not 1 < count <= _MOST:
        return None
    full = draft.reshape(_repeated(left, batch, draft), (count, *left.shape[-2:]))
    matrices = np.broadcast_to(weight, (*batch, *weight.shape[-2:])).reshape(count, *weight.shape[-2:])
    parts = []
    for index in range(count):
        ends = (index + 1, *left.shape[-2:])
        rows = draft.emit("slice", [full], starts=(index, 0, 0), ends=ends, steps=(1, 1, 1))
        matrix = draft.weight(matrices[index].copy(), "weight")
        product = draft.like([draft.reshape(rows, ends[1:]), matrix])
        parts.append(draft.reshape(product, (1, *product.shape)))
    return draft.reshape(draft.emit("concat", parts, axis=0), op.type.shape)


def _repeated(x: Value, batch: tuple[int, ...], draft: Draft) -> Value:
    """`x` (..., rows, columns) with `batch` as its leading axes."""
    full = (1,) * (len(batch) + 2 - x.type.rank) + x.shape
    reps = (*(whole // part for whole, part in zip(batch, full)), 1, 1)
    x = draft.reshape(x, full)
    return x if set(reps) == {1} else draft.emit("tile", [x], reps=reps)


@legalizes(Matmul)
def bias_after(op: Matmul, draft: Draft) -> Value | None:
    """The bias of a product of two computed tensors is added afterwards."""
    if op.bias is None or draft.constant(op.right) is not None:
        return None
    modes = {"transpose_left": op.transpose_left, "transpose_right": op.transpose_right}
    return draft.emit("add", [draft.emit("matmul", op.operands[:2], **modes), op.bias])


def _finish(op: Matmul) -> dict[str, Any]:
    """How integer sums become the result."""
    return {"rshift": op.rshift, "mode": op.mode, "scale": op.scale}


def _swapped(x: Value, draft: Draft) -> Value:
    rank = x.type.rank
    return draft.emit("permute", [x], order=(*range(rank - 2), rank - 1, rank - 2))
