"""Ops whose result has a shape that depends on values: computed at import from constants, else padded or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError
from bmcompiler.frontends.onnx.constants import MAX_GROWN, check_size, folds
from bmcompiler.frontends.onnx.node import Node, axis_of
from bmcompiler.frontends.onnx.registry import Tensor, onnx_op
from bmcompiler.frontends.onnx.tensors import numpy_type
from bmcompiler.ops.places.selection import selected_boxes

if TYPE_CHECKING:
    from bmcompiler.ops.builder import Builder


@folds("NonZero")
def non_zero(node: Node) -> Any:
    """Of a constant: indices of the elements that are not 0, (rank, count) i64."""
    x = node.constant(0)
    check_size(x.shape, max(MAX_GROWN, x.nbytes))
    return np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64)


@onnx_op("NonZero", since=9)
def computed_non_zero(node: Node, b: Builder) -> Tensor:
    """Values known at run time only: a column per element, unused ones -1."""
    x = node.input(0)
    return b.nonzero(x if x.type.rank else b.reshape(x, shape=(1,)))


@folds("EyeLike")
def eye_like(node: Node) -> Any:
    """Ones on diagonal k; of the input only shape and element type count."""
    type = node.tensor_type(0)
    if type.rank != 2:
        raise ShapeError(f"input must have 2 axes, got {list(type.shape)}")
    check_size(type.shape, MAX_GROWN)
    dtype = numpy_type(node.int("dtype")) if node.has_attribute("dtype") else type.numpy
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
def folded_suppression(node: Node) -> Any:
    """Rows (batch, class, box) of the boxes that no better box of their class overlaps too much."""
    most, overlap, least, centered = _limits(node)
    return selected_boxes(node.constant(0), node.constant(1), most, overlap, least, centered=centered)


@onnx_op("NonMaxSuppression", since=10)
def non_max_suppression(node: Node, b: Builder) -> Tensor:
    """Boxes or scores known at run time only: as many rows as there can be, unused ones -1."""
    most, overlap, least, centered = _limits(node)
    if not most:
        return np.zeros((0, 3), np.int64)
    rows = b.non_max_suppression(
        node.input(0),
        node.input(1),
        max_boxes=most,
        iou_threshold=overlap,
        score_threshold=least,
        centered=centered,
    )
    return b.cast(rows, dtype="i64")


def _limits(node: Node) -> tuple[int, float, float, bool]:
    """How many boxes stay at most per class, overlap and score thresholds, whether boxes are given by their centres."""
    boxes, scores = node.shape(0), node.shape(1)
    if len(boxes) != 3 or len(scores) != 3 or boxes[::2] != (scores[0], 4):
        raise ShapeError(f"boxes {list(boxes)} and scores {list(scores)} do not fit")
    if boxes[1] != scores[2]:
        raise ShapeError(f"{boxes[1]} boxes have {scores[2]} scores")
    most, overlap, least = (node.scalar(i) for i in (2, 3, 4))
    form = node.int("center_point_box", 0)
    if form not in (0, 1):
        raise FileFormatError(f"center_point_box must be 0 or 1, got {form}")
    room = max(0, min(int(most or 0), boxes[1]))
    return room, float(overlap or 0), -np.inf if least is None else float(least), form == 1
