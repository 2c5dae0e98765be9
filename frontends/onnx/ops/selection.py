"""Ops whose result has a shape that depends on values: computed during import, from constants only."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError
from bmcompiler.frontends.onnx.constants import MAX_GROWN, check_size, folds
from bmcompiler.frontends.onnx.node import Node, axis_of
from bmcompiler.frontends.onnx.tensors import numpy_type
from bmcompiler.ir import DTYPES


@folds("NonZero")
def non_zero(node: Node) -> Any:
    x = node.constant(0)
    check_size(x.shape, max(MAX_GROWN, x.nbytes))
    return np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64)


@folds("EyeLike")
def eye_like(node: Node) -> Any:
    """Ones on diagonal k; of the input only shape and element type count."""
    type = node.tensor_type(0)
    if type.rank != 2:
        raise ShapeError(f"input must have 2 axes, got {list(type.shape)}")
    check_size(type.shape, MAX_GROWN)
    dtype = numpy_type(node.int("dtype")) if node.has_attribute("dtype") else np.dtype(DTYPES[type.dtype][1])
    rows, columns = type.shape
    return np.eye(rows, columns, k=max(-rows, min(columns, node.int("k", 0))), dtype=dtype)


@folds("Unique")
def unique(node: Node) -> Any:
    """Values, first indices, inverse, counts; without `sorted` in the order of first occurrence."""
    x = node.constant(0)
    axis = axis_of(node.int("axis"), x.ndim) if node.has_attribute("axis") else None
    if axis is None:
        x, axis = x.reshape(-1), 0
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not node.flag("sorted", True):
        order = np.argsort(first)
        values, first, counts = values.take(order, axis=axis), first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    return values, *(array.astype(np.int64) for array in (first, inverse, counts))


@folds("NonMaxSuppression")
def non_max_suppression(node: Node) -> Any:
    """Rows (batch, class, box) of the boxes that no better box of their class overlaps too much."""
    boxes, scores = node.constant(0), node.constant(1)
    if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape[::2] != (scores.shape[0], 4):
        raise ShapeError(f"boxes {list(boxes.shape)} and scores {list(scores.shape)} do not fit")
    if boxes.shape[1] != scores.shape[2]:
        raise ShapeError(f"{boxes.shape[1]} boxes have {scores.shape[2]} scores")
    most, overlap, least = (node.scalar(i) for i in (2, 3, 4))
    corners = _corners(boxes, node.int("center_point_box", 0))
    rows = [
        (batch, kind, box)
        for batch, kinds in enumerate(scores)
        for kind, values in enumerate(kinds)
        for box in _kept(corners[batch], values, int(most or 0), float(overlap or 0), least)
    ]
    return np.asarray(rows, np.int64).reshape(-1, 3)


def _corners(boxes: np.ndarray, form: int) -> np.ndarray:
    """(top, left, bottom, right) from opposite corners in any order, or (form 1) from centre x, y, width, height."""
    if form not in (0, 1):
        raise FileFormatError(f"center_point_box must be 0 or 1, got {form}")
    if form == 1:
        x, y, width, height = np.moveaxis(boxes, -1, 0)
        return np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], axis=-1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def _kept(boxes: np.ndarray, scores: np.ndarray, most: int, overlap: float, least: float | None) -> list[int]:
    """Indices of at most `most` boxes by falling score, each overlapping those before by at most `overlap`."""
    order = np.argsort(-scores, kind="stable")
    if least is not None:
        order = order[scores[order] > least]
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    kept: list[int] = []
    while order.size and len(kept) < most:
        best, order = int(order[0]), order[1:]
        kept.append(best)
        low, high = np.maximum(boxes[order, :2], boxes[best, :2]), np.minimum(boxes[order, 2:], boxes[best, 2:])
        common = np.prod(np.maximum(high - low, 0), axis=1)
        union = areas[order] + areas[best] - common
        order = order[common <= overlap * union]
    return kept
