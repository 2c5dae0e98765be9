"""What outputs say about text: its characters, and where its lines are. Counts are as in `detections`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx

from tasks.detections import Box, Counts
from tasks.material import Array

INK, LEAST_WIDTH, LEAST_BLOB = 0.3, 0.6, 30
"""Of a map of text: what counts as text; the share of a line that is to be found; pixels of a blob that counts."""


@cache
def alphabet(path: Path) -> tuple[str, ...]:
    """Characters by class number as the file says in its metadata; class 0 is the blank, the last one the space."""
    (text,) = (entry.value for entry in onnx.load(path).metadata_props if entry.key == "character")
    return ("", *text.split("\n"), "")


def characters(scores: Array, letters: tuple[str, ...]) -> list[str]:
    """The best class at each step of [steps, classes], repeats and blanks left out."""
    classes = scores.argmax(1)
    kept = classes[np.flatnonzero(np.diff(classes, prepend=0))]
    return [letters[k] for k in kept if letters[k].strip()]


def unchanged(read: list[str], text: str) -> Counts:
    """Characters of the text less those to insert, remove or replace in what was read."""
    row = np.arange(len(text) + 1)
    for character in read:
        other = np.minimum(row[:-1] + [character != wanted for wanted in text], row[1:] + 1)
        row = np.concatenate([[row[0] + 1], other])
        row = np.minimum.accumulate(row - np.arange(len(row))) + np.arange(len(row))
    return len(text) - int(row[-1]), len(text)


def _runs(row: Array) -> list[tuple[int, int]]:
    """Where a row of truth values is true: starts and ends."""
    edges = np.flatnonzero(np.diff(row.astype(np.int8), prepend=0, append=0))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def blobs(mask: Array) -> list[Array]:
    """Connected pixels (also by corners) of [height, width] truth values: rows y, x0, x1 of their runs."""
    done: list[list[tuple[int, int, int]]] = []
    growing: list[list[tuple[int, int, int]]] = []
    for y, row in enumerate(mask):
        now: list[list[tuple[int, int, int]]] = []
        for x0, x1 in _runs(row):
            joined = [(y, x0, x1)]
            for group in (now, growing):
                for blob in [b for b in group if any(v == y - 1 and a <= x1 and x0 <= end for v, a, end in b)]:
                    group.remove(blob)
                    joined += blob
            now.append(joined)
        done += growing
        growing = now
    return [np.array(blob) for blob in done + growing]


def lines(heat: Array, truth: list[Box]) -> Counts:
    """2 * lines that are found, of lines and of what is found.

    A blob belongs to the line that its middle is in, unless it is higher. A line is found if its blobs are as wide
    as most of it; a blob of no line is a false one.
    """
    widths, false = [0] * len(truth), 0
    for blob in blobs(heat > INK):
        y, x0, x1 = blob.T
        area = int((x1 - x0).sum())
        middle_x, middle_y = ((x0 + x1 - 1) / 2 * (x1 - x0)).sum() / area, (y * (x1 - x0)).sum() / area
        width, height = int(x1.max() - x0.min()), int(y.max() - y.min() + 1)
        for k, (left, top, right, bottom) in enumerate(truth):
            if left <= middle_x <= right and top <= middle_y <= bottom and height <= bottom - top:
                widths[k] += width
                break
        else:
            false += area > LEAST_BLOB
    found = sum(width > LEAST_WIDTH * (box[2] - box[0]) for width, box in zip(widths, truth))
    return 2 * found, found + false + len(truth)
