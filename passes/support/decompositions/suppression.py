"""Suppression of boxes as the best boxes of each class, whose rows then follow each other without gaps."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.places.selection import NonMaxSuppression
from bmcompiler.passes.support.decompositions.base import Draft, legalizes
from bmcompiler.passes.support.decompositions.reals import MOST_COUNTED, Reals

_WHY = "numbers of boxes have to be exact"


@legalizes(NonMaxSuppression, integers=True, bytes_do=False)
def best_boxes_of_each_class(op: NonMaxSuppression, draft: Draft) -> Value | None:
    """The boxes that stay of each class; their rows move up over those of classes with fewer, by powers of two."""
    (images, classes, count), most = op.scores.shape, op.max_boxes
    if {value.dtype for value in op.operands} != {"f32"} or max(count, images * classes * most) >= MOST_COUNTED:
        return None
    real = Reals(draft, _WHY)
    best = real(
        "best_boxes",
        _corners(real, op),
        op.scores,
        max_boxes=most,
        iou_threshold=op.iou_threshold,
        score_threshold=op.score_threshold,
    )
    box = real.reshape(best, (images * classes, most))
    labels = np.indices((images, classes, most), dtype=np.float32)[:2].reshape(2, 1, images * classes * most)
    flat = real.reshape(box, (1, 1, images * classes * most))
    used = real("compare", flat, -0.5, method="greater")
    rows = [real("where", used, draft.weight(each[None], "labels"), -1.0) for each in labels]
    columns = real("concat", *rows, flat, axis=1)
    if images * classes > 1:
        columns = _moved_up(real, columns, _gaps(real, box, used))
    found = real.reshape(real.permute(columns, (0, 2, 1)), op.type.shape)
    return draft.emit("cast", [found], dtype="i32", truncate=True)


def _corners(real: Reals, op: NonMaxSuppression) -> Value:
    """(N, 4, P): lowest y, lowest x, highest y, highest x."""
    planes = real.permute(op.boxes, (0, 2, 1))
    first, second = real.span(planes, 1, 0, 2), real.span(planes, 1, 2, 4)
    if not op.centered:
        return real("concat", real("min", first, second), real("max", first, second), axis=1)
    half = real("mul", second, 0.5)
    low, high = real("sub", first, half), real("add", first, half)
    ends = [real.span(each, 1, i, i + 1) for each in (low, high) for i in (1, 0)]
    return real("concat", *ends, axis=1)


def _gaps(real: Reals, box: Value, used: Value) -> Value:
    """(1, 1, rows): by how much each row moves up: so many are unused of the classes before; 0 for unused ones."""
    empty = real("cast", real("compare", box, -0.5, method="less"), dtype="f32")
    gaps = real("reduce", empty, method="sum", axes=(1,), keepdims=True)
    before = real("cumulate", gaps, axis=0, method="sum", exclusive=True)
    spread = real("add", before, real("mul", empty, 0.0))
    return real("where", used, real.reshape(spread, (1, 1, prod(box.shape))), 0.0)


def _moved_up(real: Reals, columns: Value, gaps: Value) -> Value:
    """Columns of rows, by `gaps`: first those with an odd gap by one, then by two and so on.

    No row meets another: gaps never fall from one used row to the next, so that neither does what is left of them.
    """
    rows, step = columns.shape[-1], 1
    while step < rows:
        half = real("floor", real("mul", gaps, 0.5))
        moves = real("sub", gaps, real("add", half, half))
        comes = real("compare", _up(real, moves, step, 0.0), 0.5, method="greater")
        leaves = real("compare", moves, 0.5, method="greater")
        columns = real("where", comes, _up(real, columns, step, -1.0), real("where", leaves, -1.0, columns))
        gaps = real("where", comes, _up(real, half, step, 0.0), real("where", leaves, 0.0, half))
        step *= 2
    return columns


def _up(real: Reals, x: Value, step: int, end: float) -> Value:
    """Each column that of `step` places behind it, `end` behind the last."""
    return real("pad", real.span(x, 2, step, x.shape[2]), pads=(0, 0, 0, 0, 0, step), value=end)
