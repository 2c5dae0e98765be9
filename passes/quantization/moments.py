"""What a layer multiplies its weights by: rows of its input, some of each sample."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bmcompiler.ir import Operation
from bmcompiler.ir.keys import is_weight
from bmcompiler.numeric.arrays import Array, Indices
from bmcompiler.ops.layers.nn import Conv, Matmul

_DEPTH = 1152
"""The longest sums that are looked at: moments take 5 MB and their layer some 30 ms then."""


def has_rows(op: Operation) -> bool:
    """Whether each result of a layer is a row of its input times weights: convolutions and products of matrices."""
    if isinstance(op, Matmul):
        return op.right.type.rank == 2 and not op.transpose_left
    return isinstance(op, Conv)


def has_constant_rows(op: Operation) -> bool:
    """Whether a layer has rows and real weights, and its sums are not longer than may be measured."""
    if not has_rows(op) or not is_weight(op.operands[1]) or not op.operands[0].type.is_float:
        return False
    shape = op.operands[1].shape
    return (op.operands[0].shape[-1] if len(shape) == 2 else prod(shape[1:])) <= _DEPTH


def as_matrices(op: Operation, weight: Array) -> Array:
    """Weights as (groups, depth, results of a group); sums of products run over the depth."""
    if isinstance(op, Matmul):
        return (weight.T if op.transpose_right else weight)[None]
    assert isinstance(op, Conv), "of matrix products or convolutions"
    return weight.reshape(op.group, len(weight) // op.group, -1).transpose(0, 2, 1)


def as_weight(op: Operation, matrices: Array, shape: tuple[int, ...]) -> Array:
    """The way back of `as_matrices`."""
    if isinstance(op, Matmul):
        return matrices[0].T if op.transpose_right else matrices[0]
    return matrices.transpose(0, 2, 1).reshape(shape)


def rows_of(op: Operation, x: Array, most: int) -> Array:
    """What up to `most` results of each channel are sums over, (groups, rows, depth), from all over the input."""
    if isinstance(op, Matmul):
        vectors = x.reshape(-1, x.shape[-1])
        return vectors[_some(len(vectors), most)][None]
    assert isinstance(op, Conv), "of matrix products or convolutions"
    (top, bottom, left, right), (dy, dx), (sy, sx) = op.pads, op.dilations, op.strides
    height, width = op.weight.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    reach = (dy * (height - 1) + 1, dx * (width - 1) + 1)
    windows = sliding_window_view(padded, reach, axis=(2, 3))[:, :, ::sy, ::sx, ::dy, ::dx]
    n, _, h, w = windows.shape[:4]
    sample, y, x_ = np.unravel_index(_some(n * h * w, most), (n, h, w))
    rows = windows[sample, :, y, x_].reshape(len(sample), op.group, -1)
    return np.ascontiguousarray(rows.transpose(1, 0, 2))


def _some(count: int, most: int) -> Indices:
    """Up to `most` of so many indices, by chance, but the same in every run."""
    return np.sort(np.random.default_rng(count).permutation(count)[:most])
