"""Float sums of products in the order in which the chip adds (bm1684.md 6.1 to 6.3).

One function, `ordered_product`, serves convolution, depthwise and matrix commands, and whoever has to reproduce them.
Callers run under `np.errstate(all="ignore")`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bmcompiler.backends.bm1684.fp32 import FloatArray, add, flush, products_stay_normal
from bmcompiler.numeric.blas import in_parallel

# Values of one block of accumulators: with its products it stays in the second-level cache.
_BLOCK = 1 << 15
_INNER = 512


def ordered_product(a: FloatArray, b: FloatArray, accumulators: int) -> FloatArray:
    """a.T @ b for a (K, M) and b (K, N), each product and each sum rounded; returns (M, N).

    Product k goes to accumulator k mod `accumulators`, which start at 0. With 2 the result is A0 + A1 (matrix and
    depthwise commands); with 4 it is (A0 + A2) + (A1 + A3): convolutions, whose K runs over rows, columns and channels
    of the kernel, channels innermost and padded to an even count.
    """
    if a.shape[1] > b.shape[1]:
        return np.ascontiguousarray(ordered_product(b, a, accumulators).T)
    a, b = flush(a), flush(b)
    safe = products_stay_normal(a, b)
    out = np.empty((a.shape[1], b.shape[1]), np.float32)
    columns = max(1, min(b.shape[1], _INNER))
    rows = max(1, _BLOCK // (accumulators * columns))

    def some(x: int, y: int) -> None:
        left, right = (np.ascontiguousarray(part) for part in (a[:, y : y + rows], b[:, x : x + columns]))
        with np.errstate(all="ignore"):  # holds for one thread
            out[y : y + rows, x : x + columns] = _block(left, right, accumulators, safe)

    corners = [(x, y) for x in range(0, b.shape[1], columns) for y in range(0, a.shape[1], rows)]
    in_parallel([partial(some, x, y) for x, y in corners])
    return out


def _block(a: FloatArray, b: FloatArray, accumulators: int, safe: bool) -> FloatArray:
    """`ordered_product` of a block; `safe` = no denormal can appear on the way."""
    depth = a.shape[0] // accumulators
    whole = depth * accumulators
    steps_a = a[:whole].reshape(depth, accumulators, a.shape[1], 1)
    steps_b = b[:whole].reshape(depth, accumulators, 1, b.shape[1])
    sums = np.zeros((accumulators, a.shape[1], b.shape[1]), np.float32)
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
