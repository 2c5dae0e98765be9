"""Commands that slide windows: convolutions, depthwise ones, averages and maxima (bm1684x-cube.md 5, 6)."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.backends.bm1684x.codes import Conv, Pord, Precision, Rounding, Task
from bmcompiler.backends.bm1684x.instructions.operands import Command, shape_fields
from bmcompiler.backends.bm1684x.isa import CONV, PORD
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.instructions.isa import Fields, Format
from bmcompiler.instructions.order import Engine

_SHIFT_BIT = 8
"""Of the shift in `res1_addr` of depthwise convolutions, above the value of inserted pixels."""


def _slide(layout: Format, target: Words, source: int, geometry: Geometry, fields: Fields) -> Command:
    """Padding and inserted pixels are immediates, 0 unless `fields` say otherwise."""
    (h, w), taps, dilations, pads, steps, zeros = geometry
    down, across = (step - 1 if size > 1 else 0 for size, step in zip(taps, dilations))
    found: Fields = shape_fields(target.shape) | {"opd0_h": h, "opd0_w": w, "opd1_h": taps[0], "opd1_w": taps[1]}
    found |= {f"opd0_{name}_pad": pad for name, pad in zip(("up", "dn", "lf", "rt"), pads)}
    found |= {"opd1_y_ins0": down, "opd1_x_ins0": across, "res_op_y_str": steps[0], "res_op_x_str": steps[1]}
    found |= {"opd0_y_ins0": zeros[0], "opd0_x_ins0": zeros[1], "opd3_const": 1}
    return Command(Engine.TIU, layout, found | {"res0_addr": target.address, "opd0_addr": source} | fields)


def _types(precision: Precision, result: Precision) -> Fields:
    return {"opd0_prec": precision, "res0_prec": result, "opd0_sign": 1, "opd1_sign": 1}


def _bias(place: int | None) -> Fields:
    return {"opd2_const": 1} if place is None else {"opd2_addr": place}


def convolution(
    target: Words,
    source: int,
    kernel: tuple[int, int],
    bias: int | None,
    geometry: Geometry,
    precision: Precision,
    result: Precision,
    *,
    add: bool = False,
) -> Command:
    """Sums over windows and input channels of floats.

    Args:
        kernel: place of the weights, and input channels. bias: place of a compact vector of fp32.
        precision, result: of input and weights, and of the sums. add: what the result held before comes first.
    """
    fields: Fields = {"tsk_typ": Task.CONV, "tsk_eu_typ": Conv.NORMAL, "opd1_addr": kernel[0], "opd0_c": kernel[1]}
    fields["res_add"] = add
    return _slide(CONV, target, source, geometry, fields | _types(precision, result) | _bias(bias))


def depthwise(
    target: Words, source: int, kernel: int, bias: int | None, geometry: Geometry, precision: Precision
) -> Command:
    """Sums over windows of each channel of floats; a bias has the type of the data."""
    fields: Fields = {"tsk_typ": Task.POOL_OR_DEPTHWISE, "tsk_eu_typ": Pord.DEPTHWISE, "opd1_addr": kernel}
    return _slide(PORD, target, source, geometry, fields | _types(precision, precision) | _bias(bias))


@dataclass(frozen=True)
class Sums:
    """What becomes of sums of products of bytes.

    Attributes:
        signs: of input and weights. border: bits of what is padded and inserted.
        bias: place of a compact vector of int32; only depthwise convolutions have one.
        narrow: shift to the right, halves up, behind which they saturate to int16; None: they stay int32.
    """

    signs: tuple[bool, bool]
    border: int = 0
    bias: int | None = None
    narrow: int | None = None


def integer_sums(target: Words, source: int, kernel: tuple[int, int], geometry: Geometry, sums: Sums) -> Command:
    """Sums of products of bytes.

    Args: kernel: place of the weights, and input channels; 0 of a depthwise convolution.
    Dense narrow ones pad zeros whatever the border: the shift takes its field (bm1684x-cube.md 5.2). The vendor's tools
    refuse to show one with a bias for each channel.
    """
    place, depth = kernel
    result = Precision.INT32 if sums.narrow is None else Precision.INT16
    shift = sums.narrow or 0
    fields: Fields = {"opd1_addr": place, "opd0_prec": Precision.INT8, "res0_prec": result} | _bias(sums.bias)
    fields |= {"opd0_sign": sums.signs[0], "opd1_sign": sums.signs[1], "opd2_sign": sums.bias is not None}
    fields |= {"opd3_addr": sums.border, "res1_addr": sums.border}
    if not depth:
        more: Fields = {"tsk_typ": Task.POOL_OR_DEPTHWISE, "tsk_eu_typ": Pord.DEPTHWISE}
        more |= {"res1_addr": sums.border | shift << _SHIFT_BIT, "opd2_n_str": Rounding.HALF_UP}
        return _slide(PORD, target, source, geometry, fields | more)
    fields |= {"tsk_typ": Task.CONV, "tsk_eu_typ": Conv.NORMAL, "opd0_c": depth}
    if sums.narrow is not None:
        fields |= {"tsk_eu_typ": Conv.REQUANT, "opd3_addr": shift, "res1_addr": 0}
    return _slide(CONV, target, source, geometry, fields)


def integer_average(target: Words, source: int, geometry: Geometry, signed: bool, factor: tuple[int, int]) -> Command:
    """Sums over windows of bytes, times a multiplier of 8 bits, shifted right with halves up, saturated to bytes."""
    fields: Fields = {"tsk_typ": Task.POOL_OR_DEPTHWISE, "tsk_eu_typ": Pord.AVERAGE, "opd0_sign": signed}
    fields |= {"opd0_prec": Precision.INT8, "res0_prec": Precision.INT8}
    fields |= {"opd1_const": 1, "opd1_addr": factor[0], "opd2_const": 1, "opd2_addr": factor[1]}
    return _slide(PORD, target, source, geometry, fields)


def average(target: Words, source: Words, geometry: Geometry, precision: Precision, factor: int) -> Command:
    """Sums over windows of floats times a float, its bits."""
    fields: Fields = {"tsk_typ": Task.POOL_OR_DEPTHWISE, "tsk_eu_typ": Pord.AVERAGE}
    fields |= {"opd1_const": 1, "opd1_addr": factor, "opd2_const": 1}
    return _slide(PORD, target, source.address, geometry, fields | _types(precision, precision))


def largest(
    target: Words, source: Words, geometry: Geometry, precision: Precision, signed: bool = True, border: int = 0
) -> Command:
    """Maxima over windows; border: bits of what is padded."""
    fields: Fields = {"tsk_typ": Task.POOL_OR_DEPTHWISE, "tsk_eu_typ": Pord.MAX, "opd3_addr": border & 0xFFFF_FFFF}
    fields |= _types(precision, precision) | {"opd0_sign": signed}
    return _slide(PORD, target, source.address, geometry, fields)
