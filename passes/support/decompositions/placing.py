"""Elements picked, replaced and reduced at computed indices: which update meets which element, as a table."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.elements.integer import Lut
from bmcompiler.ops.layers.unpool import MaxPoolMask, MaxUnpool
from bmcompiler.ops.places.index import Gather, GatherElements, ScatterElements, ScatterNd
from bmcompiler.passes.support.decompositions.base import Draft, legalizes
from bmcompiler.passes.support.decompositions.reals import MOST_COUNTED, Reals

_MOST = 1 << 22
"""Pairs of an update and an element that are looked at: 16 MB."""
_MOST_PICKED = 1 << 18
"""The same of rows that are picked, as of a vocabulary: beyond, the host is as quick and the commands are many."""
_MOST_TAPS = 64
_INDICES = ("i32", "i64")
_LARGEST = float(np.finfo(np.float32).max)
_NEUTRAL = {"none": -_LARGEST, "add": 0.0, "mul": 1.0, "max": -_LARGEST, "min": _LARGEST}
_REDUCES = {"none": "max", "add": "sum", "mul": "prod", "max": "max", "min": "min"}
_WHY = "indices have to be exact"


class _Updates(NamedTuple):
    """`chosen` (outer, updates, rows, 1): which row each is for; `values` (outer, updates, 1, width)."""

    chosen: Value
    values: Value


@legalizes(Lut, integers=True)
def elements_of_a_table(op: Lut, draft: Draft) -> Value:
    """A table that is computed, or of wide elements, is indexed: bytes below zero count from its end, as indices do."""
    return draft.emit("gather", [op.table, draft.emit("cast", [op.x], dtype="i32")], axis=0)


@legalizes(ScatterElements, bytes_do=False)
def updates_met_along_axis(op: ScatterElements, draft: Draft) -> Value | None:
    """All updates of an element are reduced to one, which meets it; of several that replace it the largest stays."""
    rank, axis = op.x.type.rank, op.axis % op.x.type.rank
    size, given = op.x.shape[axis], op.indices.shape
    outer = prod(given) // max(given[axis], 1)
    if not _known(op) or not prod(given) or prod(given) * size > _MOST:
        return None
    real, order = Reals(draft, _WHY), [*(i for i in range(rank) if i != axis), axis]
    index = _inside(real, real.permute(_as_real(real, op.indices), order), size)
    index = real.reshape(index, (outer, given[axis], 1, 1))
    values = real.reshape(real.permute(op.updates, order), (outer, given[axis], 1, 1))
    others, whole = [given[i] for i in order[:-1]], [op.x.shape[i] for i in order[:-1]]
    back = [order.index(i) for i in range(rank)]

    def placed(found: Value, neutral: float) -> Value:
        """(outer, 1, size, 1) in the layout of x."""
        found = real.reshape(found, (*others, size))
        if others != whole:
            ends = [n for have, want in zip(others, whole) for n in (0, want - have)]
            found = real("pad", found, pads=(*ends, 0, 0), value=neutral)
        return real.permute(found, back)

    return _met(op, real, _Updates(_choices(real, index, size), values), placed)


@legalizes(ScatterNd, bytes_do=False)
def updates_met_by_rows(op: ScatterNd, draft: Draft) -> Value | None:
    """All updates of a row are reduced to one, which meets it; of several that replace it the largest stays."""
    members, shape = op.indices.shape[-1], op.x.shape
    count, rows, width = prod(op.indices.shape[:-1]), prod(shape[:members]), prod(shape[members:])
    if not _known(op) or not count or count * rows * width > _MOST:
        return None
    real = Reals(draft, _WHY)
    tuples = real.reshape(_as_real(real, op.indices), (count, members))
    row: Value | None = None
    for i in range(members):
        index = _inside(real, real.span(tuples, 1, i, i + 1), shape[i])
        part = real("mul", index, float(prod(shape[i + 1 : members])))
        row = part if row is None else real("add", row, part)
    assert row is not None, "a tuple has members"
    chosen = _choices(real, real.reshape(row, (1, count, 1, 1)), rows)
    values = real.reshape(op.updates, (1, count, 1, width))

    def placed(found: Value, neutral: float) -> Value:
        """(1, 1, rows, width or 1) in the layout of x."""
        inner = shape[members:] if found.shape[-1] == width else (1,) * (len(shape) - members)
        return real.reshape(found, (*shape[:members], *inner))

    return _met(op, real, _Updates(chosen, values), placed)


@legalizes(GatherElements, bytes_do=False)
def chosen_along_axis(op: GatherElements, draft: Draft) -> Value | None:
    """Each result is the sum over the axis of what its index chooses, where other axes are as long as the indices'."""
    rank, axis = op.x.type.rank, op.axis % op.x.type.rank
    size, given = op.x.shape[axis], op.indices.shape
    alike = all(i == axis or d == op.x.shape[i] for i, d in enumerate(given))
    if op.x.dtype != "f32" or op.indices.dtype not in _INDICES or not alike:
        return None
    if not prod(given) or prod(given) * size > _MOST or size >= MOST_COUNTED:
        return None
    real, order = Reals(draft, _WHY), [*(i for i in range(rank) if i != axis), axis]
    outer, many = prod(given) // given[axis], given[axis]
    index = _inside(real, real.permute(_as_real(real, op.indices), order), size)
    chosen = real("compare", real.reshape(index, (outer, many, 1)), real.counted(size), method="equal")
    values = real.reshape(real.permute(op.x, order), (outer, 1, size))
    picked = real("reduce", real("where", chosen, values, 0.0), method="sum", axes=(2,))
    picked = real.reshape(picked, [given[i] for i in order])
    return real.permute(picked, [order.index(i) for i in range(rank)])


@legalizes(Gather, bytes_do=False)
def chosen_rows(op: Gather, draft: Draft) -> Value | None:
    """Each result is the sum over the axis of what its index chooses."""
    shape, axis = op.x.shape, op.axis % op.x.type.rank
    size, many = shape[axis], prod(op.indices.shape)
    before, after = prod(shape[:axis]), prod(shape[axis + 1 :])
    if op.x.dtype != "f32" or op.indices.dtype != "i32" or draft.constant(op.indices) is not None:
        return None
    if not prod(op.type.shape) or prod(op.type.shape) * size > _MOST_PICKED or size >= MOST_COUNTED:
        return None
    real = Reals(draft, _WHY)
    index = _inside(real, _as_real(real, op.indices), size)
    chosen = _choices(real, real.reshape(index, (1, many, 1, 1)), size)
    values = real.reshape(op.x, (before, 1, size, after))
    picked = real("reduce", real("where", chosen, values, 0.0), method="sum", axes=(2,))
    return real.reshape(picked, op.type.shape)


@legalizes(MaxUnpool, bytes_do=False)
def replaced_zeros(op: MaxUnpool, draft: Draft) -> Value | None:
    """Values replace zeros at the positions of their planes."""
    planes, size, count = prod(op.input.shape[:2]), prod(op.size), prod(op.input.shape[2:])
    if op.input.dtype != "f32" or op.mask.dtype != "i32":
        return None
    real = Reals(draft, _WHY)
    zeros = draft.weight(np.zeros((planes, size), np.float32), "zeros")
    places = draft.reshape(op.mask, (planes, count))
    made = real("scatter_elements", zeros, places, real.reshape(op.input, (planes, count)), axis=1)
    return real.reshape(made, op.type.shape)


@legalizes(MaxPoolMask, integers=True, bytes_do=False)
def place_of_the_largest(op: MaxPoolMask, draft: Draft) -> Value | None:
    """One tap of the windows after the other: where its value is larger than those before, its place is taken."""
    x, (height, width), (rows, columns) = op.input, op.input.shape[2:], op.type.shape[2:]
    if x.dtype != "f32" or prod(op.kernel) > _MOST_TAPS or height * width >= MOST_COUNTED:
        return None
    real = Reals(draft, _WHY)
    (top, left), (down, across) = op.pads[::2], op.taps()
    last = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip((rows, columns), op.strides, op.kernel, (down, across))]
    after = [max(0, end - before - size) for end, before, size in zip(last, (top, left), (height, width))]
    pads = (0, 0, 0, 0, top, after[0], left, after[1])
    padded = real("pad", x, pads=pads, value=-np.inf) if any(pads) else x
    first = np.full((rows, columns), -1.0, np.float32)
    taken: list[tuple[Value, np.ndarray]] = []
    for i, j in np.ndindex(*op.kernel):
        part = real.span(padded, 2, i * down, i * down + (rows - 1) * op.strides[0] + 1, op.strides[0])
        part = real.span(part, 3, j * across, j * across + (columns - 1) * op.strides[1] + 1, op.strides[1])
        y = np.arange(rows)[:, None] * op.strides[0] + i * down - top
        z = np.arange(columns)[None] * op.strides[1] + j * across - left
        place = (y * width + z).astype(np.float32)
        inside = (y >= 0) & (y < height) & (z >= 0) & (z < width)
        first = np.where((first < 0) & inside, place, first)
        taken.append((part, place))
    best, at = taken[0][0], draft.weight(np.broadcast_to(first, op.type.shape).copy(), "first")
    for part, place in taken[1:]:
        better = real("compare", part, best, method="greater")
        at = real("where", better, draft.weight(place[None, None], "place"), at)
        best = real("max", best, part)
    return draft.emit("cast", [at], dtype="i32", truncate=True)


def _known(op: ScatterElements | ScatterNd) -> bool:
    return op.x.dtype == "f32" and op.indices.dtype in _INDICES and max(op.x.shape, default=0) < MOST_COUNTED


def _as_real(real: Reals, indices: Value) -> Value:
    """Indices as f32: what is beyond its whole numbers is beyond the axis, too."""
    array = real.draft.constant(indices)
    if array is not None:
        return real.draft.weight(array.astype(np.float32), "indices")
    return real("cast", indices, dtype="f32")


def _inside(real: Reals, index: Value, size: int) -> Value:
    """Indices that count from the end from the front."""
    below = real("cast", real("compare", index, 0.0, method="less"), dtype="f32")
    return real("add", index, real("mul", below, float(size)))


def _choices(real: Reals, index: Value, size: int) -> Value:
    """(outer, updates, size, 1) of indices (outer, updates, 1, 1): whether each is that of an element."""
    places = real.draft.weight(np.arange(size, dtype=np.float32).reshape(1, 1, size, 1), "places")
    return real("compare", index, places, method="equal")


def _met(
    op: ScatterElements | ScatterNd, real: Reals, updates: _Updates, placed: Callable[[Value, float], Value]
) -> Value:
    """x met by its updates; `placed` puts what (outer, 1, rows, width) became of them, and a neutral rest, over x."""
    neutral, how = _NEUTRAL[op.reduction], _REDUCES[op.reduction]
    table = real("where", updates.chosen, updates.values, neutral)
    found = placed(real("reduce", table, method=how, axes=(1,)), neutral)
    if op.reduction in ("add", "mul"):
        return real(op.reduction, op.x, found)
    met = real("reduce", real("cast", updates.chosen, dtype="f32"), method="max", axes=(1,))
    made = found if op.reduction == "none" else real(op.reduction, op.x, found)
    return real("where", real("compare", placed(met, 0.0), 0.5, method="greater"), made, op.x)
