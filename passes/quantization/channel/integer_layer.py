"""Integers of a layer with a scale for each output channel (bm1684x.md 7.2), from real weights and the formats around.

real weight = integer * s_w[o]; the sum of products has the scale s_x * s_w[o], which the bias shares, and the result is
the sum times s_x * s_w[o] / s_y as a multiplier and a shift (`numeric.factors`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.errors import FileFormatError
from bmcompiler.ir import Operation, Quant
from bmcompiler.numeric import factors
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.ops.nn import Deconv, Matmul
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.formulas import I8
from bmcompiler.passes.quantization.scale.formats import Format, single
from bmcompiler.passes.quantization.scale.integer_layer import Layer

_FIRST = 16
"""Weights of a channel that mostly tell whether they are multiples of a scale."""
_NEAR = 128 * 2.0**-22
_MOST_BIAS = 1 << 30
"""Biases stay below, so that what zero points add to them fits 32 bits."""


def channel_layer(
    op: Operation, weight: NDArray[Any], bias: NDArray[Any] | None, source: Format, wanted: Format
) -> Layer:
    """Integers of a convolution, transposed or not, an inner product, or a scaling (weight (C, 1, 1, 1)).

    s_w[o] = max |w[o]| / 127, larger where the bias would not fit. Weights that are integers times a scale, as those of
    models that are quantized already, stay these integers (or integers with the same meaning).
    Raises FileFormatError for weights that are not finite, NoInt8Form for scales that no factor spans.
    """
    for array in (weight, bias):
        if array is not None and not np.isfinite(array).all():
            raise FileFormatError("its weights hold NaN or infinity", remedy="give the weights of a net that works")
    rows = by_channel(op, weight)
    peaks = np.abs(rows, dtype=np.float64).max(1, initial=0.0)
    biases = np.zeros(len(rows)) if bias is None else np.asarray(bias, np.float64)
    usual = np.maximum(np.where(peaks > 0, peaks, 1.0) / I8, np.abs(biases) / (source.scale * _MOST_BIAS))
    whole = whole_scales(np.asarray(rows, np.float64))
    fits = (whole > 0) & (np.abs(biases) <= whole * source.scale * _MOST_BIAS)
    scales = np.array([single(scale) for scale in np.where(fits, whole, usual)])
    try:
        rescaled = factors.apart(source.scale * scales / wanted.scale)
    except ValueError as error:
        raise NoInt8Form(str(error)) from None
    integers = np.clip(np.rint(rows / scales[:, None]), -I8 - 1, I8).astype(np.int8)
    attributes: dict[str, Any] = {"mode": CHANNEL}
    if source.zero_point or wanted.zero_point:
        attributes["zero_points"] = (source.zero_point, 0, wanted.zero_point)
    shared = np.rint(biases / (source.scale * scales)).astype(np.int32)
    return Layer(
        as_weight(op, integers, weight.shape),
        shared,
        attributes,
        wanted,
        _meaning(op, scales),
        Quant.along(0, source.scale * scales),
        rescaled,
    )


def whole_scales(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each row the largest scale of which all numbers are multiples by -128..127, in float32's precision, or 0."""
    peaks = np.abs(rows).max(1, initial=0.0)
    found = np.zeros(len(rows))
    left = np.flatnonzero(peaks)
    for steps in range(1, I8 + 2):
        units = rows[left, :_FIRST] * (steps / peaks[left])[:, None]
        for row in left[(np.abs(units - np.rint(units)) <= _NEAR).all(1)]:
            whole = rows[row] * (steps / peaks[row])
            if (np.abs(whole - np.rint(whole)) <= _NEAR).all() and whole.max() < I8 + 0.5:
                found[row] = peaks[row] / steps
        left = left[found[left] == 0]
    return found


def by_channel(op: Operation, weight: NDArray[Any]) -> NDArray[Any]:
    """Weights as (output channels, the rest)."""
    if isinstance(op, Deconv):
        c, o, kh, kw = weight.shape
        grouped = weight.reshape(op.group, c // op.group, o, kh, kw)
        return grouped.transpose(0, 2, 1, 3, 4).reshape(op.group * o, -1)
    if isinstance(op, Matmul):
        axis = -2 if op.transpose_right else -1
        return np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)
    return weight.reshape(len(weight), -1)


def as_weight(op: Operation, rows: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The way back of `by_channel`."""
    if isinstance(op, Deconv):
        c, o, kh, kw = shape
        return rows.reshape(op.group, o, c // op.group, kh, kw).transpose(0, 2, 1, 3, 4).reshape(shape)
    if isinstance(op, Matmul):
        axis = len(shape) - (2 if op.transpose_right else 1)
        moved = (shape[axis], *shape[:axis], *shape[axis + 1 :])
        return np.moveaxis(rows.reshape(moved), 0, axis)
    return rows.reshape(shape)


def _meaning(op: Operation, scales: NDArray[np.float64]) -> Quant | None:
    """What the weights mean, where output channels are an axis of theirs."""
    if isinstance(op, Deconv):
        return Quant.along(1, scales) if op.group == 1 else None
    if isinstance(op, Matmul):
        rank = op.right.type.rank
        return Quant.along(rank - (2 if op.transpose_right else 1), scales)
    return Quant.along(0, scales)
