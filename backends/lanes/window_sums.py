"""Float sums and maxima over windows in a given order: every product and every sum rounded.

Callers run under `np.errstate(all="ignore")`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmcompiler.backends.lanes.windows import Window
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.numeric.fp32 import add, maximum, multiply, products_stay_normal

_GATHERED = 1 << 21  # values of the gathered columns of a convolution at a time
Product = Callable[[Floats], Floats]
"""From the pixels under windows, columns (products, pixels), to sums (channels, pixels)."""


def convolution(window: Window, prepared: Floats, product: Product, channels: int, *, by_channel: bool) -> Floats:
    """(N, `channels`, OH, OW) of a prepared input (N, C, H, W).

    by_channel: whether the pixels of a channel follow each other in the columns, else those of a kernel position.
    """
    axis, (height, width) = int(by_channel), window.out
    depth = prepared.shape[1] * window.kernel[0] * window.kernel[1]
    step = max(1, _GATHERED // (depth * width))
    out = np.empty((len(prepared), channels, height, width), np.float32)
    for image, target in zip(prepared, out):
        taps = list(window.taps(image[None]))
        for y in range(0, height, step):
            columns = np.stack([tap[0, :, y : y + step] for tap in taps], axis=axis).reshape(depth, -1)
            target[:, y : y + step] = product(columns).reshape(channels, -1, width)
    return out


def in_turn(window: Window, prepared: Floats, weight: Floats, sums: Floats) -> Floats:
    """Adds position k of a kernel (C, KH * KW) in turn to one of `sums` (accumulators, N, C, OH, OW), and returns them.

    `prepared` (N, C, H, W) and `weight` have no denormals.
    """
    safe = products_stay_normal(prepared, weight) and (not sums.any() or products_stay_normal(sums))
    product = np.empty_like(sums[0])
    for number, tap in enumerate(window.taps(prepared)):
        total, factor = sums[number % len(sums)], weight[:, number, None, None]
        if safe:
            total += np.multiply(tap, factor, out=product)
        else:
            total[...] = add(total, multiply(tap, factor))
    return sums


def from_lowest(tap: Array) -> Array:
    """The first element of windows of fp32 whose maximum begins with the lowest number: what is -inf alone gives that.

    The vendors' C models of both chips do so; those of 16-bit floats begin with the first element.
    """
    lowest = np.finfo(np.float32).min
    return np.where(tap < lowest, lowest, tap) if tap.dtype == np.float32 else np.array(tap)


def largest(window: Window, x: Array, border: float) -> Array:
    """Maximum over each window; positions outside `x` count as `border`."""
    best: Array | None = None
    for tap in window.taps(window.prepare(x, border)):
        if best is None:
            best = from_lowest(tap)
        else:
            best = maximum(tap, best) if tap.dtype == np.float32 else np.maximum(tap, best)
    assert best is not None, "a window has at least one tap"
    return best
