"""What a run does besides convolving: pooling, activations, LRN (dv.md 1.6, 5), on [w][h][c] maps of float32.

Between stages values are float32; the result of a run is rounded to fp16 once, to the nearest, ties to even, with
overflow to infinity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.dv.driver.commands import Pads, Pair
from bmcompiler.backends.dv.driver.geometry import window_out
from bmcompiler.backends.dv.driver.structs import Activation
from bmcompiler.numeric.arrays import Doubles, Floats, Halves

_LRN_KNOTS = 13  # 4^0 .. 4^12
_LRN_ALPHA = 2e-5  # alpha / size = 1e-4 / 5
_LRN_BETA = 0.75


def half(bits: int) -> np.float16:
    """The number with an fp16 pattern."""
    return np.uint16(bits).view(np.float16)


def pattern(value: float) -> int:
    """The 16-bit pattern of the nearest fp16 number."""
    return int(np.float16(value).view(np.uint16))


def to_half(values: NDArray[np.floating]) -> Halves:
    """Round to fp16, as the device stores results."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return values.astype(np.float16)


def max_pool(x: Floats, size: Pair, stride: Pair, pads: Pads) -> Floats:
    """Largest value of each window; padding never wins, a window of padding alone gives -inf.

    +0 is larger than -0, so that the result is the same before and after rounding to fp16.
    """
    taps = _taps(x, size, stride, pads, -np.inf)
    out = taps[0].copy()
    for tap in taps[1:]:
        np.maximum(out, tap, out=out)
    zeros = out == 0
    if zeros.any() and np.signbit(x[x == 0]).any():
        positive = np.zeros(out.shape, np.bool_)
        for tap in taps:
            positive |= (tap == 0) & ~np.signbit(tap)
        out[zeros] = np.where(positive[zeros], np.float32(0), np.float32(-0.0))
    return out


def average_pool(x: Floats, size: Pair, stride: Pair, pads: Pads, factor: int) -> Floats:
    """Sum of each window, rounded to float32, times the fp16 pattern `factor`; padding counts as zeros."""
    total: Doubles = np.zeros(1)
    for tap in _taps(x, size, stride, pads, 0.0):
        total = total + tap
    return total.astype(np.float32) * np.float32(half(factor))


def _taps(x: Floats, size: Pair, stride: Pair, pads: Pads, fill: float) -> list[Floats]:
    """Per element of the window a [w][h][c] array of what it covers at every position."""
    w = window_out(x.shape[0], size.x, pads.left, pads.right, stride.x)
    h = window_out(x.shape[1], size.y, pads.top, pads.bottom, stride.y)
    if any(pads):
        x = np.pad(x, ((pads.left, pads.right), (pads.top, pads.bottom), (0, 0)), constant_values=fill)
    return [
        x[i : i + (w - 1) * stride.x + 1 : stride.x, j : j + (h - 1) * stride.y + 1 : stride.y]
        for i in range(size.x)
        for j in range(size.y)
    ]


def upsample(x: Floats) -> Floats:
    """Every pixel becomes 2 x 2."""
    return x.repeat(2, 0).repeat(2, 1)


def activate(x: Floats, function: int, param: int = 0, slopes: Halves | None = None) -> NDArray[np.floating]:
    """Apply an activation (`structs.Activation`); what transcendental functions give is float64.

    Args:
        param: fp16 pattern of the slope of leaky ReLU; 0 = ReLU.
        slopes: PReLU, one per channel.

    The device's own approximation of tanh, sigmoid and ELU is not public: these are the functions themselves.
    """
    if function == Activation.NONE:
        return x
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if function == Activation.TANH:
            return np.tanh(x.astype(np.float64))
        if function == Activation.SIGMOID:
            return 1.0 / (1.0 + np.exp(-x.astype(np.float64)))
        if function == Activation.ELU:
            wide = x.astype(np.float64)
            return np.where(wide >= 0, wide, np.expm1(np.minimum(wide, 0)))
        if function == Activation.RELU6:
            return np.clip(x, np.float32(0), np.float32(6)) + np.float32(0)
        if function == Activation.PRELU:
            if slopes is None:
                raise ValueError("PReLU needs slopes")
            return np.where(x >= 0, x, x * slopes.astype(np.float64))
        if not param & 0x7FFF:
            return np.maximum(x, np.float32(0)) + np.float32(0)  # the sum makes -0 into +0
        return np.where(x >= 0, x, x * np.float64(half(param)))


def lrn(x: Halves) -> Doubles:
    """Local response normalisation over 5 channels: the device's piecewise linear model (dv.md 5, lrn = 0x503).

    The segment of sums from 4^12 is continued; so is the first one for sums below 1.
    """
    wide = x.astype(np.float64)
    squares = np.pad(wide * wide, ((0, 0), (0, 0), (2, 2)))
    channels = x.shape[2]
    total = squares[..., :channels].copy()
    for shift in range(1, 5):
        total += squares[..., shift : shift + channels]
    knots = np.ldexp(1.0, 2 * np.arange(_LRN_KNOTS + 1))
    values = (1 + _LRN_ALPHA * knots) ** -_LRN_BETA
    slopes = (values[1:] - values[:-1]) / (3 * knots[:-1])
    with np.errstate(invalid="ignore"):
        segment = np.clip((np.frexp(total)[1] - 1) // 2, 0, _LRN_KNOTS - 1)
        return wide * (values[segment] + (total - knots[segment]) * slopes[segment])
