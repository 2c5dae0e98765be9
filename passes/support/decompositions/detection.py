"""Detections of single-shot nets as candidates, suppression class by class, and the best rows of each image."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.vision.detection import DetectionOutput
from bmcompiler.passes.support.decompositions.base import Draft, legalizes
from bmcompiler.passes.support.decompositions.reals import MOST_COUNTED, Reals

_WHY = "boxes that overlap are told apart by their last digits"
_ROW = 7
_AT_ONCE = 10_000
"""Boxes among which the best are found at once; of more, among those of parts first."""
_LOWEST = float(np.finfo(np.float32).min)


class _Sizes(NamedTuple):
    """candidates, kept: boxes of each class before and after suppression; rows: of an image at most."""

    images: int
    classes: int
    priors: int
    candidates: int
    kept: int
    rows: int


@legalizes(DetectionOutput, bytes_do=False)
def suppressed_class_by_class(op: DetectionOutput, draft: Draft) -> Value | None:
    """Of each class the `top_k` best boxes are suppressed among themselves, then the best rows of all classes stay."""
    priors = draft.constant(op.priors)
    if {value.dtype for value in op.operands} != {"f32"} or priors is None or not op.type.size:
        return None
    if op.eta < 1:
        draft.beyond = f"thresholds that fall from box to box, as with eta = {op.eta:g}, are the host's"
        return None
    real, sizes = Reals(draft, _WHY), _sizes_of(op)
    if sizes.images * max(sizes.priors, sizes.classes * sizes.kept) >= MOST_COUNTED:
        return None
    corners = _decoded(real, op, priors.reshape(priors.shape[1], -1, 4))
    best = _best_boxes(real, op, corners, _scores(real, op), sizes)
    return _rows(real, op, best, sizes)


def _sizes_of(op: DetectionOutput) -> _Sizes:
    images, priors, classes = op.offsets.shape[0], op.priors.shape[2] // 4, len(op.foreground())
    rows = op.type.shape[2] // images
    candidates = priors if op.top_k < 0 else min(op.top_k, priors)
    return _Sizes(images, classes, priors, candidates, min(candidates, rows), rows)


def _decoded(real: Reals, op: DetectionOutput, priors: Array) -> Value:
    """Corners x0, y0, x1, y1 of all boxes: (N, 4, P), or (N * classes, 4, P) of those that are each class's own."""
    planes = priors.astype(np.float32).transpose(0, 2, 1)[:, None]
    anchors = planes[0]
    images, count = op.offsets.shape[0], anchors.shape[-1]
    sets = op.offsets.shape[1] // (4 * count)
    apart = real.permute(real.reshape(op.offsets, (images, count, sets, 4)), (0, 2, 3, 1))
    if sets > 1:
        apart = _picked(real, apart, 1, op.foreground())
    shift = real.reshape(apart, (images * apart.shape[1], 4, count))
    if not op.variance_encoded_in_target:
        shift = real("mul", shift, _weight(real, planes[1], "variances"))
    low, high = anchors[:, :2], anchors[:, 2:]
    if op.code_type == "corner":
        return real("add", shift, _weight(real, anchors, "priors"))
    if op.code_type == "corner_size":
        moved = real("mul", shift, _weight(real, np.tile(high - low, (1, 2, 1)), "sizes"))
        return real("add", moved, _weight(real, anchors, "priors"))
    moved = real("mul", real.span(shift, 1, 0, 2), _weight(real, high - low, "sizes"))
    middle = real("add", moved, _weight(real, (low + high) * np.float32(0.5), "centres"))
    factor = real("exp", real.span(shift, 1, 2, 4))
    half = real("mul", factor, _weight(real, (high - low) * np.float32(0.5), "halves"))
    return real("concat", real("sub", middle, half), real("add", middle, half), axis=1)


def _scores(real: Reals, op: DetectionOutput) -> Value:
    """(N, classes, P), of those that are not the background."""
    images, count = op.offsets.shape[0], op.priors.shape[2] // 4
    by_class = real.permute(real.reshape(op.scores, (images, count, op.num_classes)), (0, 2, 1))
    return _picked(real, by_class, 1, op.foreground())


def _best_boxes(real: Reals, op: DetectionOutput, corners: Value, scores: Value, sizes: _Sizes) -> Value:
    """(5, N, classes, kept): scores and corners of what stays of each class, in order; the lowest score behind it."""
    rows = sizes.images * sizes.classes
    if sizes.candidates < sizes.priors:
        parts = _parts(sizes.priors, sizes.candidates)
        if parts > 1:
            scores, corners = _of_parts(real, corners, scores, sizes, parts)
        scores = real.reshape(scores, (rows, scores.shape[2]))
        scores, corners = _chosen(real, corners, scores, sizes.candidates)
    elif not op.share_location:
        scores = real.reshape(scores, (rows, 1, sizes.priors))
    best = real(
        "best_box_rows",
        corners,
        scores,
        max_boxes=sizes.kept,
        iou_threshold=op.nms_threshold,
        score_threshold=op.confidence_threshold,
    )
    return real.reshape(real.permute(best, (1, 0, 2, 3)), (5, sizes.images, sizes.classes, sizes.kept))


def _of_parts(real: Reals, corners: Value, scores: Value, sizes: _Sizes, parts: int) -> tuple[Value, Value]:
    """The candidates of parts of the priors: scores (N, classes, boxes), corners (N * classes, 4, boxes)."""
    images, classes, count, most = sizes.images, sizes.classes, sizes.priors // parts, sizes.candidates
    own = corners.shape[0] != images
    order = (0, 1, 2, 3) if own else (0, 2, 1, 3)
    each = real.permute(real.reshape(scores, (images, classes, parts, count)), order)
    boxes = real.permute(real.reshape(corners, (corners.shape[0], 4, parts, count)), (0, 2, 1, 3))
    boxes = real.reshape(boxes, (corners.shape[0] * parts, 4, count))
    scores, corners = _chosen(real, boxes, real.reshape(each, (images * classes * parts, count)), most)
    split = (images, classes, parts) if own else (images, parts, classes)
    scores = real.permute(real.reshape(scores, (*split, most)), order)
    corners = real.permute(real.reshape(corners, (*split, 4, most)), (0, 1, 3, 2, 4) if own else (0, 2, 3, 1, 4))
    shape = (images * classes, 4, parts * most)
    return real.reshape(scores, (images, classes, parts * most)), real.reshape(corners, shape)


def _chosen(real: Reals, corners: Value, scores: Value, most: int) -> tuple[Value, Value]:
    """Scores (B, 1, most) and corners (B, 4, most) of the best boxes by scores (B, P), in their order."""
    chosen = real("leading", scores, k=most)
    each = real.reshape(scores, (scores.shape[0], 1, scores.shape[1]))
    return real("packed", each, chosen, size=most), real("packed", corners, chosen, size=most)


def _rows(real: Reals, op: DetectionOutput, best: Value, sizes: _Sizes) -> Value:
    """Rows image, class, score, corners of the best boxes of each image, without gaps."""
    images, columns = sizes.images, sizes.classes * sizes.kept
    shape = (images, sizes.classes, sizes.kept)
    image = np.broadcast_to(np.arange(1, images + 1)[:, None, None], shape)
    label = np.broadcast_to(np.array(op.foreground())[None, :, None], shape)
    numbers, labels = (_weight(real, each.reshape(images, 1, columns), "labels") for each in (image, label))
    boxes = real.permute(real.reshape(best, (5, images, columns)), (1, 0, 2))
    used = real("compare", real.span(boxes, 1, 0, 1), _LOWEST, method="greater")
    table = real("concat", real("where", used, numbers, 0.0), labels, boxes, axis=1)
    parts = _parts(sizes.classes, 0, sizes.kept)
    if parts > 1:
        apart = real.permute(real.reshape(table, (images, _ROW, parts, columns // parts)), (0, 2, 1, 3))
        apart = real.reshape(apart, (images * parts, _ROW, columns // parts))
        table = _joined(real, _best(real, apart, sizes.rows), parts)
    table = _best(real, table, sizes.rows)
    if images > 1:
        table = _best(real, _joined(real, table, images), images * sizes.rows)
    counted = real("sub", table, _weight(real, np.eye(1, _ROW).reshape(1, _ROW, 1), "first"))
    return real.reshape(real.permute(counted, (0, 2, 1)), op.type.shape)


def _best(real: Reals, table: Value, rows: int) -> Value:
    """Up to so many columns of the best scores of each table (B, 7, columns), in order; then zeros, as unused ones."""
    tables, _, columns = table.shape
    used = real.reshape(real("compare", real.span(table, 1, 0, 1), 0.5, method="greater"), (tables, columns))
    marks = real("cast", used, dtype="f32")
    if rows < columns:
        scores = real.reshape(real.span(table, 1, 2, 3), (tables, columns))
        marks = real("mul", marks, real("leading", real("where", used, scores, _LOWEST), k=rows))
    return real("packed", table, marks, size=min(rows, columns))


def _joined(real: Reals, tables: Value, parts: int) -> Value:
    """So many tables that follow each other as one."""
    many, rows, columns = tables.shape
    apart = real.permute(real.reshape(tables, (many // parts, parts, rows, columns)), (0, 2, 1, 3))
    return real.reshape(apart, (many // parts, rows, parts * columns))


def _picked(real: Reals, x: Value, axis: int, wanted: list[int]) -> Value:
    """All of an axis, or without one."""
    size = x.shape[axis]
    gap = next((i for i in range(size) if i not in wanted), size)
    parts = [(first, end) for first, end in ((0, gap), (gap + 1, size)) if first < end]
    if parts == [(0, size)]:
        return x
    found = [real.span(x, axis, *part) for part in parts]
    return found[0] if len(found) == 1 else real("concat", *found, axis=axis)


def _parts(number: int, least: int, size: int = 1) -> int:
    """In how many equal parts so many of a size are looked at, so that these are no more than `_AT_ONCE`; 1 = whole.

    least: how many each part has to have.
    """
    divisors = (n for n in range(1, number + 1) if number % n == 0 and number // n >= least)
    return next((n for n in divisors if number * size <= n * _AT_ONCE), 1)


def _weight(real: Reals, array: Array, what: str) -> Value:
    return real.draft.weight(np.ascontiguousarray(array, np.float32), what)
