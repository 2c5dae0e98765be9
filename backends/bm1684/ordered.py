"""Float sums in the order in which the chip adds: convolutions and windows (bm1684.md 6.1 to 6.3).

Matrix and depthwise commands have two accumulators. Convolutions have four, and their products run over rows, columns
and channels of the kernel, channels innermost and padded to an even count. Callers run under
`np.errstate(all="ignore")`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric.fp32 import FloatArray, add, maximum, multiply, products_stay_normal
from bmcompiler.numeric.ordered import combine, ordered_product

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
