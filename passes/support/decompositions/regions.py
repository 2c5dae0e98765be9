"""Regions of interest and cropped images: interpolation along each axis is a product with weights of its elements."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.places.resample import RoiAlign
from bmcompiler.passes.support.decompositions.base import Draft, legalizes
from bmcompiler.passes.support.decompositions.reals import MOST_TABLE, Reals
from bmcompiler.passes.support.decompositions.sampling import kernel, weights_along


@legalizes(RoiAlign, bytes_do=False)
def rows_and_columns_weighed(op: RoiAlign, draft: Draft) -> Value | None:
    """Each region is a product of its rows' weights, the images and its columns' weights, computed from its corners.

    The largest weighted neighbour is picked among products that hold one neighbour each. How many samples there are
    may follow from the size of a region where that is constant.
    """
    images, channels, height, width = op.input.shape
    count, (rows, columns) = op.rois.shape[0], op.size
    most, known = op.method == "max", _known_weights(op, draft)
    if op.input.dtype != "f32" or op.rois.dtype != "f32" or op.images.dtype != "i32":
        return None
    if known is None and not op.samples:
        return None
    each = 2 * op.samples if most else 1
    largest = count * max(images * height * channels * columns * each, rows * columns * channels * each**2)
    if draft.too_many(largest, MOST_TABLE, "numbers at once"):
        return None
    real = Reals(draft, "places have to be exact")
    if known is not None:
        down, across = (draft.weight(array, "taps") for array in known)
    else:
        down, across = _weights(op, real, 1, rows, height), _weights(op, real, 0, columns, width)
        down = _of_images(op, real, down, images) if images > 1 else down
    table = real.reshape(real.permute(op.input, (0, 2, 1, 3)), (images * height * channels, width))
    flat = real.reshape(across, (count * columns * each, width))
    lines = real("matmul", table, flat, transpose_right=True)
    lines = real.permute(real.reshape(lines, (images * height, channels, count, columns * each)), (2, 0, 1, 3))
    lines = real.reshape(lines, (count, images * height, channels * columns * each))
    found = real("matmul", down, lines)
    if most:
        found = _largest(op, real, found, each)
    return real.permute(real.reshape(found, (count, rows, channels, columns)), (0, 2, 1, 3))


def _largest(op: RoiAlign, real: Reals, found: Value, each: int) -> Value:
    """The largest of each cell's neighbours, of (regions, rows, channels * columns)."""
    count, channels, (rows, columns) = op.rois.shape[0], op.input.shape[1], op.size
    over = real("reduce", real.reshape(found, (count * rows, each, channels * columns * each)), method="max", axes=(1,))
    cells = real.reshape(over, (count * rows * channels * columns, each))
    return real("reduce", cells, method="max", axes=(1,))


def _known_weights(op: RoiAlign, draft: Draft) -> tuple[Array, Array] | None:
    """(regions, cells, images * height) and (regions, cells, width) for the means of constant regions."""
    corners, numbers = draft.constant(op.rois), draft.constant(op.images)
    if op.method == "max" or corners is None or numbers is None:
        return None
    images, count = op.input.shape[0], len(corners)
    found = []
    for axis in (1, 0):
        cells, size = op.size[1 - axis], op.input.shape[3 - axis]
        weights = np.zeros((count, cells, size))
        for region, corner in zip(weights, corners.astype(np.float64)):
            index, weight = op.samples_along(*op.span(corner, axis), cells, size)
            np.add.at(region, (np.arange(cells)[:, None, None], index), weight / index.shape[1])
        found.append(weights.astype(np.float32))
    down = np.zeros((count, found[0].shape[1], images, found[0].shape[2]), np.float32)
    down[np.arange(count), :, numbers % images] = found[0]
    return down.reshape(count, found[0].shape[1], -1), found[1]


def _weights(op: RoiAlign, real: Reals, axis: int, cells: int, size: int) -> Value:
    """(regions, cells, size): weights of an axis's elements (0: x, 1: y); for the maximum of one neighbour each."""
    count, samples, scale = op.rois.shape[0], op.samples, op.spatial_scale
    first, last = (real("mul", real.span(op.rois, 1, i, i + 1), scale) for i in (axis, axis + 2))
    if op.half_pixel:
        first, last = real("add", first, -0.5), real("add", last, -0.5)
    extent = real("sub", last, first)
    if not op.half_pixel:
        extent = real("max", extent, 1.0)
    steps = (np.arange(cells)[:, None] + (np.arange(samples) + 0.5) / samples).astype(np.float32).reshape(1, -1)
    along = real("mul", real("mul", extent, 1 / cells), real.draft.weight(steps, "steps"))
    place = real("add", first, along)
    inside = real.reshape(real("cast", real.inside(place, -1.0, float(size)), dtype="f32"), (count, cells * samples, 1))
    place = real.reshape(real("clip", place, min=0.0, max=size - 1.0), (count, cells * samples, 1))
    taps = [(real("clip", index, min=0.0, max=size - 1.0), weight) for index, weight in kernel(real, place, "linear")]
    if op.method == "max":
        parts = [real("mul", weights_along(real, [tap], size), inside) for tap in taps]
        parts = [real.reshape(part, (count, cells * samples, 1, size)) for part in parts]
        return real.reshape(real("concat", *parts, axis=2), (count, cells * samples * 2, size))
    full = real("mul", weights_along(real, taps, size), inside)
    if samples == 1:
        return full
    means = real("reduce", real.reshape(full, (count * cells, samples, size)), method="mean", axes=(1,))
    return real.reshape(means, (count, cells, size))


def _of_images(op: RoiAlign, real: Reals, rows: Value, images: int) -> Value:
    """Weights of the rows of all images: 0 but in the image of a region, which may count from the last one."""
    count, height = op.rois.shape[0], op.input.shape[2]
    kept = prod(rows.shape) // (count * height)
    number = real.reshape(real("cast", op.images, dtype="f32"), (count, 1))
    numbers = np.repeat(np.arange(images, dtype=np.float32), height)[None]
    chosen = [
        real("cast", real("compare", number, real.draft.weight(places, "images"), method="equal"), dtype="f32")
        for places in (numbers, numbers - images)
    ]
    here = real.reshape(real("add", *chosen), (count, 1, images * height))
    return real("mul", real("tile", real.reshape(rows, (count, kept, height)), reps=(1, 1, images)), here)
