"""Boxes in the outputs of detectors, and how many of them are right.

Box: left, top, right, bottom in pixels of the input. Counts: (right, of), which add up over samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasks.material import Array

Box = tuple[float, float, float, float]
Counts = tuple[int, int]
SAME = 0.4
"""Boxes that overlap by this share of their union are of one object."""


def overlap(a: Box, b: Box) -> float:
    """Intersection over union."""
    width, height = (min(a[k + 2], b[k + 2]) - max(a[k], b[k]) for k in (0, 1))
    if width <= 0 or height <= 0:
        return 0.0
    areas = sum((c[2] - c[0]) * (c[3] - c[1]) for c in (a, b))
    return width * height / (areas - width * height)


def best(middles: Array, sizes: Array, scores: Array, least: float) -> list[Box]:
    """Boxes with at least this score, the best first, none of an object that has one; arrays are of one row each."""
    found: list[Box] = []
    for k in np.argsort(-scores, kind="stable")[: np.count_nonzero(scores >= least)]:
        (x, y), (w, h) = middles[k], sizes[k]
        box = (float(x - w / 2), float(y - h / 2), float(x + w / 2), float(y + h / 2))
        if all(overlap(box, other) < SAME for other in found):
            found.append(box)
    return found


def _cells(side: int) -> Array:
    """x, y of the cells of a map, row by row, [side * side, 2]."""
    y, x = np.divmod(np.arange(side * side), side)
    return np.stack([x, y], 1)


def blazeface(outputs: Sequence[Array]) -> list[Box]:
    """Two maps, 16x16 with two anchors per cell and 8x8 with six: scores, then rows that begin with x, y, w, h.

    The middle is relative to that of the cell; everything is in pixels of 128.
    """
    anchors = [(_cells(side).repeat(each, 0) + 0.5) * (128 // side) for side, each in ((16, 2), (8, 6))]
    scores = np.concatenate([outputs[k].ravel() for k in (0, 1)])
    rows = np.concatenate([outputs[k].reshape(-1, 16) for k in (2, 3)])
    return best(np.concatenate(anchors) + rows[:, :2], rows[:, 2:4], scores, 0.5)


def centerface(outputs: Sequence[Array]) -> list[Box]:
    """Maps of every fourth pixel: scores, logarithms of height and width in cells, offsets y and x of the middle."""
    scores, sizes, offsets = (outputs[k][0].reshape(outputs[k].shape[1], -1).T for k in range(3))
    middles = (_cells(outputs[0].shape[-1]) + offsets[:, ::-1] + 0.5) * 4
    return best(middles, np.exp(np.minimum(sizes, 6))[:, ::-1] * 4, scores[:, 0], 0.35)


def ssd(outputs: Sequence[Array]) -> list[Box]:
    """Rows image, class, score, corners as shares of 300 pixels; unused ones have image -1."""
    rows = outputs[0].reshape(-1, 7)
    corners = rows[(rows[:, 0] >= 0) & (rows[:, 2] >= 0.5), 3:] * 300
    return [(float(a), float(b), float(c), float(d)) for a, b, c, d in corners]


def yolox(outputs: Sequence[Array]) -> list[Box]:
    """Rows x, y, log w, log h, object, class in cells of 8, 16 and 32 pixels of 416."""
    rows, sides = outputs[0].reshape(-1, 6), (52, 26, 13)
    cells = np.concatenate([_cells(side) for side in sides])
    stride = np.concatenate([np.full((side * side, 1), 416 // side) for side in sides])
    sizes = np.exp(np.clip(rows[:, 2:4], -10, 6)) * stride
    return best((rows[:, :2] + cells) * stride, sizes, rows[:, 4] * rows[:, 5], 0.3)


def f1(found: Sequence[Box], truth: Sequence[Box]) -> Counts:
    """2 * right boxes, of found and true ones; a true box is found once."""
    left = list(truth)
    for box in found:
        near = max(left, key=lambda true: overlap(box, true), default=None)
        if near is not None and overlap(box, near) >= SAME:
            left.remove(near)
    return 2 * (len(truth) - len(left)), len(found) + len(truth)
