"""Integers times a factor, and between integers and floats: the unit RQ&DQ (bm1684x-cube.md 9)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Precision, Requant, Rounding, Task
from bmcompiler.backends.bm1684x.instructions.operands import Command, Operand, shape_fields
from bmcompiler.backends.bm1684x.isa import RQ
from bmcompiler.chip import Dims
from bmcompiler.instructions.isa import Fields
from bmcompiler.instructions.order import Engine

WORDS = 16
"""32-bit words that the parameters of a channel take: multiplier, shift (negative to the right), zero point, unused."""


def requantize(
    shape: Dims,
    result: Operand,
    source: int,
    place: int | tuple[int, int, int],
    rounding: Rounding,
    precision: Precision = Precision.INT32,
) -> Command:
    """saturate(round(x * multiplier / 2**shift) + zero point) of int32 or, by `precision`, int16.

    Args: place: of the parameters of each channel; or one multiplier, shift to the right and zero point for all.
    """
    fields: Fields = {"tsk_typ": Task.REQUANT, "tsk_eu_typ": Requant.RQ1, "opd0_prec": precision, "opd0_sign": 1}
    fields |= {"res0_prec": result.precision, "opd2_sign": result.signed, "opd2_n_str": rounding}
    fields |= shape_fields(shape) | {"res0_addr": result.place, "opd0_addr": source}
    if isinstance(place, int):
        fields["opd1_addr"] = place
    else:
        multiplier, shift, zero = place
        fields |= {"opd1_const": 1, "opd1_addr": multiplier, "opd2_addr": -shift & 0xFF | (zero & 0xFFFF) << 16}
    return Command(Engine.TIU, RQ, fields)


def requantize_real(shape: Dims, result: Operand, source: int, place: int, precision: Precision) -> Command:
    """saturate(round(x * factor + offset)) of int32 or int16, in fp32, halves to even; place: of (factor, offset)."""
    fields: Fields = {"tsk_typ": Task.REQUANT, "tsk_eu_typ": Requant.RQ0, "opd0_prec": precision, "opd0_sign": 1}
    fields |= {"res0_prec": result.precision, "opd2_sign": result.signed, "opd2_n_str": Rounding.HALF_EVEN}
    fields |= shape_fields(shape) | {"res0_addr": result.place, "opd0_addr": source, "opd1_addr": place}
    return Command(Engine.TIU, RQ, fields)


def dequantize(shape: Dims, result: int, source: Operand, scale: int, zero: int) -> Command:
    """(x - zero point) * scale in fp32 of bytes and halfwords; `scale` as bits."""
    fields: Fields = {"tsk_typ": Task.REQUANT, "tsk_eu_typ": Requant.DQ0, "opd0_prec": source.precision}
    fields |= {"opd0_sign": source.signed, "res0_prec": Precision.FP32, "opd2_sign": 1, "opd1_const": 1}
    fields |= shape_fields(shape) | {"res0_addr": result, "opd0_addr": source.place}
    return Command(Engine.TIU, RQ, fields | {"opd1_addr": zero & 0xFFFF, "opd2_addr": scale})
