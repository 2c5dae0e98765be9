"""Sampling at computed places: where each value comes from and with what weight, element by element on the chip.

Places are computed in f32 and clipped to the axis before anything is picked by them. The values themselves are picked
by index, one per neighbour, as rows of channels or from the plane of each, where the target has such a command; else by
a product with a matrix of weights, which is 0 but for the neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from itertools import product
from math import prod

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.places.resample import GridSample
from bmcompiler.passes.support.decompositions.base import Draft, legalizes
from bmcompiler.passes.support.decompositions.reals import MOST_COUNTED, MOST_TABLE, Reals

Taps = list[tuple[Value, Value | None]]
"""(index inside the axis, weight) of each neighbour of all places along an axis, f32; no weight: 1."""
_CUBIC = -0.75
_WHY = "places have to be exact"


@legalizes(GridSample, bytes_do=False, weighed=True)
def neighbours_by_index(op: GridSample, draft: Draft) -> Value | None:
    """Each neighbour of a sampled place is a row of channels picked by a computed index, times its weight, added up."""
    if not _counted(op):
        return None
    (images, channels), sizes, real = op.input.shape[:2], op.input.shape[2:], Reals(draft, _WHY)
    table = real.permute(op.input, (0, *range(2, op.input.type.rank), 1))
    table = real.reshape(table, (images * prod(sizes), channels))
    found = real.reshape(_sum_of_neighbours(op, real, table, 0), (images, prod(op.type.shape[2:]), channels))
    return real.reshape(real.permute(found, (0, 2, 1)), op.type.shape)


@legalizes(GridSample, bytes_do=False, weighed=True)
def neighbours_in_planes(op: GridSample, draft: Draft) -> Value | None:
    """Each neighbour of a sampled place is picked from the plane of each channel, times its weight, added up."""
    if not _counted(op):
        return None
    (images, channels), sizes, real = op.input.shape[:2], op.input.shape[2:], Reals(draft, _WHY)
    axes = (1, 0, *range(2, op.input.type.rank)) if images > 1 else range(op.input.type.rank)
    table = real.reshape(real.permute(op.input, axes), (channels, images * prod(sizes)))
    found = real.reshape(_sum_of_neighbours(op, real, table, 1), [op.type.shape[axis] for axis in axes])
    return real.permute(found, axes)


def _counted(op: GridSample) -> bool:
    return _real(op) and op.input.shape[0] * prod(op.input.shape[2:]) < MOST_COUNTED


def _sum_of_neighbours(op: GridSample, real: Reals, table: Value, axis: int) -> Value:
    """What all places of all images take from a table, whose `axis` has the elements of all images."""
    images, sizes, count = op.input.shape[0], op.input.shape[2:], prod(op.type.shape[2:])
    shape = (images * count, 1) if axis == 0 else (1, images * count)
    axes = _taps_of_grid(op, real, shape)
    total: Value | None = None
    for taps in product(*axes):
        row = _first_rows(images, count, prod(sizes), real.draft, shape)
        for (index, _), step in zip(taps, _steps(sizes)):
            row = real("add", row, real("mul", index, float(step)) if step > 1 else index)
        whole = real.draft.emit("cast", [row], dtype="i32", truncate=True)
        factors = [weight for _, weight in taps if weight is not None]
        found = real("gather", table, real.draft.reshape(whole, (images * count,)), axis=axis)
        if factors:
            found = real("mul", found, reduce(partial(real, "mul"), factors))
        total = found if total is None else real("add", total, found)
    assert total is not None, "a place has neighbours"
    return total


@legalizes(GridSample, bytes_do=False)
def product_with_neighbours(op: GridSample, draft: Draft) -> Value | None:
    """All samples of an image as one product with the computed weights of its elements, of up to 2**24 in all."""
    sizes, (images, channels) = op.input.shape[2:], op.input.shape[:2]
    count = prod(op.type.shape[2:])
    if not _real(op) or draft.too_many(images * count * prod(sizes), MOST_TABLE, "weights"):
        return None
    real = Reals(draft, _WHY)
    weights: Value | None = None
    for size, taps in zip(sizes, _taps_of_grid(op, real, (images, count, 1))):
        along = weights_along(real, taps, size)
        if weights is not None:
            rows, columns = (*weights.shape, 1), (images, count, 1, size)
            pairs = real("mul", real.reshape(weights, rows), real.reshape(along, columns))
            along = real.reshape(pairs, (images, count, weights.shape[2] * size))
        weights = along
    assert weights is not None, "a grid has axes"
    flat = real.reshape(op.input, (images, channels, prod(sizes)))
    return real.reshape(real("matmul", flat, weights, transpose_right=True), op.type.shape)


def weights_along(real: Reals, taps: Taps, size: int) -> Value:
    """(..., size): the weight of each element of an axis for places (..., 1)."""
    total: Value | None = None
    for index, weight in taps:
        here = real("compare", index, real.counted(size), method="equal")
        part = times(real, real("cast", here, dtype="f32"), weight)
        total = part if total is None else real("add", total, part)
    assert total is not None, "a place has neighbours"
    return total


def times(real: Reals, x: Value, weight: Value | None) -> Value:
    """`x` times a weight."""
    return x if weight is None else real("mul", x, weight)


def _real(op: GridSample) -> bool:
    return op.input.dtype == op.grid.dtype == "f32"


def _steps(sizes: Sequence[int]) -> list[int]:
    """Rows from one index to the next, of each axis."""
    return [prod(sizes[i + 1 :]) for i in range(len(sizes))]


def _first_rows(images: int, count: int, size: int, draft: Draft, shape: tuple[int, ...]) -> Value:
    rows = np.repeat(np.arange(images, dtype=np.float32) * np.float32(size), count)
    return draft.weight(rows.reshape(shape), "images")


def _taps_of_grid(op: GridSample, real: Reals, shape: tuple[int, ...]) -> list[Taps]:
    """Neighbours along each axis of the input; the grid names the last axis first."""
    sizes, last = op.input.shape[2:], op.grid.type.rank - 1
    found = []
    for i, size in enumerate(sizes):
        given = real.span(op.grid, last, len(sizes) - 1 - i, len(sizes) - i)
        found.append(_taps(op, real, real.reshape(given, shape), size))
    return found


def _taps(op: GridSample, real: Reals, given: Value, size: int) -> Taps:
    """Neighbours of grid values along one axis, as `GridSample.axis_taps` has them."""
    last = size - 1.0
    place = real("add", given, 1.0)
    if op.align_corners:
        place, low, high = real("mul", real("mul", place, 0.5), last), 0.0, last
    else:
        place, low, high = real("mul", real("add", real("mul", place, float(size)), -1.0), 0.5), -0.5, size - 0.5
    if op.mode == "nearest":
        place = real("round", place)
    if op.padding != "zeros" and op.mode != "cubic":
        inner = real("clip", place, min=0.0, max=last) if op.padding == "border" else reflected(real, place, low, high)
        place = real("where", real.inside(place, low, high), place, inner)
    if op.mode == "nearest":
        taps: Taps = [(real("round", place), None)]
    else:
        taps = kernel(real, place, op.mode)
    if op.padding == "zeros":
        inside = [real("cast", real.inside(index, 0.0, last), dtype="f32") for index, _ in taps]
        taps = [(index, times(real, here, weight)) for here, (index, weight) in zip(inside, taps)]
    elif op.padding == "reflection":
        taps = [(reflected(real, index, low, high), weight) for index, weight in taps]
    return [(real("clip", index, min=0.0, max=last), weight) for index, weight in taps]


def kernel(real: Reals, place: Value, mode: str) -> Taps:
    """The 2 neighbours of linear, the 4 of cubic interpolation: indices, which may lie outside, and weights."""
    base = real("floor", place)
    after = real("sub", place, base)
    before = real("sub", 1.0, after)
    following = real("add", base, 1.0)
    if mode == "linear":
        return [(base, before), (following, after)]
    return [
        (real("add", base, -1.0), _far(real, real("add", after, 1.0))),
        (base, _near(real, after)),
        (following, _near(real, before)),
        (real("add", base, 2.0), _far(real, real("add", before, 1.0))),
    ]


def _near(real: Reals, x: Value) -> Value:
    """Keys' kernel for distances up to 1."""
    inner = real("mul", real("add", real("mul", x, _CUBIC + 2), -(_CUBIC + 3)), x)
    return real("add", real("mul", inner, x), 1.0)


def _far(real: Reals, x: Value) -> Value:
    """Keys' kernel for distances from 1 to 2."""
    inner = real("mul", real("add", real("mul", x, _CUBIC), -5 * _CUBIC), x)
    return real("add", real("mul", real("add", inner, 8 * _CUBIC), x), -4 * _CUBIC)


def reflected(real: Reals, place: Value, low: float, high: float) -> Value:
    """Places mirrored at `low` and `high` until they lie between them."""
    span = high - low
    if span <= 0:
        return real("clip", place, min=0.0, max=0.0)
    beyond = real("abs", real("add", place, -low))
    turns = real("floor", real("mul", beyond, 1 / (2 * span)))
    folded = real("sub", beyond, real("mul", turns, 2 * span))
    return real("add", real("min", folded, real("sub", 2 * span, folded)), low)
