"""Integers of a layer with a scale for each output channel (bm1684x.md 7.2), from real weights and the formats around.

real weight = integer * s_w[o]; the sum of products has the scale s_x * s_w[o], which the bias shares, and the result is
the sum times s_x * s_w[o] / s_y as a multiplier and a shift (`numeric.factors`), of dense convolutions as float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.errors import FileFormatError
from bmcompiler.ir import Operation, Quant
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.numeric import factors
from bmcompiler.numeric.arrays import Array, Doubles, Int8s, Int32s
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.ops.layers.nn import Conv, Convolution, Matmul
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.formulas import I8
from bmcompiler.passes.quantization.output_channels import as_weight, by_channel, meaning
from bmcompiler.passes.quantization.scale.formats import Format, single
from bmcompiler.passes.quantization.scale.integer_layer import Layer

_FIRST = 4
"""Weights of a channel that mostly tell whether they are multiples of a scale."""
_NEAR = 128 * 2.0**-22
_NEIGHBOURS = 16
_LOSS = 1 / 16
_MOST_SHIFT = 31
_MOST_BIAS = 1 << 30
"""Biases stay below, so that what zero points add to them fits 32 bits."""


def channel_layer(
    op: Operation,
    weight: Array,
    bias: Array | None,
    source: Format,
    wanted: Format,
    *,
    exact: bool = False,
    rows: WeightRows | None = None,
) -> Layer:
    """Integers of a convolution, transposed or not, an inner product, or a scaling (weight (C, 1, 1, 1)).

    s_w[o] = max |w[o]| / 127, larger where the bias would not fit. Weights that are integers times a scale, as those of
    models that are quantized already, stay these integers (or integers with the same meaning). `exact`: results are to
    be those of the model; otherwise sums may lose their last bits (`narrowing`), and what convolutions that are not
    depthwise do behind them is float32. rows: what is known of the weights.
    Raises FileFormatError for weights that are not finite, NoInt8Form for scales that no factor spans.
    """
    rows = rows or WeightRows(op, weight)
    if bias is not None:
        _need_finite(bias)
    biases = np.zeros(len(rows.peaks)) if bias is None else np.asarray(bias, np.float64)
    peaks, least = np.where(rows.peaks > 0, rows.peaks, 1.0), np.abs(biases) / (source.scale * _MOST_BIAS)
    fits = (rows.whole > 0) & (least <= rows.whole)
    scales = np.array([single(scale) for scale in np.where(fits, rows.whole, np.maximum(peaks / I8, least))])
    try:
        rescaled = factors.apart(source.scale * scales / wanted.scale)
    except ValueError as error:
        raise NoInt8Form(str(error)) from None
    integers = rows.integers(scales)
    attributes: dict[str, Any] = {"mode": CHANNEL}
    points = (source.zero_point, 0, wanted.zero_point)
    shared: Array = np.rint(biases / (source.scale * scales)).astype(np.int32)
    of_bias: Quant | None = Quant.along(0, source.scale * scales)
    whole, each = exact or isinstance(op, Matmul), _depthwise(op, len(scales))
    short = shortened(integers, shared, rescaled, source, wanted) if each and not whole and not any(points) else None
    if short is not None:
        shared, rescaled, more = short
        attributes |= more
    elif not whole and (not any(points) or (isinstance(op, Conv) and not each)):
        outside = source.zero_point if isinstance(op, Conv) and any(op.pads) else 0
        shared, rescaled, more = in_reals(integers, biases, source.scale * scales, source, wanted, outside)
        attributes, of_bias = attributes | more, None
    elif any(points):
        attributes["zero_points"] = points
    return Layer(
        as_weight(op, integers, weight.shape),
        shared,
        attributes,
        wanted,
        meaning(op, scales),
        of_bias,
        rescaled,
    )


class WeightRows:
    """Weights by output channel, and what of their integers does not depend on the formats around.

    Attributes: peaks: largest magnitudes. whole: `whole_scales`.
    """

    def __init__(self, op: Operation, weight: Array) -> None:
        _need_finite(weight)
        self.weights = by_channel(op, weight)
        self.peaks = np.maximum(self.weights.max(1, initial=0), -self.weights.min(1, initial=0)).astype(np.float64)
        self.whole = whole_scales(self.weights, self.peaks)
        self._last: tuple[Doubles, Int8s] | None = None

    def integers(self, scales: Doubles) -> Int8s:
        """By a scale for each channel; those of the same scales again are the same array."""
        if self._last is None or not np.array_equal(self._last[0], scales):
            steps = self.weights / scales[:, None]
            self._last = scales, np.clip(np.rint(steps, out=steps), -I8 - 1, I8, out=steps).astype(np.int8)
        return self._last[1]


def _need_finite(array: Array) -> None:
    if not np.isfinite(array).all():
        raise FileFormatError("its weights hold NaN or infinity", remedy="give the weights of a net that works")


def _depthwise(op: Operation, channels: int) -> bool:
    """Whether each channel has one of its own; a scaling of channels becomes such a convolution."""
    if isinstance(op, Convolution):
        return bool(op.group == op.input.shape[1] == op.type.shape[1] > 1)
    return channels > 1


def shortened(
    weight: Int8s, bias: Int32s, rows: Int32s, source: Format, wanted: Format
) -> tuple[Array, Array, dict[str, Any]] | None:
    """Bias, factors and attributes of a layer with biases and, where little is lost, sums of 16 bits.

    What a bias has beyond 16 bits is whole steps of the result, which are added behind the factor. Of the numbers of
    steps the one is taken that is nearest to a whole sum. None where no such number is a halfword of the result's sign
    (`factors.OFFSETS`), as of large negative biases before an unsigned result.
    Args: weight: (channels, the rest).
    """
    steps, most = factors.real(rows), np.iinfo(np.int16).max
    offsets, far = np.zeros(len(bias), np.int64), np.abs(bias.astype(np.int64)) > most
    if far.any():
        around = np.rint(bias * steps)[:, None] + np.arange(-_NEIGHBOURS, _NEIGHBOURS + 1)
        sums = around / np.where(steps > 0, steps, 1.0)[:, None]
        left = bias[:, None] - np.rint(sums)
        lowest, highest = factors.OFFSETS[wanted.dtype]
        takes = (np.abs(left) <= most) & (around >= lowest) & (around <= highest)
        wrong = np.where(takes, np.abs(sums - np.rint(sums)), np.inf)
        best, each = wrong.argmin(1), np.arange(len(bias))
        offsets = np.where(far, around[each, best], 0).astype(np.int64)
        if not np.isfinite(wrong[each, best])[far].all():
            return None
        bias = np.where(far, left[each, best], bias).astype(np.int32)
        rows = np.concatenate([rows, offsets[:, None].astype(np.int32)], axis=1)
    shift = narrowing(weight, bias, steps, offsets, source, wanted)
    if shift is None or shift > rows[:, 1].min(initial=_MOST_SHIFT):
        return bias.astype(np.int16), rows, {}
    rows = rows.copy()
    rows[:, 1] -= shift
    return bias.astype(np.int16), rows, {"narrow": True, "rshift": shift}


def in_reals(
    weight: Int8s,
    bias: Doubles,
    scales: Doubles,
    source: Format,
    wanted: Format,
    outside: int,
) -> tuple[Array, Array, dict[str, Any]]:
    """Bias, factors and attributes of a layer whose sums become float32, with what zero points add in the bias.

    Args: weight: (channels, the rest). bias: real. scales: of the sums. outside: what padding is, which wide sums take.
    """
    steps = scales / wanted.scale
    taken = source.zero_point * weight.sum(1, dtype=np.int64)
    offsets = np.float32(bias / wanted.scale - taken * steps + wanted.zero_point)
    rescaled = np.float32(np.maximum(steps, 2.0**-100))[:, None]
    if outside:
        return offsets, rescaled, {"zero_points": (outside, 0, 0)}
    shift = narrowing(weight, offsets * 0, steps, offsets, source, wanted)
    if shift is None:
        return offsets, rescaled, {}
    return offsets, np.ldexp(rescaled, shift), {"narrow": True, "rshift": shift}


def narrowing(
    weight: Int8s,
    bias: Array,
    steps: Doubles,
    offsets: Array,
    source: Format,
    wanted: Format,
) -> int | None:
    """The shift behind which 16 bits hold the sums of a layer, or come to saturate where the result does.

    None where what it loses moves a result by more than `_LOSS` of a step.
    Args: weight: (channels, the rest). bias: in the sums. steps: of the result that a sum of 1 makes. offsets: what is
        added behind the factor, in steps.
    """
    limits, inner = (np.iinfo(numpy_dtype(each.dtype)) for each in (wanted, source))
    ends = np.maximum(np.abs(limits.min - offsets), np.abs(limits.max - offsets))
    most = np.abs(weight, dtype=np.int16).sum(1, dtype=np.int64) * max(-inner.min, inner.max) + np.abs(bias)
    needed = np.minimum(most, (ends + 1) / np.maximum(steps, 1e-30)).max(initial=1.0)
    shift = max(0, int(np.ceil(np.log2(needed / np.iinfo(np.int16).max))))
    loss = 2.0**shift * steps.max(initial=0.0) / 2 if shift else 0.0
    return shift if loss <= _LOSS and shift <= _MOST_SHIFT else None


def whole_scales(rows: Array, peaks: Doubles) -> Doubles:
    """Of each row the largest scale of which all numbers are multiples by -128..127, in float32's precision, or 0.

    Args: peaks: the largest magnitudes of rows.
    """
    found = np.zeros(len(rows))
    left = np.flatnonzero(peaks)
    firsts = rows[left, :_FIRST] / peaks[left, None]
    for steps in range(1, I8 + 2):
        units = firsts * steps
        near = (np.abs(units - np.rint(units)) <= _NEAR).all(1)
        for row in left[near & (found[left] == 0)]:
            whole = rows[row] * (steps / peaks[row])
            if (np.abs(whole - np.rint(whole)) <= _NEAR).all() and whole.max() < I8 + 0.5:
                found[row] = peaks[row] / steps
    return found
