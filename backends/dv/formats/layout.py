"""WHC8 feature maps in memory (dv.md 2): groups of up to 8 channels; in a group columns, then rows, then channels."""

from __future__ import annotations

import numpy as np

from bmcompiler.numeric.arrays import Array

GROUP = 8


def from_whc8(flat: Array, w: int, h: int, c: int) -> Array:
    """The [w][h][c] array of the w*h*c elements of a map; a copy."""
    out = np.empty((w, h, c), flat.dtype)
    whole = c // GROUP * GROUP
    cut = w * h * whole
    groups = flat[:cut].reshape(-1, w, h, GROUP)
    out[..., :whole].reshape(w, h, -1, GROUP)[...] = groups.transpose(1, 2, 0, 3)
    out[..., whole:] = flat[cut : w * h * c].reshape(w, h, c - whole)
    return out


def into_whc8(array: Array, flat: Array) -> None:
    """Write a [w][h][c] array to the w*h*c elements of a map in memory."""
    w, h, c = array.shape
    whole = c // GROUP * GROUP
    cut = w * h * whole
    groups = array[..., :whole].reshape(w, h, -1, GROUP).transpose(2, 0, 1, 3)
    flat[:cut].reshape(-1, w, h, GROUP)[...] = groups
    flat[cut : w * h * c].reshape(w, h, c - whole)[...] = array[..., whole:]


def nchw_to_whc8(array: Array) -> Array:
    """The flat maps [n][elements] of an [n][c][h][w] array; samples follow each other without padding."""
    n, c, h, w = array.shape
    flat = np.empty((n, c * h * w), array.dtype)
    for sample, target in zip(array, flat):
        into_whc8(sample.transpose(2, 1, 0), target)
    return flat


def whc8_to_nchw(flat: Array, c: int, h: int, w: int) -> Array:
    """The [n][c][h][w] array of n maps that follow each other."""
    maps = flat.reshape(-1, c * h * w)
    return np.stack([np.ascontiguousarray(from_whc8(one, w, h, c).transpose(2, 1, 0)) for one in maps])
