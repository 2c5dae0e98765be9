"""What is linear in one tensor where all else is constant, for chips of bytes alone: products with a matrix."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.places.order import Cumulate
from bmcompiler.ops.places.resample import GridSample
from bmcompiler.passes.support.decompositions.base import Draft, legalizes

_MOST = 1 << 20
"""Factors of one matrix; beyond that the host is as quick."""


@legalizes(GridSample, floats_do=False)
def product_with_taps(op: GridSample, draft: Draft) -> Value | None:
    """At constant places: the product of each image with the weights that its places have there."""
    grid, (images, channels), sizes = draft.constant(op.grid), op.input.shape[:2], op.input.shape[2:]
    given, wanted = prod(sizes), prod(op.type.shape[2:])
    if grid is None or not op.type.is_float or not 0 < images * given * wanted <= _MOST:
        return None
    ones = np.broadcast_to(np.eye(given, dtype=op.type.numpy).reshape(given, *sizes), (images, given, *sizes))
    batch = (images,) if images > 1 else ()
    taps = draft.weight(op.evaluate(ones, grid).reshape(*batch, given, wanted), "taps")
    maps = draft.reshape(op.input, (*batch, channels, given))
    return draft.reshape(draft.emit("matmul", [maps, taps]), op.type.shape)


@legalizes(Cumulate, floats_do=False)
def product_with_triangle(op: Cumulate, draft: Draft) -> Value | None:
    """A running sum: the product with a triangle of ones."""
    rank, axis, size = op.x.type.rank, op.axis, op.x.shape[op.axis]
    if op.method != "sum" or not op.type.is_float or not 0 < size * size <= _MOST:
        return None
    order = [*(a for a in range(rank) if a != axis), axis]
    x = op.x if axis == rank - 1 else draft.emit("permute", [op.x], order=tuple(order))
    ones = np.triu(np.ones((size, size), op.type.numpy), int(op.exclusive))
    rows = draft.reshape(x, (x.type.size // size, size))
    sums = draft.emit("matmul", [rows, draft.weight(np.ascontiguousarray(ones.T) if op.reverse else ones, "ones")])
    sums = draft.reshape(sums, x.shape)
    return sums if x is op.x else draft.emit("permute", [sums], order=tuple(int(i) for i in np.argsort(order)))
