"""Ops that only move elements, as strided copies between dense tensors; offsets and strides count elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from bmcompiler.codegen.runs import IndexRun, runs
from bmcompiler.codegen.strided_copy import Dim
from bmcompiler.ir import Value
from bmcompiler.ops.places.shape import Concat, Permute, Split


@dataclass(frozen=True)
class Piece:
    """The elements `dims` (outermost first) of `source` from `start` on go to `target` from `at` on."""

    target: Value
    at: int
    source: Value
    start: int
    dims: list[Dim]


@dataclass(frozen=True)
class Fill:
    """The elements `dims` of `target` from `at` on get a constant.

    Both sides of `dims` say the same, for the runs of elements of a copy begin and end where those of both sides do.
    """

    target: Value
    at: int
    dims: list[Dim]


def dense(shape: Sequence[int]) -> list[int]:
    """Strides of a row-major tensor."""
    return [prod(shape[i + 1 :]) for i in range(len(shape))]


def concat_pieces(op: Concat) -> Iterator[Piece]:
    """Each operand into its part of the result of a concat."""
    axis = op.axis % op.type.rank
    offset = 0
    for value in op.operands:
        run = prod(value.shape[axis:])
        dims = [Dim(prod(value.shape[:axis]), run, prod(op.type.shape[axis:])), Dim(run, 1, 1)]
        yield Piece(op.result, offset, value, 0, dims)
        offset += run


def split_pieces(op: Split) -> Iterator[Piece]:
    """Each result of a split from its part of the operand."""
    source = op.operands[0]
    axis = op.axis % source.type.rank
    offset = 0
    for result in op.results:
        run = prod(result.shape[axis:])
        dims = [Dim(prod(result.shape[:axis]), prod(source.shape[axis:]), run), Dim(run, 1, 1)]
        yield Piece(result, 0, source, offset, dims)
        offset += run


def permute_pieces(op: Permute) -> Iterator[Piece]:
    """One strided copy."""
    inside, outside = dense(op.operands[0].shape), dense(op.type.shape)
    dims = [Dim(n, inside[axis], d) for n, axis, d in zip(op.type.shape, op.order, outside)]
    yield Piece(op.result, 0, op.operands[0], 0, dims)


def whole(target: Value, source: Value) -> Piece:
    """All elements as they are."""
    return Piece(target, 0, source, 0, [Dim(target.type.size, 1, 1)])


def selected_pieces(
    target: Value, source: Value, maps: Sequence[np.ndarray], at: int = 0, start: int = 0
) -> Iterator[Piece | Fill]:
    """target[i, j, ...] = source[maps[0][i], maps[1][j], ...], and a constant where an index is -1.

    Args:
        maps: per axis the source index of every position; of one axis more than its extent in `target` never.
        at, start: elements before the first one on each side.
    """
    inside, outside = dense(source.shape), dense(target.shape)
    kept = [np.flatnonzero(index >= 0) for index in maps]
    found = [_moved(runs(index[places], places), s, d) for index, places, s, d in zip(maps, kept, inside, outside)]
    for choice in product(*found):
        yield Piece(
            target,
            at + sum(run.at for run in choice),
            source,
            start + sum(run.start for run in choice),
            [dim for run in choice for dim in run.axes],
        )
    for axis, index in enumerate(maps):
        gaps = _intervals(np.flatnonzero(index < 0))
        if gaps:
            before = [_intervals(places) for places in kept[:axis]]
            after = [[(0, len(other))] for other in maps[axis + 1 :]]
            for box in product(*before, gaps, *after):
                first = sum(lo * d for (lo, _), d in zip(box, outside))
                yield Fill(target, at + first, [Dim(hi - lo, d, d) for (lo, hi), d in zip(box, outside)])


def _moved(found: list[IndexRun], source: int, target: int) -> list[IndexRun]:
    """Runs of indices of an axis as runs of elements; the strides of the axis are given."""
    return [
        IndexRun(
            run.at * target,
            run.start * source,
            tuple(Dim(dim.size, dim.src * source, dim.dst * target) for dim in run.axes),
        )
        for run in found
    ]


def _intervals(places: np.ndarray) -> list[tuple[int, int]]:
    """Half-open intervals of increasing positions."""
    cuts = np.flatnonzero(np.diff(places) != 1) + 1
    return [(int(part[0]), int(part[-1]) + 1) for part in np.split(places, cuts) if part.size]
