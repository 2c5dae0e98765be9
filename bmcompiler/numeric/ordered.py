"""Float sums of products in a given order: every product and every sum rounded, several accumulators in turn.

Callers run under `np.errstate(all="ignore")`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bmcompiler.numeric.blas import in_parallel
from bmcompiler.numeric.fp32 import FloatArray, add, flush, products_stay_normal

# Values of one block of accumulators: with its products it stays in the second-level cache.
_BLOCK = 1 << 15
_INNER = 512


def ordered_product(a: FloatArray, b: FloatArray, accumulators: int, start: FloatArray | None = None) -> FloatArray:
    """a.T @ b for a (K, M) and b (K, N), each product and each sum rounded; returns (M, N).

    Product k goes to accumulator k mod `accumulators`. With 2 the result is A0 + A1, with 4 (A0 + A2) + (A1 + A3).

    Args:
        start: what the accumulators hold before, broadcasting to (accumulators, M, N); by default 0.
    """
    if a.shape[1] > b.shape[1]:
        transposed = None if start is None else np.broadcast_to(start, (accumulators, a.shape[1], b.shape[1]))
        transposed = None if transposed is None else transposed.swapaxes(1, 2)
        return np.ascontiguousarray(ordered_product(b, a, accumulators, transposed).T)
    a, b = flush(a), flush(b)
    safe = products_stay_normal(a, b)
    if start is not None:
        start = np.broadcast_to(add(start, np.float32(0)), (accumulators, a.shape[1], b.shape[1]))
        safe = safe and products_stay_normal(start)
    out = np.empty((a.shape[1], b.shape[1]), np.float32)
    columns = max(1, min(b.shape[1], _INNER))
    rows = max(1, _BLOCK // (accumulators * columns))

    def some(x: int, y: int) -> None:
        left, right = (np.ascontiguousarray(part) for part in (a[:, y : y + rows], b[:, x : x + columns]))
        with np.errstate(all="ignore"):  # holds for one thread
            first = None if start is None else start[:, y : y + rows, x : x + columns]
            out[y : y + rows, x : x + columns] = _block(left, right, accumulators, first, safe)

    corners = [(x, y) for x in range(0, b.shape[1], columns) for y in range(0, a.shape[1], rows)]
    in_parallel([partial(some, x, y) for x, y in corners])
    return out


def _block(a: FloatArray, b: FloatArray, accumulators: int, start: FloatArray | None, safe: bool) -> FloatArray:
    """`ordered_product` of a block; `safe` = no denormal can appear on the way."""
    depth = a.shape[0] // accumulators
    whole = depth * accumulators
    steps_a = a[:whole].reshape(depth, accumulators, a.shape[1], 1)
    steps_b = b[:whole].reshape(depth, accumulators, 1, b.shape[1])
    sums = np.zeros((accumulators, a.shape[1], b.shape[1]), np.float32) if start is None else np.array(start)
    products = np.empty_like(sums)
    for x, y in zip(steps_a, steps_b):
        np.multiply(x, y, out=products)
        if safe:
            np.add(sums, products, out=sums)
        else:
            sums = flush(sums + flush(products))
    rest = a.shape[0] - whole
    if rest:
        tail = flush(a[whole:, :, None] * b[whole:, None, :])
        sums[:rest] = flush(sums[:rest] + tail)
    return combine(sums)


def combine(sums: FloatArray) -> FloatArray:
    """The sum of 2 or 4 accumulators (first axis): A0 + A1, or (A0 + A2) + (A1 + A3)."""
    if len(sums) == 2:
        return add(sums[0], sums[1])
    return add(add(sums[0], sums[2]), add(sums[1], sums[3]))
