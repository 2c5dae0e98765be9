"""Integers of a layer in the mode channel of a chip whose sums have 16 bits: a shift for each output channel.

real weight = integer * s_w[o]. The chip rounds the sum to t = sum >> shift of 16 bits, and the result is
floor(t / 2**shift[o]) (`ops.modes.Products`), where s_x * s_w[o] / s_y = 2**-(shift + shift[o]). Half a step in the
bias makes it the nearest integer: nothing is rounded twice.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bmcompiler.errors import FileFormatError
from bmcompiler.ir import Operation, Quant
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.passes.quantization.formulas import I8, I16
from bmcompiler.passes.quantization.output_channels import as_weight, by_channel, meaning
from bmcompiler.passes.quantization.scale.formats import Format, single
from bmcompiler.passes.quantization.scale.integer_layer import Layer

_APART = 7
"""Most shifts of a channel: t of 16 bits then still reaches as far as a byte."""


def factored_layer(op: Operation, weight: Array, bias: Array | None, source: Format, wanted: Format) -> Layer:
    """Integers of a convolution, transposed or not, an inner product, or a scaling (weight (C, 1, 1, 1)).

    The weights of each channel are as fine as bytes and a power of two allow, their largest 64..127, but less fine
    where the bias would have more than 16 bits, or the channel more than `_APART` shifts more than another. Where a
    channel's steps would be larger than those of the result, the scale of the result is doubled until they are not.

    Raises FileFormatError for weights that are not finite.
    """
    for array in (weight, bias):
        if array is not None and not np.isfinite(array).all():
            raise FileFormatError("its weights hold NaN or infinity", remedy="give the weights of a net that works")
    rows = by_channel(op, np.asarray(weight, np.float64))
    unit = source.scale / wanted.scale
    biases = np.zeros(len(rows)) if bias is None else np.asarray(bias, np.float64) / wanted.scale
    steps = np.maximum(np.abs(rows).max(1, initial=0.0) / I8 * unit, (np.abs(biases) + 0.5) / I16)
    fine = np.floor(-np.log2(steps) + 1e-9).astype(int)
    doubled = max(-int(fine.min()), 0)
    wanted = replace(wanted, scale=single(wanted.scale * 2.0**doubled))
    biases, unit, fine = biases / 2.0**doubled, unit / 2.0**doubled, fine + doubled
    shift = int(fine.min())
    fine = np.minimum(fine, shift + _APART)
    scales = 2.0**-fine / unit
    halves = np.ldexp(0.5, fine) - (1 << shift >> 1)
    return Layer(
        as_weight(op, np.clip(np.rint(rows / scales[:, None]), -I8, I8).astype(np.int8), weight.shape),
        np.clip(np.rint(np.ldexp(biases, fine) + halves), -I16, I16).astype(np.int16),
        {"mode": CHANNEL, "narrow": True, "rshift": shift},
        wanted,
        meaning(op, scales),
        Quant.along(0, source.scale * scales),
        (fine - shift).astype(np.int16)[:, None],
    )
