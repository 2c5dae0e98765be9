"""Integers of a layer in each mode, from real weights and the formats around it.

These modes have one shift and one factor per layer, and weights one scale per tensor. The fourth mode of this scheme
has factors of channels (`factored_layer`), as all layers of another scheme have (`quantization.channel`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite, log2, sqrt
from typing import Any

import numpy as np

from bmcompiler.errors import FileFormatError
from bmcompiler.ir import Quant
from bmcompiler.numeric.arrays import Array, Int8s
from bmcompiler.numeric.quant_modes import ASYMMETRIC, HIGH, LARGEST_SCALE, LOW, SMALLEST_SCALE, rescale
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.formulas import I8, I16, largest, linear, nearest
from bmcompiler.passes.quantization.scale.formats import Format, single

_I32 = (1 << 31) - 1
_NEAR = 1e-6


@dataclass(frozen=True)
class Layer:
    """An integer layer: constants, attributes of the mode, and the format of its result.

    weight: i8 in the shape given. bias: i16 or i32, or None. Real weight = weight * weight_scale, real bias =
    bias * bias_scale; with a scale per output channel these are quantizations, None where no axis has the channels.
    factors: operand of the mode channel, i32 or f32.
    """

    weight: Int8s
    bias: Array | None
    attributes: Mapping[str, Any]
    result: Format
    weight_scale: float | Quant | None
    bias_scale: float | Quant | None
    factors: Array | None = None


def integer_layer(
    mode: str, weight: Array, bias: Array | None, source: Format, wanted: Format, *, free: bool = False
) -> Layer:
    """Integers of a convolution, inner product or scaling.

    1. low: the factor is made a power of two, so that the residual multiplier, which acts on 8 bits, is not needed.
       Either the weights take up what is left over (their largest is then 64..127), or, where that loses more and the
       scale of the result is `free`, the result does (rule 3). bias i16; where it does not fit, the scale of the result
       is doubled until it does.
    2. high, asymmetric: weights use all of -127..127; bias i16 where it fits and the mode puts it into the sum, else
       i32. Zero points: those of the operands and the result, 0 for the weights.
    3. The modes low and high round the sum to steps of the residual r before they multiply by it. For results of 8 bits
       in the mode high the factor too is made a power of two where that loses less: an r below sqrt(2) is given to the
       scale of a free result (also in the mode low), else one above 1.25 to the weights, whose steps grow by 2 / r.

    Raises FileFormatError for weights that are not finite, NoInt8Form for scales that no mode has.
    """
    peak = largest(weight)
    if not isfinite(peak + (0.0 if bias is None else largest(bias))):
        raise FileFormatError("its weights hold NaN or infinity", remedy="give the weights of a net that works")
    peak = peak or 1.0
    weight_scale = single(peak / I8)
    unit = source.scale * weight_scale
    if mode != ASYMMETRIC and wanted.dtype in ("i8", "u8"):
        residual = rescale(in_range(unit / wanted.scale)).residual
        if free and residual < sqrt(2):
            wanted = replace(wanted, scale=single(wanted.scale * residual))
        elif mode == HIGH and 1.25 < residual < 2:  # 4 / r**2 + 1 against r**2 + 2, the squares of all steps
            weight_scale = single(weight_scale * 2 / residual)
            unit = source.scale * weight_scale
    if mode == LOW:
        return _low(weight, bias, source, wanted)
    attributes: dict[str, Any] = {"mode": mode, "scale": in_range(unit / wanted.scale)}
    if mode == ASYMMETRIC:
        attributes["zero_points"] = (source.zero_point, 0, wanted.zero_point)
    integers = nearest(weight, weight_scale, I8)
    wide = None if bias is None else np.rint(np.asarray(bias, np.float64) / unit)
    if wide is not None and np.abs(wide).max(initial=0.0) > _I32:
        raise NoInt8Form("its bias is too large for its scales")
    narrow = wide is not None and mode != ASYMMETRIC and np.abs(wide).max(initial=0.0) <= I16
    biases = None if wide is None else wide.astype(np.int16 if narrow else np.int32)
    return Layer(integers, biases, attributes, wanted, weight_scale, unit)


def _low(weight: Array, bias: Array | None, source: Format, wanted: Format) -> Layer:
    ints = linear(weight, bias, source.scale * 128, wanted.scale * 128)
    result = replace(wanted, scale=single(ints.threshold / 128))
    attributes = {"mode": LOW, "scale": 2.0**-ints.shift}
    return Layer(ints.weight, ints.bias, attributes, result, ints.weight_scale, ints.bias_scale)


def in_range(factor: float) -> float:
    """A factor between operands and result as the modes take it. Raises NoInt8Form for one that no shift can make."""
    if not SMALLEST_SCALE <= single(factor) <= LARGEST_SCALE:
        raise NoInt8Form(f"its factor {factor:.3g} between operands and result is out of the range of a right shift")
    power = 2.0 ** round(log2(factor))
    # a hair below a power of two the modes would shift one bit further and round to steps of almost 2
    return power if abs(factor - power) <= _NEAR * power else single(factor)
