"""Float sums in the order in which the BM1684X adds: convolutions and windows (bm1684x-cube.md 5, 6).

fp32 goes to two accumulators in turn, the bias first. Callers run under `np.errstate(all="ignore")`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bmcompiler.backends.lanes import window_sums
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric import fp32
from bmcompiler.numeric.arrays import Floats
from bmcompiler.numeric.ordered import combine, two_sums
from bmcompiler.numeric.sampled import convolution_sums


def convolution(window: Window, x: Floats, kernel: Floats, bias: Floats | None) -> Floats:
    """(N, C, H, W) by (O, C, KH, KW): products in order of channel, row and column of the kernel."""
    rows = np.ascontiguousarray(kernel.reshape(len(kernel), -1).T)
    start = np.zeros((len(kernel), 1), np.float32) if bias is None else bias[:, None]
    sums = partial(convolution_sums, rows, bias=start, exact=two_sums)
    return window_sums.convolution(window, window.prepare(x), sums, len(kernel), by_channel=True)


def depthwise(window: Window, x: Floats, kernel: Floats, bias: Floats | None) -> Floats:
    """(N, C, H, W) by (C, KH * KW)."""
    first = np.zeros(1, np.float32) if bias is None else fp32.add(bias, np.float32(0))
    return in_turn(window, x, kernel, (np.zeros(1, np.float32), first))


def in_turn(window: Window, x: Floats, kernel: Floats, start: tuple[Floats, Floats]) -> Floats:
    """Products of each channel in turn to two accumulators, which begin at `start` (C,)."""
    image, factors = fp32.flush(window.prepare(x)), fp32.flush(kernel)
    sums = np.empty((2, *x.shape[:2], *window.out), np.float32)
    sums[0], sums[1] = (value[:, None, None] for value in start)
    return combine(window_sums.in_turn(window, image, factors, sums))
