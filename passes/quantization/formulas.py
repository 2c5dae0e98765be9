"""Integers from thresholds (bm1880.md 11.2), computed in float64. A threshold is the magnitude that maps to 128."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from bmcompiler.errors import FileFormatError
from bmcompiler.numeric.arrays import Array, Int8s, Int16s
from bmcompiler.numeric.by_block import by_block

MAX_SHIFT = 31
"""A shift field has 5 bits (bm1880.md 8.3)."""
MAX_MAC_SHIFT = 15
"""That of the multiply-accumulate call has 4."""
I8, U8, I16 = 127, 255, 32767


def largest_shift(peak: float, limit: int, most: int = MAX_SHIFT) -> int:
    """The largest s <= `most` with floor(peak * 2**s + 0.5) <= limit; -1 when even s = 0 is too much. peak >= 0."""
    return next((s for s in range(most, -1, -1) if peak * 2.0**s < limit + 0.5), -1)


def rescaling(ratio: float, limit: int = U8, most: int = MAX_SHIFT) -> tuple[int, int]:
    """(m, s) with m / 2**s ~ ratio, 0 <= m <= limit, s as large as possible.

    Max pooling, average pooling (ratio / window size) and rescaling use limit 255, ReLU slopes 127. A ratio beyond
    `limit` gives (limit, 0).
    """
    shift = max(largest_shift(ratio, limit, most), 0)
    return min(math.floor(ratio * 2.0**shift + 0.5), limit), shift


def sum_multipliers(ratios: list[float]) -> tuple[tuple[int, ...], int]:
    """Multipliers (-127..127) and the common shift of a weighted sum; a ratio is threshold_i / threshold of the sum.

    The chip keeps the running sum of all but the last term in 16 bits: the shift is small enough that it cannot
    overflow whatever the operands.
    """
    for shift in range(MAX_MAC_SHIFT, -1, -1):
        multipliers = tuple(math.floor(ratio * 2.0**shift + 0.5) for ratio in ratios)
        partial = sum(abs(m) for m in multipliers[:-1]) * 128
        if max(map(abs, multipliers)) <= I8 and partial <= I16:
            return multipliers, shift
    return tuple(max(-I8, min(I8, m)) for m in multipliers), 0


def product_threshold(left: float, right: float, wanted: float) -> tuple[float, int]:
    """(threshold, shift) of a product of two int8 tensors: the smallest threshold >= `wanted` that is a shift away.

    real product = a * b * left * right / 128**2, so threshold = left * right / 128 * 2**shift with shift 0..31.
    """
    base = left * right / 128
    shift = next((s for s in range(MAX_SHIFT) if base * 2.0**s >= wanted * (1 - 1e-9)), MAX_SHIFT)
    return base * 2.0**shift, shift


def constant_threshold(array: Array) -> float:
    """The threshold at which the largest finite magnitude of a constant becomes 127."""
    peak = np.abs(array).max(initial=0.0, where=np.isfinite(array))
    return float(peak) * 128 / 127 or 1.0


@dataclass(frozen=True)
class Linear:
    """An int8 layer: out = saturate(round_shift(sum x * weight + bias, shift)), its result at `threshold`.

    weight i8 in the shape given, bias i16 or None. Scales: real weight = weight * `weight_scale`, real bias = bias *
    `bias_scale`.
    """

    weight: Int8s
    bias: Int16s | None
    shift: int
    threshold: float
    weight_scale: float
    bias_scale: float


def linear(weight: Array, bias: Array | None, source: float, wanted: float, shift: int | None = None) -> Linear:
    """Integers of a convolution, inner product or scaling between thresholds `source` and `wanted`.

    weight_q = floor(w * (tx/ty) * 2**r + 0.5), bias_q = floor(b * (128/ty) * 2**r + 0.5), with the largest r in 0..31
    that keeps |weight_q| <= 127 and bias_q in 16 bits. Where r = 0 is too large, ty is doubled until it fits. A given
    `shift` is used as it is.

    Raises FileFormatError for weights that are not finite, or do not fit with the given shift.
    """
    weight_peak = largest(weight)
    bias_peak = 0.0 if bias is None else largest(bias)
    if not math.isfinite(weight_peak + bias_peak):
        raise FileFormatError("its weights hold NaN or infinity", remedy="give the weights of a net that works")
    target = wanted
    if shift is None:
        target, shift = _range_and_shift(weight_peak, bias_peak, source, wanted)
    factor, bias_factor = source / target * 2.0**shift, 128 / target * 2.0**shift
    reason = f"its weights leave int8, or its biases int16, with the right shift {shift} of the table"

    def integers(reals: Array, factor: float, limit: int) -> Array:
        scaled = reals.astype(np.float64)
        scaled *= factor
        scaled += 0.5
        np.floor(scaled, out=scaled)
        if scaled.size and not (scaled.min() >= -limit - 1 and scaled.max() <= limit):
            raise FileFormatError(reason)
        return scaled

    weight_q = by_block(partial(integers, factor=factor, limit=I8), np.dtype(np.int8), weight)
    bias_q = None
    if bias is not None:
        bias_q = by_block(partial(integers, factor=bias_factor, limit=I16), np.dtype(np.int16), bias)
    return Linear(weight_q, bias_q, shift, target, 1 / factor, 1 / bias_factor)


def largest(array: Array) -> float:
    """The largest magnitude, NaN where there is one."""
    return float(np.maximum(array.max(initial=0.0), -array.min(initial=0.0)))


def nearest(array: Array, scale: float, limit: int) -> Int8s:
    """Reals over a scale to the nearest integers, halves to even, of at most a magnitude."""

    def integers(reals: Array) -> Array:
        steps = reals.astype(np.float64)
        steps /= scale
        return np.clip(np.rint(steps, out=steps), -limit, limit, out=steps)

    return by_block(integers, np.dtype(np.int8), array)


def _range_and_shift(weight_peak: float, bias_peak: float, source: float, wanted: float) -> tuple[float, int]:
    """(ty, r) for the largest weight and bias."""
    target = wanted
    while True:
        shift = min(largest_shift(weight_peak * (source / target), I8), largest_shift(bias_peak * (128 / target), I16))
        if shift >= 0:
            break
        target *= 2
    return target, 0 if weight_peak == 0.0 and bias_peak == 0.0 else shift
