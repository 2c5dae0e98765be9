"""What one run computes: the exact meaning that the simulator executes and a compiler can evaluate (dv.md 1.6, 5).

    conv (+ bias) | LRN | average pooling | upsampling | nothing  ->  add  ->  max pooling  ->  activation  ->  |x|

Values are float32 between the stages and rounded to fp16 once, at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.dv.arithmetic.accumulate import Accumulator, convolve, convolve_depthwise, insert_zeros
from bmcompiler.backends.dv.arithmetic.stages import activate, average_pool, lrn, max_pool, to_half, upsample
from bmcompiler.backends.dv.driver.commands import NO_PADS, ONE, Run
from bmcompiler.backends.dv.driver.structs import Pool
from bmcompiler.numeric.arrays import Array, Halves

Floats = Array  # float32, or float64 where a function gives more digits


class RunWeights(NamedTuple):
    """Weights [m][c][ky][kx] (depthwise [m][1][ky][kx]), biases [m] and PReLU slopes [m] of a run."""

    weights: Halves
    bias: Halves
    prelu: Halves | None = None


def before_add(run: Run, x: Floats, weights: RunWeights | None, accumulator: Accumulator) -> Floats:
    """The first stage of a run for a [w][h][c] map; its shape is that of the addend."""
    if run.has_conv:
        if weights is None:
            raise ValueError("a convolution needs weights")
        stride = run.conv_stride
        if run.is_deconv:
            x, stride = insert_zeros(x, stride), ONE
        compute = convolve_depthwise if run.is_depthwise else convolve
        return compute(x, weights.weights, weights.bias, run.conv_pad, stride, run.dilation, accumulator)
    if run.has_lrn:
        return lrn(x)
    wide = x.astype(np.float32)
    if run.pool_enable == Pool.AVERAGE:
        return average_pool(wide, run.pool_size, run.pool_stride, run.pool_pad, run.pool_avg_param)
    return upsample(wide) if run.pool_enable == Pool.UPSAMPLE else wide


def as_pixels(maps: Array, runs: Iterable[Run]) -> Array:
    """Maps [n][w][h][c]; those of one pixel as the pixels of one map, where no run looks at other pixels."""
    alone = maps.shape[1:3] == (1, 1) and all(has_no_window(run) for run in runs)
    return maps.reshape(1, len(maps), 1, -1) if alone else maps


def has_no_window(run: Run) -> bool:
    """Each pixel of the result is made of the same pixel of what is read."""
    plain = run.kernel == run.conv_stride == run.dilation == ONE and run.conv_pad == NO_PADS
    return not run.pool_enable and (plain or not run.has_conv)


def run_values(
    run: Run,
    x: Floats,
    weights: RunWeights | None = None,
    addend: Halves | None = None,
    accumulator: Accumulator = Accumulator.EXACT,
) -> Floats:
    """What a run computes, as it is before it is rounded to fp16: a [w][h][m] map.

    Args:
        x: [w][h][c]: fp16, or what another stage of the same run gave.
        weights: of a run with convolution; of a PReLU whose convolution is done, the slopes; else None.
        addend: added before max pooling and activation; [w][h][m] as they are there.
    """
    values = before_add(run, x, weights, accumulator)
    with np.errstate(over="ignore", invalid="ignore"):
        if addend is not None:
            values = values + addend.astype(np.float32)
        if run.pool_enable == Pool.MAX:
            values = max_pool(values, run.pool_size, run.pool_stride, run.pool_pad)
    values = activate(values, run.actfunc, run.actfunc_param, None if weights is None else weights.prelu)
    return np.abs(values) if run.rectifi_en else values


def run_result(
    run: Run,
    x: Halves,
    weights: RunWeights | None = None,
    addend: Halves | None = None,
    accumulator: Accumulator = Accumulator.EXACT,
) -> Halves:
    """The result of a run as a [w][h][m] map; see `run_values`."""
    return to_half(run_values(run, x, weights, addend, accumulator))
