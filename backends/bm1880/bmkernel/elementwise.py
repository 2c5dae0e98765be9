"""What element-wise TPU commands share: operands of 8 or 16 bits, their checks and their fields (bm1880.md 4.1, 8).

A 16-bit operand is two 8-bit tensors of one shape and layout: the high plane lies a multiple of 16 bytes after the low.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bmcompiler.backends.bm1880.bmkernel.checks import (
    MAX_STRIDE,
    check_range,
    check_same_lane,
    check_strides,
    check_tpu_tensor,
    fail,
)
from bmcompiler.backends.bm1880.bmkernel.context import Bmk1880Context
from bmcompiler.backends.bm1880.bmkernel.sync import Op
from bmcompiler.backends.bm1880.bmkernel.tensors import tensor_lmem
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.isa import StrideCode, Task, TensorOp

PLANE_STRIDE = 16  # what 8-bit operands carry in their unused plane-stride field


class Operand(NamedTuple):
    """A tensor parameter: `name` in messages, its only or low plane, its high plane."""

    name: str
    low: tensor_lmem
    high: tensor_lmem | None = None


class Const(NamedTuple):
    """An immediate operand: the 16 bits in the address field, and its signedness."""

    bits: int
    signed: bool


def emit(
    ctx: Bmk1880Context,
    op: TensorOp,
    operands: tuple[Operand, Operand, Operand | Const],
    fields: dict[str, int],
) -> Op:
    """Check (result, operand 0, operand 1) and emit; `fields` override what follows from the operands."""
    res, a, b = operands
    for operand in (res, a, b) if isinstance(b, Operand) else (res, a):
        _check_operand(operand, res.low)
    values = explicit_operands(op, res.low, a.low)
    values |= {
        "opt_res0_sign": res.low.signed,
        "opt_opd0_sign": a.low.signed,
        "opt_res0_int8": int(res.high is None),
        "opt_opd0_int8": int(a.high is None),
        "res0_b_str": _plane_distance(res, 0),
        "opd0_b_str": _plane_distance(a, PLANE_STRIDE),
    }
    if isinstance(b, Const):
        values |= {"opt_opd1_const": 1, "opd1_addr": b.bits, "opt_opd1_sign": int(b.signed)}
        values |= operand_group("opd1", a.low)
    else:
        check_same_lane(b.name, b.low, res.name, res.low)
        values |= {"opd1_addr": b.low.offset, "opt_opd1_sign": b.low.signed, "opt_opd1_int8": int(b.high is None)}
        values |= operand_group("opd1", b.low)
        values["opd1_b_str"] = _plane_distance(b, PLANE_STRIDE)
    return ctx.emit_tpu(values | fields)


@dataclass
class Planes16:
    """A parameter block of three 16-bit tensors, of high and low bytes; of the result the high ones may be dropped."""

    res_high: tensor_lmem | None
    res_low: tensor_lmem
    a_high: tensor_lmem
    a_low: tensor_lmem
    b_high: tensor_lmem
    b_low: tensor_lmem


def emit_16(ctx: Bmk1880Context, op: TensorOp, p: Planes16, fields: dict[str, int]) -> Op:
    """`emit` for a parameter block of three 16-bit tensors."""
    res = Operand("res", p.res_low, p.res_high)
    return emit(ctx, op, (res, Operand("a", p.a_low, p.a_high), Operand("b", p.b_low, p.b_high)), fields)


def explicit_operands(op: TensorOp, res: tensor_lmem, a: tensor_lmem) -> dict[str, int]:
    """Fields every element-wise command writes: explicit strides everywhere, operand 2 mirrors operand 0."""
    return {
        "tsk_typ": Task.TENSOR,
        "tsk_eu_typ": op,
        "tsk_opd_num": 2,
        "opt_right_shift": 0,
        "opt_relu": 0,
        "short_res0_str": StrideCode.EXPLICIT,
        "short_opd0_str": StrideCode.EXPLICIT,
        "short_opd1_str": StrideCode.EXPLICIT,
        "short_opd2_str": StrideCode.EXPLICIT,
        "res0_addr": res.address,
        "opd0_addr": a.address,
        **operand_group("res0", res),
        **operand_group("opd0", a),
        **operand_group("opd2", a),
    }


def operand_group(role: str, t: tensor_lmem) -> dict[str, int]:
    """Shape and stride fields of one operand."""
    n, c, h, w = t.dims
    s = t.strides
    return {
        f"{role}_n": n,
        f"{role}_c": c,
        f"{role}_h": h,
        f"{role}_w": w,
        f"{role}_n_str": s.n,
        f"{role}_c_str": s.c,
        f"{role}_h_str": s.h,
        f"{role}_w_str": s.w,
    }


def _check_operand(operand: Operand, like: tensor_lmem) -> None:
    name, low, high = operand
    check_tpu_tensor(name, low)
    check_strides(name, low)
    if low.shape != like.shape:
        fail(f"shape of {name}", low.shape, f"must be {like.shape}, that of the result")
    if high is not None:
        check_planes(name, low, high)


def check_planes(name: str, low: tensor_lmem, high: tensor_lmem) -> None:
    """A 16-bit operand: equal planes, the high one a multiple of 16 bytes after the low one in the same lane."""
    check_tpu_tensor(f"{name}_high", high)
    if high.shape != low.shape or high.strides != low.strides or high.fmt != low.fmt:
        fail(f"{name}_high", high.shape, f"must have the shape {low.shape}, layout and format of {name}_low")
    distance = high.address - low.address
    if distance <= 0 or distance % CHIP.alignment or distance > MAX_STRIDE or high.lane != low.lane:
        fail(
            f"address of {name}_high",
            f"{distance} after {name}_low",
            f"must be a positive multiple of {CHIP.alignment}, in the same lane",
        )


def need_planes(**planes: tensor_lmem | None) -> None:
    """The named high planes must be given."""
    for name, plane in planes.items():
        if plane is None:
            fail(name, "None", "the operand has 16 bits and needs its high plane")


def _plane_distance(operand: Operand, without: int) -> int:
    return without if operand.high is None else operand.high.address - operand.low.address


def const8(value: int, signed: bool) -> Const:
    """An 8-bit immediate: -128..127 when signed, else 0..255."""
    check_range("b", value, *((-128, 127) if signed else (0, 255)))
    # sign-extended from 8 bits whatever b_is_signed; the engine reads the low byte and the sign bit of operand 1
    return Const(((value & 0xFF) ^ 0x80) - 0x80 & 0xFFFF, signed)
