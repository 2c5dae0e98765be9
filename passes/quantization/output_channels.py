"""Output channels of layers: their weights as rows, and what scales for each of them mean."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import Operation, Quant
from bmcompiler.numeric.arrays import Array, Doubles
from bmcompiler.ops.layers.nn import Deconv, Matmul


def by_channel(op: Operation, weight: Array) -> Array:
    """Weights as (output channels, the rest)."""
    if isinstance(op, Deconv):
        c, o, kh, kw = weight.shape
        grouped = weight.reshape(op.group, c // op.group, o, kh, kw)
        return grouped.transpose(0, 2, 1, 3, 4).reshape(op.group * o, -1)
    if isinstance(op, Matmul):
        axis = -2 if op.transpose_right else -1
        return np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)
    return weight.reshape(len(weight), -1)


def as_weight(op: Operation, rows: Array, shape: tuple[int, ...]) -> Array:
    """The way back of `by_channel`."""
    if isinstance(op, Deconv):
        c, o, kh, kw = shape
        return rows.reshape(op.group, o, c // op.group, kh, kw).transpose(0, 2, 1, 3, 4).reshape(shape)
    if isinstance(op, Matmul):
        axis = len(shape) - (2 if op.transpose_right else 1)
        moved = (shape[axis], *shape[:axis], *shape[axis + 1 :])
        return np.moveaxis(rows.reshape(moved), 0, axis)
    return rows.reshape(shape)


def meaning(op: Operation, scales: Doubles) -> Quant | None:
    """What the weights mean, where output channels are an axis of theirs."""
    if isinstance(op, Deconv):
        return Quant.along(1, scales) if op.group == 1 else None
    if isinstance(op, Matmul):
        rank = op.right.type.rank
        return Quant.along(rank - (2 if op.transpose_right else 1), scales)
    return Quant.along(0, scales)
