"""Selections whose length depends on values: the result has room for the longest one, and -1 where it is shorter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from bmcompiler.ir import TensorType, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import FLOAT, TensorOp, attr, operand, tensorop
from bmcompiler.ops.elements.integer import Cast


class Padded(TensorOp):
    """Base of ops with one result of integers whose unused positions, at the end of one axis, hold -1."""

    padded_axis: ClassVar[int]

    def trimmed(self, result: np.ndarray) -> np.ndarray:
        """The used part of a result: what the op would return if shapes could depend on values."""
        used = (np.moveaxis(result, self.padded_axis, 0) >= 0).all(axis=1)
        return result.compress(used, axis=self.padded_axis)


def padded_op(value: Value) -> Padded | None:
    """The op whose padding a value holds: the one that makes it, or its elements in another type; None without any."""
    op = value.op
    while isinstance(op, Cast):
        op = op.operands[0].op
    return op if isinstance(op, Padded) else None


@tensorop("non_max_suppression")
class NonMaxSuppression(Padded):
    """Which boxes stay when those that overlap a better one of their class go, as ONNX defines it.

    boxes (N, P, 4): two opposite corners y, x, y, x in any order, or with `centered` centre x, y, width, height.
    scores (N, C, P). Per image and class the boxes with scores above score_threshold come in descending order (of equal
    scores the first box first); each stays whose intersection over union with every one that stays is at most
    iou_threshold, up to max_boxes of them (at most P). Areas and quotients are rounded to fp32 as by ONNX Runtime.

    The result (R, 3) has rows image, class, box by image, class, falling score. R is constant, N * C * max_boxes, the
    most there can be; ONNX makes as many rows as boxes stay. Unused rows at the end are -1, -1, -1.

    %y = "tensorop.non_max_suppression"(%b, %s) {iou_threshold = 0.5, max_boxes = 3} :
         (tensor<1x6x4xf32>, tensor<1x2x6xf32>) -> tensor<6x3xi32>
    """

    picks = True
    boxes = operand(3, FLOAT)
    scores = operand(3)
    max_boxes = attr(int)
    iou_threshold = attr(float, 0.0)
    score_threshold = attr(float, -np.inf)
    centered = attr(bool, False)
    one_type = True
    padded_axis = 0

    def infer(self) -> TensorType:
        (images, count, four), (batch, classes, scored) = self.boxes.shape, self.scores.shape
        if four != 4 or images != batch or count != scored:
            raise self.shape_error(f"boxes {list(self.boxes.shape)} and scores {list(self.scores.shape)} do not fit")
        if not 0 < self.max_boxes <= count:
            raise self.shape_error(f"max_boxes must be 1 to {count}, got {self.max_boxes}")
        return TensorType((images * classes * self.max_boxes, 3), "i32")

    def evaluate(self, boxes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        found = selected_boxes(
            boxes, scores, self.max_boxes, self.iou_threshold, self.score_threshold, centered=self.centered
        )
        rows = np.full(self.type.shape, -1, np.int32)
        rows[: len(found)] = found
        return rows


class Best(TensorOp):
    """Base of what finds the boxes that `non_max_suppression` lets stay, class by class, in order.

    corners (N, 4, P): of each box its lowest y, lowest x, highest y, highest x. scores (N, C, P).
    """

    picks = True
    corners = operand(3, FLOAT)
    scores = operand(3)
    max_boxes = attr(int)
    iou_threshold = attr(float, 0.0)
    score_threshold = attr(float, -np.inf)
    one_type = True

    def sizes(self) -> tuple[int, int]:
        """(images, classes). Raises ShapeError where operands do not fit."""
        (images, four, count), (batch, classes, scored) = self.corners.shape, self.scores.shape
        if four != 4 or images != batch or count != scored:
            raise self.shape_error(
                f"corners {list(self.corners.shape)} and scores {list(self.scores.shape)} do not fit"
            )
        if not 0 < self.max_boxes <= count:
            raise self.shape_error(f"max_boxes must be 1 to {count}, got {self.max_boxes}")
        return images, classes

    def kept(self, corners: Array, scores: Array) -> Iterator[tuple[int, int, list[int]]]:
        """By image and class the boxes that stay."""
        for image, label in np.ndindex(*scores.shape[:2]):
            boxes = np.ascontiguousarray(corners[image].T)
            limits = self.max_boxes, self.iou_threshold, self.score_threshold
            yield image, label, _kept(boxes, scores[image, label], *limits)


@tensorop("best_boxes")
class BestBoxes(Best):
    """Numbers of the boxes that `non_max_suppression` lets stay, class by class, in order; behind the last one -1.

    corners (N, 4, P): of each box its lowest y, lowest x, highest y, highest x. scores (N, C, P). The result
    (N, C, max_boxes) holds numbers of boxes as floats.

    %y = "tensorop.best_boxes"(%b, %s) {iou_threshold = 0.5, max_boxes = 3} :
         (tensor<1x4x6xf32>, tensor<1x2x6xf32>) -> tensor<1x2x3xf32>
    """

    def infer(self) -> TensorType:
        return TensorType((*self.sizes(), self.max_boxes), self.corners.dtype)

    def evaluate(self, corners: np.ndarray, scores: np.ndarray) -> np.ndarray:
        out = np.full(self.type.shape, -1, self.type.numpy)
        for image, label, kept in self.kept(corners, scores):
            out[image, label, : len(kept)] = kept
        return out


@tensorop("best_box_rows")
class BestBoxRows(Best):
    """Scores and corners of the boxes that `non_max_suppression` lets stay, class by class, in order.

    Operands as those of `best_boxes`. The result (N, 5, C, max_boxes) has planes of scores and of each corner. Behind
    the last box of a class are the lowest float and the corners of box 0.

    %y = "tensorop.best_box_rows"(%b, %s) {iou_threshold = 0.5, max_boxes = 3} :
         (tensor<1x4x6xf32>, tensor<1x2x6xf32>) -> tensor<1x5x2x3xf32>
    """

    def infer(self) -> TensorType:
        images, classes = self.sizes()
        return TensorType((images, 5, classes, self.max_boxes), self.corners.dtype)

    def evaluate(self, corners: np.ndarray, scores: np.ndarray) -> np.ndarray:
        out = np.empty(self.type.shape, self.type.numpy)
        out[:, 0], out[:, 1:] = np.finfo(np.float32).min, corners[:, :, None, :1]
        for image, label, kept in self.kept(corners, scores):
            out[image, 0, label, : len(kept)] = scores[image, label, kept]
            out[image, 1:, label, : len(kept)] = corners[image][:, kept]
        return out


@tensorop("packed")
class Packed(TensorOp):
    """The elements of rows that are chosen, moved up to each other: the first `size`; behind the last one `value`.

    chosen (B, P) is 1 where elements stay, for all D rows of x (A, D, P), of which B / A follow each other in turn
    that are chosen from the same rows. The result is (B, D, size).

    %y = "tensorop.packed"(%x, %c) {size = 3} : (tensor<1x4x8xf32>, tensor<2x8xf32>) -> tensor<2x4x3xf32>
    """

    picks = True
    x = operand(3, FLOAT)
    chosen = operand(2)
    size = attr(int)
    value = attr(float, 0.0)
    one_type = True

    def infer(self) -> TensorType:
        (groups, rows, count), (many, marked) = self.x.shape, self.chosen.shape
        if not groups or many % groups or count != marked:
            raise self.shape_error(f"rows {list(self.x.shape)} and marks {list(self.chosen.shape)} do not fit")
        if not 0 < self.size <= count:
            raise self.shape_error(f"size must be 1 to {count}, got {self.size}")
        return TensorType((many, rows, self.size), self.x.dtype)

    def evaluate(self, x: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        out = np.full(self.type.shape, self.value, self.type.numpy)
        for i, marks in enumerate(chosen):
            kept = np.flatnonzero(marks == 1)[: self.size]
            out[i, :, : len(kept)] = x[i * len(x) // len(chosen)][:, kept]
        return out


@tensorop("nonzero")
class Nonzero(Padded):
    """Where a tensor is not 0, as ONNX NonZero: column by column the indices of the elements, in row-major order.

    The result (rank, R) has one row per axis. R is constant, the number of elements; ONNX makes as many columns as
    elements are not 0. Unused columns at the end are -1.

    %y = "tensorop.nonzero"(%x) : (tensor<2x3xf32>) -> tensor<2x6xi64>
    """

    picks = True
    input = operand()
    padded_axis = 1

    def infer(self) -> TensorType:
        if not self.input.type.rank:
            raise self.shape_error("the operand needs 1 axis or more")
        return TensorType((self.input.type.rank, self.input.type.size), "i64")

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        found = np.stack(np.nonzero(x))
        columns = np.full(self.type.shape, -1, np.int64)
        columns[:, : found.shape[1]] = found
        return columns


def selected_boxes(
    boxes: np.ndarray, scores: np.ndarray, most: int, overlap: float, least: float = -np.inf, *, centered: bool = False
) -> np.ndarray:
    """Rows (image, class, box), i64 (K, 3), of the boxes that stay; arguments as in `NonMaxSuppression`."""
    corners = _corners(boxes, centered)
    rows = [
        (image, label, box)
        for image, ratings in enumerate(scores)
        for label, values in enumerate(ratings)
        for box in _kept(corners[image], values, most, overlap, least)
    ]
    return np.asarray(rows, np.int64).reshape(-1, 3)


def _corners(boxes: np.ndarray, centered: bool) -> np.ndarray:
    """(top, left, bottom, right) of each box."""
    if centered:
        x, y, width, height = np.moveaxis(boxes, -1, 0)
        return np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], axis=-1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def _kept(boxes: np.ndarray, scores: np.ndarray, most: int, overlap: float, least: float) -> list[int]:
    """Indices of at most `most` boxes by falling score, each overlapping those before by at most `overlap`."""
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > least]
    limit = np.float32(overlap)
    high, wide = (boxes[:, 2:] - boxes[:, :2]).T
    areas = high * wide
    kept: list[int] = []
    while order.size and len(kept) < most:
        best, order = int(order[0]), order[1:]
        kept.append(best)
        first, last = np.maximum(boxes[order, :2], boxes[best, :2]), np.minimum(boxes[order, 2:], boxes[best, 2:])
        high, wide = np.maximum(last - first, 0).T
        common = high * wide
        union = areas[order] + areas[best] - common
        with np.errstate(all="ignore"):  # boxes without area
            order = order[~((common > 0) & (union > 0) & (common / union > limit))]
    return kept
