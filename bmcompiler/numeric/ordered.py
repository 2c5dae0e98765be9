"""Float sums of products in a given order: every product and every sum rounded, several accumulators in turn.

Callers run under `np.errstate(all="ignore")`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bmcompiler.numeric.arrays import Floats
from bmcompiler.numeric.blas import in_parallel
from bmcompiler.numeric.fp32 import add, flush, products_stay_normal

# Values of a block, columns of it, and products of one accumulator at a time: together they stay in the second-level
# cache.
_BLOCK = 1 << 12
_INNER = 1 << 12
_LONG = 1 << 11
_DEPTH = 32
_STRIP = 8  # blocks that one thread makes in the same scratch memory


def ordered_product(a: Floats, b: Floats, accumulators: int, start: Floats | None = None) -> Floats:
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
    blocks = -(-a.shape[1] // max(1, _BLOCK // columns))
    rows = -(-a.shape[1] // max(1, blocks))

    def some(x: int, top: int) -> None:
        right = np.ascontiguousarray(b[:, x : x + columns])
        products = np.empty((1 + _DEPTH, rows, right.shape[1]), np.float32)
        strip = slice(top, min(top + _STRIP * rows, a.shape[1]))
        sums = np.zeros((accumulators, strip.stop - top, right.shape[1]), np.float32)
        if start is not None:
            sums[...] = start[:, strip, x : x + columns]
        with np.errstate(all="ignore"):  # holds for one thread
            for y in range(0, sums.shape[1], rows):
                left = np.ascontiguousarray(a[:, strip][:, y : y + rows])
                _add_block(sums[:, y : y + rows], left, right, products[:, : left.shape[1]] if safe else None)
            out[strip, x : x + columns] = combine(sums)

    corners = [(x, y) for x in range(0, b.shape[1], columns) for y in range(0, a.shape[1], _STRIP * rows)]
    in_parallel([partial(some, x, y) for x, y in corners])
    return out


def two_sums(a: Floats, b: Floats, bias: Floats, old: Floats | None = None) -> Floats:
    """a.T @ b in two accumulators, to which bias (M, 1), old results (M, N) and products go in turn."""
    # Product 0 follows bias and old results: it goes to the accumulator of the bias, or without old ones to the other.
    if old is None:
        return ordered_product(a, b, 2, np.stack([np.zeros_like(bias), bias]))
    return ordered_product(a, b, 2, np.stack([np.broadcast_to(bias, old.shape), old]))


def _add_block(sums: Floats, a: Floats, b: Floats, products: Floats | None) -> None:
    """Adds the products of a block to its `sums`; `products` is scratch, None when denormals can appear on the way."""
    if products is not None and sums[0].size > 1:  # of single values numpy adds several at once
        for number, total in enumerate(sums):
            _add_all(total, a[number :: len(sums)], b[number :: len(sums)], products)
    else:
        for number, (x, y) in enumerate(zip(a[:, :, None], b[:, None, :])):
            total = sums[number % len(sums)]
            total[...] = flush(total + flush(x * y))


def _add_all(total: Floats, a: Floats, b: Floats, products: Floats) -> None:
    """Adds all products of one accumulator to `total`, one after the other; `products` is scratch."""
    for first in range(0, len(a), _DEPTH):
        some = slice(first, first + _DEPTH)
        terms = products[: 1 + len(a[some])]
        terms[0] = total
        outer(a[some], b[some], terms[1:])
        np.add.reduce(terms, out=total)  # along the first axis numpy adds in order


def outer(a: Floats, b: Floats, out: Floats) -> None:
    """Products a[k, i] * b[k, j], each rounded.

    Every row that numpy multiplies costs as much as some thousand values more, because it clears the exceptions after
    each; einsum adds the products to zeros instead, which changes no bit but the sign of a zero. What they are added
    to here is never -0.
    """
    if b.shape[1] < _LONG:
        np.einsum("ki,kj->kij", a, b, out=out)
    else:
        np.multiply(a[:, :, None], b[:, None, :], out=out)


def combine(sums: Floats) -> Floats:
    """The sum of 2 or 4 accumulators (first axis): A0 + A1, or (A0 + A2) + (A1 + A3)."""
    if len(sums) == 2:
        return add(sums[0], sums[1])
    return add(add(sums[0], sums[2]), add(sums[1], sums[3]))
