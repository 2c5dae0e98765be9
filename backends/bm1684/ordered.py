"""Float sums of products in the order in which the chip adds: matrices, convolutions, windows (bm1684.md 6.1 to 6.3).

One function, `ordered_product`, serves convolution, depthwise and matrix commands, and whoever has to reproduce them.
Callers run under `np.errstate(all="ignore")`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric.blas import in_parallel
from bmcompiler.numeric.fp32 import FloatArray, add, flush, maximum, multiply, products_stay_normal

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


_GATHERED = 1 << 21  # values of the gathered columns of a float convolution at a time


def float_convolution(window: Window, x: FloatArray, kernel: FloatArray, fast: bool = False) -> FloatArray:
    """(N, C, H, W) by (KH, KW, C rounded up to even, OC) in the chip's order, or in BLAS order when `fast`."""
    n, channels = x.shape[:2]
    padded = np.zeros((n, kernel.shape[2], *window.reach), np.float32)
    padded[:, :channels] = window.prepare(x)
    depth, out_channels = int(np.prod(kernel.shape[:3])), kernel.shape[3]
    rows = kernel.reshape(depth, out_channels)
    out = np.empty((n, out_channels, *window.out), np.float32)
    flat = out.reshape(n, out_channels, -1)
    pixels = flat.shape[2]
    block = max(1, _GATHERED // depth)
    for image in range(n):
        taps = [tap[0] for tap in window.taps(padded[image : image + 1])]
        for first in range(0, pixels, block):
            columns = _gather(taps, first, min(pixels, first + block))
            product = rows.T @ columns if fast else ordered_product(rows, columns, 4)
            flat[image, :, first : first + block] = product
    return out


def _gather(taps: list[FloatArray], first: int, end: int) -> FloatArray:
    """Columns `first` to `end` of the matrix (taps * channels, pixels)."""
    channels, _, width = taps[0].shape
    top, bottom = first // width, -(-end // width)
    columns = np.stack([tap[:, top:bottom] for tap in taps]).reshape(len(taps) * channels, -1)
    return columns[:, first - top * width : end - top * width]


def depthwise_sums(window: Window, x: FloatArray, weight: FloatArray) -> FloatArray:
    """Kernel position k of (C, KH * KW) goes to accumulator k mod 2; `x` is prepared, neither has denormals."""
    if weight.shape[1] == 1:  # a single product is the result: no accumulator takes the sign off -0
        return multiply(next(window.taps(x)), weight[:, :, None])
    sums = np.zeros((2, *x.shape[:2], *window.out), np.float32)
    safe = products_stay_normal(x, weight)
    product = np.empty_like(sums[0])
    for k, tap in enumerate(window.taps(x)):
        factor = weight[:, k, None, None]
        if safe:
            sums[k & 1] += np.multiply(tap, factor, out=product)
        else:
            sums[k & 1] = add(sums[k & 1], multiply(tap, factor))
    return combine(sums)


def largest(window: Window, x: NDArray[Any], border: float) -> NDArray[Any]:
    """Maximum over each window; positions outside `x` count as `border`. The pooling unit knows no dilation."""
    best: NDArray[Any] | None = None
    for tap in window.taps(window.prepare(x, border)):
        if best is None:
            best = np.array(tap)
        else:
            best = maximum(tap, best) if tap.dtype == np.float32 else np.maximum(tap, best)
    assert best is not None
    return best
