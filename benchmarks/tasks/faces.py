"""Samples with faces: one patch, and patches on grey."""

from __future__ import annotations

import numpy as np

from tasks.detections import Box
from tasks.material import Array, between, draws, patch


def one(name: str, split: str, index: int, size: int) -> tuple[Array, int]:
    """A patch, and whether it is a face: every other one is."""
    return patch(draws(name, split, index), split, bool(index % 2), size), index % 2


def several(
    name: str, split: str, index: int, size: int, cells: int, sides: tuple[int, int]
) -> tuple[Array, list[Box]]:
    """A patch in each of cells x cells on grey, about half of them faces, and the boxes of the faces.

    sides: least and most pixels of a patch.
    """
    r = draws(name, split, index)
    image = np.full((size, size, 3), between(r, 90, 170), np.uint8)
    cell, boxes, faces = size // cells, [], (cells * cells + index % 2) // 2
    for k, place in enumerate(r.permutation(cells * cells)):
        side = between(r, *sides)
        y, x = (int(n) * cell + between(r, 1, cell - side - 1) for n in divmod(int(place), cells))
        image[y : y + side, x : x + side] = patch(r, split, k < faces, side)
        if k < faces:
            boxes.append((x, y, x + side, y + side))
    return image, boxes
