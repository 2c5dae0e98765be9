"""Elements picked at constant indices, for chips that compute no indices: sums of products with ones and zeros."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.places.index import Gather, GatherElements, GatherNd, ReverseSequence, ScatterElements, ScatterNd
from bmcompiler.passes.support.decompositions.base import Draft, legalizes

_MOST = 1 << 18
"""Factors of one op; beyond that the host is as quick."""


@legalizes(GatherElements, floats_do=False)
def factors_choose_along_axis(op: GatherElements, draft: Draft) -> Value | None:
    """At constant indices, one for each position of the other axes: the sum of what factors of 0 and 1 leave."""
    rank, axis = op.x.type.rank, op.axis % op.x.type.rank
    indices, size, given = draft.constant(op.indices), op.x.shape[axis], op.indices.shape
    alike = all(i == axis or d == op.x.shape[i] for i, d in enumerate(given))
    if indices is None or not op.type.is_float or not alike or not 0 < op.x.type.size * given[axis] <= _MOST:
        return None
    if _endless(draft, op.x):
        return None
    parts = []
    for place in range(given[axis]):
        taken = np.take(indices, [place], axis=axis) % size
        counted = np.arange(size).reshape([size if i == axis else 1 for i in range(rank)])
        factors = draft.weight((taken == counted).astype(op.type.numpy), "factors")
        left = draft.emit("mul", [op.x, factors])
        parts.append(draft.emit("reduce", [left], method="sum", axes=(axis,)))
    return parts[0] if len(parts) == 1 else draft.emit("concat", parts, axis=axis)


@legalizes(Gather, GatherNd, ReverseSequence, floats_do=False)
def rows_by_a_product(op: TensorOp, draft: Draft) -> Value | None:
    """Many constant indices: a product with a matrix of 0 and 1."""
    assert isinstance(op, Gather | GatherNd | ReverseSequence), "it is declared for these three"
    indices = draft.constant(op.operands[1])
    if not op.type.is_float or indices is None:
        return None
    places = op.evaluate(np.arange(op.x.type.size).reshape(op.x.shape), indices)
    return _picked(draft, [op.x], places, op.x.shape)


@legalizes(ScatterElements, ScatterNd, floats_do=False)
def kept_or_replaced(op: TensorOp, draft: Draft) -> Value | None:
    """At constant indices: a product of elements and updates, joined, with a matrix of 0 and 1."""
    assert isinstance(op, ScatterElements | ScatterNd), "it is declared for these two"
    indices = draft.constant(op.indices)
    if indices is None or not op.type.is_float or op.reduction != "none" or draft.constant(op.updates) is not None:
        return None
    size = op.x.type.size
    updates = size + np.arange(op.updates.type.size).reshape(op.updates.shape)
    places: Array = op.evaluate(np.arange(size).reshape(op.x.shape), indices, updates)
    return _picked(draft, [op.x, op.updates], places, op.x.shape)


def _picked(draft: Draft, parts: Sequence[Value], places: Array, shape: Sequence[int]) -> Value | None:
    """Elements at `places` of tensors, joined; as many at once as lie together in all of them."""
    if any(_endless(draft, part) for part in parts):
        return None
    total = sum(part.type.size for part in parts)
    width = next(w for w in (prod(shape[i:]) for i in range(len(shape) + 1)) if w and _together(places, w, parts))
    rows = places.reshape(-1, width)[:, :1] // width
    if not 0 < rows.size * (total // width) <= _MOST:
        return None
    factors = draft.weight((rows == np.arange(total // width)).astype(parts[0].type.numpy), "factors")
    flat = [draft.reshape(part, (part.type.size // width, width)) for part in parts]
    joined = flat[0] if len(flat) == 1 else draft.emit("concat", flat, axis=0)
    return draft.reshape(draft.emit("matmul", [factors, joined]), places.shape)


def _endless(draft: Draft, x: Value) -> bool:
    """Whether a mask of infinity may be in a tensor: 0 times that is no number."""
    left, seen = [x], {x}
    while left:
        op = left.pop().op
        if not isinstance(op, TensorOp):
            continue
        if op.masks and any(np.isinf(a).any() for a in map(draft.constant, op.operands) if a is not None):
            return True
        new = [value for value in op.operands if value not in seen]
        seen.update(new)
        left += new
    return False


def _together(places: Array, width: int, parts: Sequence[Value]) -> bool:
    """Whether all elements come in whole rows of this width."""
    if places.size % width or any(part.type.size % width for part in parts):
        return False
    rows = places.reshape(-1, width)
    return bool((rows[:, :1] % width == 0).all() and (rows - rows[:, :1] == np.arange(width)).all())
