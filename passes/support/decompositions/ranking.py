"""The largest elements of an axis in order, on chips that sort nothing: by counting, or one maximum after another."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.places.order import TopK
from bmcompiler.passes.support.decompositions.base import Draft, legalizes

Ranked = tuple[Value, Value]
_MOST_PAIRS = 1 << 20
"""Comparisons of one op: of float32 they fill twice the local memory of a chip."""
_MOST_PARTS = 64
"""Parts of the rows of one op that are ranked one after the other."""
_ROWS_TOGETHER = 32
"""Rows whose elements and numbers are moved at once: they fill the lanes of a chip."""
_MOST_STEPS, _MOST_READ = 128, 1 << 20
"""Maxima taken one after the other, and elements that they read in all: some milliseconds; beyond, it is the host's."""


@legalizes(TopK, integers=True)
def ranked_along_the_last_axis(op: TopK, draft: Draft) -> Ranked | None:
    """Another axis is moved to the end and back."""
    rank, axis = op.x.type.rank, op.axis % op.x.type.rank
    if axis == rank - 1:
        return None
    order = [i for i in range(rank) if i != axis] + [axis]
    x = draft.emit("permute", [op.x], order=tuple(order))
    values, places = draft.several("top_k", [x], k=op.k, axis=rank - 1, largest=op.largest)
    back = tuple(int(i) for i in np.argsort(order))
    return draft.emit("permute", [values], order=back), draft.emit("permute", [places], order=back)


@legalizes(TopK, integers=True, bytes_do=False, weighed=True)
def places_by_counting(op: TopK, draft: Draft) -> Ranked | None:
    """The place of an element is the number of those that come before it: larger, or equal and further in front."""
    rows, size = _rows_of(op)
    if not _is_asked(op) or _too_many_pairs(draft, rows, size, op.k):
        return None
    counted = draft.weight(np.arange(size, dtype=np.float32).reshape(1, 1, size), "numbers")
    return _shaped(op, *_counted(op, draft.reshape(op.x, (rows, 1, size)), counted, draft), draft)


@legalizes(TopK, integers=True, bytes_do=False, weighed=True)
def leading_ones_by_counting(op: TopK, draft: Draft) -> Ranked | None:
    """The largest are found by bisection and moved up to each other, then counted among themselves."""
    rows, size = _rows_of(op)
    if not _is_asked(op) or op.k == size or _too_many_pairs(draft, rows, op.k, op.k):
        return None
    x = draft.reshape(op.x, (rows, size))
    marks = draft.emit("leading", [x if op.largest else draft.emit("neg", [x])], k=op.k)
    groups, values = rows if rows <= _ROWS_TOGETHER else 1, draft.reshape(x, (rows, 1, size))
    counted = np.broadcast_to(np.arange(size, dtype=np.float32), (groups, 1, size))
    numbers = draft.weight(np.ascontiguousarray(counted), "numbers")
    if rows > _ROWS_TOGETHER:
        values, numbers = (draft.emit("packed", [each, marks], size=op.k) for each in (values, numbers))
    else:
        both = draft.emit("packed", [draft.emit("concat", [values, numbers], axis=1), marks], size=op.k)
        values, numbers = (_span(draft, both, 1, i, i + 1) for i in range(2))
    return _shaped(op, *_counted(op, values, numbers, draft), draft)


@legalizes(TopK, integers=True, bytes_do=False, weighed=True)
def one_maximum_after_the_other(op: TopK, draft: Draft) -> Ranked | None:
    """The first of the largest is found, then taken out: elements that are out have no number any more."""
    rows, size = _rows_of(op)
    if not _is_asked(op) or draft.too_many(op.k, _MOST_STEPS, "steps"):
        return None
    if draft.too_many(rows * size * op.k, _MOST_READ, "elements read in all steps"):
        return None
    left = draft.reshape(op.x, (rows, size))
    counted = draft.weight(np.arange(size, dtype=np.float32).reshape(1, size), "numbers")
    out, beyond = _number(draft, -inf if op.largest else inf, 2), _number(draft, float(size), 2)
    best = "max" if op.largest else "min"
    values, numbers, number = [], [], counted
    for step in range(op.k):
        value = draft.emit("reduce", [left], method=best, axes=(1,))
        among = draft.emit("where", [_compared(draft, "equal", left, value), number, beyond])
        first = draft.emit("reduce", [among], method="min", axes=(1,))
        values.append(value)
        numbers.append(first)
        if step + 1 < op.k:
            taken = _compared(draft, "equal", counted, first)
            left, number = (draft.emit("where", [taken, *pair]) for pair in ((out, left), (beyond, number)))
    return _shaped(op, _joined(draft, values, 1), _joined(draft, numbers, 1), draft)


def _too_many_pairs(draft: Draft, rows: int, size: int, k: int) -> bool:
    """Whether so many rows cannot be counted in parts."""
    pairs = size * max(size, k)
    return (
        not rows
        or pairs > _MOST_PAIRS
        or draft.too_many(-(-rows // (_MOST_PAIRS // pairs)), _MOST_PARTS, "parts of rows")
    )


def _counted(op: TopK, others: Value, numbers: Value, draft: Draft) -> Ranked:
    """The k first of (rows, 1, size) and their numbers (or of all rows), by how many come before each."""
    rows, _, size = others.shape
    together = _MOST_PAIRS // (size * max(size, op.k))
    front = draft.weight(np.tri(size, size, -1, dtype=np.float32)[None], "front")
    wanted = draft.weight(np.arange(op.k, dtype=np.float32).reshape(1, op.k, 1), "places")
    one, none, last = (_number(draft, number, 3) for number in (1.0, 0.0, -inf))
    values, found = [], []
    for first in range(0, rows, together):
        some = range(first, min(rows, first + together))
        part, known = (
            x if x.shape[0] in (1, len(some)) else _span(draft, x, 0, some.start, some.stop) for x in (others, numbers)
        )
        own, method = draft.reshape(part, (len(some), size, 1)), "greater" if op.largest else "less"
        equal = draft.emit("where", [_compared(draft, "equal", part, own), front, none])
        before = draft.emit("where", [_compared(draft, method, part, own), one, equal])
        place = draft.emit("reduce", [before], method="sum", axes=(2,))
        here = _compared(draft, "equal", draft.reshape(place, (len(some), 1, size)), wanted)
        values.append(draft.emit("reduce", [draft.emit("where", [here, part, last])], method="max", axes=(2,)))
        found.append(draft.emit("reduce", [draft.emit("where", [here, known, none])], method="sum", axes=(2,)))
    return _joined(draft, values, 0), _joined(draft, found, 0)


def _is_asked(op: TopK) -> bool:
    return op.x.dtype == "f32" and op.k > 0 and op.axis % op.x.type.rank == op.x.type.rank - 1


def _rows_of(op: TopK) -> tuple[int, int]:
    return prod(op.x.shape[:-1]), op.x.shape[-1]


def _number(draft: Draft, number: float, rank: int) -> Value:
    return draft.weight(np.full((1,) * rank, number, np.float32), "number")


def _compared(draft: Draft, method: str, a: Value, b: Value) -> Value:
    return draft.emit("compare", [a, b], method=method)


def _joined(draft: Draft, parts: Sequence[Value], axis: int) -> Value:
    return parts[0] if len(parts) == 1 else draft.emit("concat", parts, axis=axis)


def _span(draft: Draft, x: Value, axis: int, first: int, end: int) -> Value:
    """Elements `first` .. `end` - 1 of an axis."""
    starts = tuple(first if i == axis else 0 for i in range(x.type.rank))
    ends = tuple(end if i == axis else size for i, size in enumerate(x.shape))
    return draft.emit("slice", [x], starts=starts, ends=ends, steps=(1,) * x.type.rank)


def _shaped(op: TopK, values: Value, numbers: Value, draft: Draft) -> Ranked:
    """Both results in the shape of the op, the numbers as integers."""
    shape, whole = op.results[0].shape, draft.emit("cast", [numbers], dtype="i32")
    return draft.reshape(values, shape), draft.reshape(whole, shape)
