"""Float sums in the order in which the BM1684X adds: convolutions and windows (bm1684x-cube.md 5, 6).

fp32 goes to two accumulators in turn, the bias first. Callers run under `np.errstate(all="ignore")`.
"""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric import fp32
from bmcompiler.numeric.fp32 import FloatArray
from bmcompiler.numeric.ordered import two_sums

_GATHERED = 1 << 21  # values of the gathered columns of a convolution at a time


def convolution(window: Window, x: FloatArray, kernel: FloatArray, bias: FloatArray | None) -> FloatArray:
    """(N, C, H, W) by (O, C, KH, KW): products in order of channel, row and column of the kernel."""
    prepared, rows = window.prepare(x), np.ascontiguousarray(kernel.reshape(len(kernel), -1).T)
    start = np.zeros((len(kernel), 1), np.float32) if bias is None else bias[:, None]
    out = np.empty((len(x), len(kernel), *window.out), np.float32)
    step = max(1, _GATHERED // (len(rows) * window.out[1]))
    for image, target in zip(prepared, out):
        taps = list(window.taps(image[None]))
        for y in range(0, window.out[0], step):
            columns = np.stack([tap[0, :, y : y + step] for tap in taps], axis=1).reshape(len(rows), -1)
            target[:, y : y + step] = two_sums(rows, columns, start).reshape(len(kernel), -1, window.out[1])
    return out


def depthwise(window: Window, x: FloatArray, kernel: FloatArray, bias: FloatArray | None) -> FloatArray:
    """(N, C, H, W) by (C, KH * KW)."""
    first = np.zeros(1, np.float32) if bias is None else fp32.add(bias, np.float32(0))
    return in_turn(window, x, kernel, (np.zeros(1, np.float32), first))


def in_turn(window: Window, x: FloatArray, kernel: FloatArray, start: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Products of each channel in turn to two accumulators, which begin at `start` (C,)."""
    image, factors = fp32.flush(window.prepare(x)), fp32.flush(kernel)
    sums = np.empty((2, *x.shape[:2], *window.out), np.float32)
    sums[0], sums[1] = (value[:, None, None] for value in start)
    safe = fp32.products_stay_normal(image, factors) and fp32.products_stay_normal(sums)
    product = np.empty_like(sums[0])
    for number, tap in enumerate(window.taps(image)):
        total, factor = sums[number & 1], factors[:, number, None, None]
        if safe:
            total += np.multiply(tap, factor, out=product)
        else:
            total[...] = fp32.add(total, fp32.multiply(tap, factor))
    return fp32.add(sums[0], sums[1])
