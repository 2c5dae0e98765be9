"""TPU arithmetic and logic, element by element, on 8- and 16-bit tensors (bm1880.md 4.1, 8.2).

A 16-bit operand is two 8-bit tensors of one shape and layout: the high plane lies a multiple of 16 bytes after the low.
"""
# ruff: noqa: N801

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bmcompiler.backends.bm1880.bmkernel.checks import (
    MAX_LSHIFT,
    MAX_MAC_RSHIFT,
    MAX_RSHIFT,
    MAX_STRIDE,
    check_format,
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

_RESULT_RULE = "a result is unsigned if and only if all inputs are"
PLANE_STRIDE = 16  # what 8-bit operands carry in their unused plane-stride field


@dataclass
class bmk1880_mul_param_t:
    """res = sat(round(a * b >> rshift_width)); 16-bit result when `res_high` is given."""

    res_high: tensor_lmem | None
    res_low: tensor_lmem
    a: tensor_lmem
    b: tensor_lmem
    rshift_width: int


@dataclass
class bmk1880_mul_const_param_t:
    """`bmk1880_mul_param_t` with an 8-bit constant (-128..127 signed, 0..255 unsigned)."""

    res_high: tensor_lmem | None
    res_low: tensor_lmem
    a: tensor_lmem
    b: int
    b_is_signed: bool
    rshift_width: int


@dataclass
class bmk1880_mac_param_t:
    """res = sat(round(a * b + (res << lshift_width) >> rshift_width)); `res_is_int8`: 8 bits, into `res_low` only."""

    res_high: tensor_lmem
    res_low: tensor_lmem
    res_is_int8: bool
    a: tensor_lmem
    b: tensor_lmem
    lshift_width: int
    rshift_width: int


@dataclass
class bmk1880_mac_const_param_t:
    """`bmk1880_mac_param_t` with an 8-bit constant."""

    res_high: tensor_lmem
    res_low: tensor_lmem
    res_is_int8: bool
    a: tensor_lmem
    b: int
    b_is_signed: bool
    lshift_width: int
    rshift_width: int


@dataclass
class bmk1880_add_param_t:
    """res = sat(a + b), 16-bit inputs; 16-bit result when `res_high` is given."""

    res_high: tensor_lmem | None
    res_low: tensor_lmem
    a_high: tensor_lmem
    a_low: tensor_lmem
    b_high: tensor_lmem
    b_low: tensor_lmem


@dataclass
class bmk1880_sub_param_t(bmk1880_add_param_t):
    """res = sat(a - b), signed."""


@dataclass
class bmk1880_add_const_param_t:
    """res = sat(a + b) with a 16-bit constant (-32768..32767 signed, 0..65535 unsigned)."""

    res_high: tensor_lmem | None
    res_low: tensor_lmem
    a_high: tensor_lmem
    a_low: tensor_lmem
    b: int
    b_is_signed: bool


@dataclass
class bmk1880_max_param_t:
    """max = max(a, b); one format for all."""

    max: tensor_lmem
    a: tensor_lmem
    b: tensor_lmem


@dataclass
class bmk1880_min_param_t:
    """min = min(a, b); one format for all."""

    min: tensor_lmem
    a: tensor_lmem
    b: tensor_lmem


@dataclass
class bmk1880_max_const_param_t:
    """max = max(a, b) with an 8-bit constant of a's signedness."""

    max: tensor_lmem
    a: tensor_lmem
    b: int
    b_is_signed: bool


@dataclass
class bmk1880_min_const_param_t:
    """min = min(a, b) with an 8-bit constant of a's signedness."""

    min: tensor_lmem
    a: tensor_lmem
    b: int
    b_is_signed: bool


@dataclass
class bmk1880_arith_shift_param_t:
    """16-bit signed a shifted LEFT by positive bits (wrapping), right with floor by negative ones; bits are -16..16.

    The seed text says the opposite direction; the measured one wins (bm1880.md 8.2).
    """

    res_high: tensor_lmem
    res_low: tensor_lmem
    a_high: tensor_lmem
    a_low: tensor_lmem
    bits: tensor_lmem


@dataclass
class bmk1880_and_int8_param_t:
    """res = a & b, 8 bits."""

    res: tensor_lmem
    a: tensor_lmem
    b: tensor_lmem


@dataclass
class bmk1880_or_int8_param_t(bmk1880_and_int8_param_t):
    """res = a | b, 8 bits."""


@dataclass
class bmk1880_xor_int8_param_t(bmk1880_and_int8_param_t):
    """res = a ^ b, 8 bits."""


@dataclass
class bmk1880_and_int16_param_t:
    """res = a & b, 16 bits."""

    res_high: tensor_lmem
    res_low: tensor_lmem
    a_high: tensor_lmem
    a_low: tensor_lmem
    b_high: tensor_lmem
    b_low: tensor_lmem


@dataclass
class bmk1880_or_int16_param_t(bmk1880_and_int16_param_t):
    """res = a | b, 16 bits."""


@dataclass
class bmk1880_xor_int16_param_t(bmk1880_and_int16_param_t):
    """res = a ^ b, 16 bits."""


class _Operand(NamedTuple):
    """A tensor parameter: `name` in messages, its only or low plane, its high plane."""

    name: str
    low: tensor_lmem
    high: tensor_lmem | None = None


class _Const(NamedTuple):
    """An immediate operand: the 16 bits in the address field, and its signedness."""

    bits: int
    signed: bool


def bmk1880_tpu_mul(ctx: Bmk1880Context, p: bmk1880_mul_param_t) -> Op:
    """Multiply; see `bmk1880_mul_param_t`."""
    return _mul(ctx, "bmk1880_tpu_mul", p, _Operand("b", p.b), p.b.signed)


def bmk1880_tpu_mul_const(ctx: Bmk1880Context, p: bmk1880_mul_const_param_t) -> Op:
    """Multiply by a constant; see `bmk1880_mul_const_param_t`."""
    call = "bmk1880_tpu_mul_const"
    return _mul(ctx, call, p, _const8(call, p.b, p.b_is_signed), int(p.b_is_signed))


def _mul(
    ctx: Bmk1880Context,
    call: str,
    p: bmk1880_mul_param_t | bmk1880_mul_const_param_t,
    b: _Operand | _Const,
    b_signed: int,
) -> Op:
    check_range(call, "rshift_width", p.rshift_width, 0, MAX_RSHIFT)
    signed = p.a.signed | b_signed
    if p.rshift_width and not signed:
        fail(
            call, "rshift_width", p.rshift_width, "must be 0 when both factors are unsigned: the chip shifts as signed"
        )
    check_format(call, "res_low", p.res_low, signed, _RESULT_RULE)
    return _emit(
        ctx,
        call,
        TensorOp.MUL,
        _Operand("res", p.res_low, p.res_high),
        _Operand("a", p.a),
        b,
        {"opt_right_shift": p.rshift_width, "opt_opd1_sign": b_signed},
    )


def bmk1880_tpu_mac(ctx: Bmk1880Context, p: bmk1880_mac_param_t) -> Op:
    """Multiply and accumulate; see `bmk1880_mac_param_t`."""
    return _mac(ctx, "bmk1880_tpu_mac", p, _Operand("b", p.b), p.b.signed)


def bmk1880_tpu_mac_const(ctx: Bmk1880Context, p: bmk1880_mac_const_param_t) -> Op:
    """Multiply by a constant and accumulate; see `bmk1880_mac_const_param_t`."""
    call = "bmk1880_tpu_mac_const"
    return _mac(ctx, call, p, _const8(call, p.b, p.b_is_signed), int(p.b_is_signed))


def _mac(
    ctx: Bmk1880Context,
    call: str,
    p: bmk1880_mac_param_t | bmk1880_mac_const_param_t,
    b: _Operand | _Const,
    b_signed: int,
) -> Op:
    check_range(call, "rshift_width", p.rshift_width, 0, MAX_MAC_RSHIFT)
    check_range(call, "lshift_width", p.lshift_width, 0, MAX_LSHIFT)
    _need_planes(call, res_high=p.res_high)
    check_format(call, "res_low", p.res_low, p.a.signed | b_signed, _RESULT_RULE)
    fields = {
        "opt_right_shift": p.rshift_width,
        "opt_left_shift": p.lshift_width,
        "opt_shift_typ": p.res_low.signed,
        "opt_res_add": 1,
        "opt_opd1_sign": b_signed,
        "opt_res0_int8": int(p.res_is_int8),
    }
    return _emit(ctx, call, TensorOp.MAC, _Operand("res", p.res_low, p.res_high), _Operand("a", p.a), b, fields)


def bmk1880_tpu_add(ctx: Bmk1880Context, p: bmk1880_add_param_t) -> Op:
    """Add; see `bmk1880_add_param_t`."""
    call = "bmk1880_tpu_add"
    _need_planes(call, a_high=p.a_high, b_high=p.b_high)
    check_format(call, "res_low", p.res_low, p.a_low.signed | p.b_low.signed, _RESULT_RULE)
    return _emit_16(ctx, call, TensorOp.ADD, p, {"opt_opd1_sign": p.b_low.signed})


def bmk1880_tpu_sub(ctx: Bmk1880Context, p: bmk1880_sub_param_t) -> Op:
    """Subtract; see `bmk1880_sub_param_t`."""
    call = "bmk1880_tpu_sub"
    _need_planes(call, a_high=p.a_high, b_high=p.b_high)
    check_format(call, "res_low", p.res_low, 1, "a difference is signed")
    if not p.a_low.signed | p.b_low.signed:
        fail(call, "format of a_low and b_low", "FMT_U8", "at least one must be FMT_I8")
    return _emit_16(ctx, call, TensorOp.SUB, p, {"opt_opd1_sign": p.b_low.signed})


def bmk1880_tpu_add_const(ctx: Bmk1880Context, p: bmk1880_add_const_param_t) -> Op:
    """Add a constant; see `bmk1880_add_const_param_t`."""
    call = "bmk1880_tpu_add_const"
    _need_planes(call, a_high=p.a_high)
    low, high = (-32768, 32767) if p.b_is_signed else (0, 65535)
    check_range(call, "b", p.b, low, high)
    check_format(call, "res_low", p.res_low, p.a_low.signed | int(p.b_is_signed), _RESULT_RULE)
    return _emit(
        ctx,
        call,
        TensorOp.ADD,
        _Operand("res", p.res_low, p.res_high),
        _Operand("a", p.a_low, p.a_high),
        _Const(p.b & 0xFFFF, p.b_is_signed),
        {"opt_opd1_int8": 0},
    )


def bmk1880_tpu_max(ctx: Bmk1880Context, p: bmk1880_max_param_t) -> Op:
    """Larger of two; see `bmk1880_max_param_t`."""
    return _select(ctx, "bmk1880_tpu_max", TensorOp.MAX, _Operand("max", p.max), p.a, _Operand("b", p.b))


def bmk1880_tpu_min(ctx: Bmk1880Context, p: bmk1880_min_param_t) -> Op:
    """Smaller of two; see `bmk1880_min_param_t`."""
    return _select(ctx, "bmk1880_tpu_min", TensorOp.MIN, _Operand("min", p.min), p.a, _Operand("b", p.b))


def bmk1880_tpu_max_const(ctx: Bmk1880Context, p: bmk1880_max_const_param_t) -> Op:
    """Larger of a tensor and a constant; see `bmk1880_max_const_param_t`."""
    call = "bmk1880_tpu_max_const"
    return _select(ctx, call, TensorOp.MAX, _Operand("max", p.max), p.a, _const8(call, p.b, p.b_is_signed))


def bmk1880_tpu_min_const(ctx: Bmk1880Context, p: bmk1880_min_const_param_t) -> Op:
    """Smaller of a tensor and a constant; see `bmk1880_min_const_param_t`."""
    call = "bmk1880_tpu_min_const"
    return _select(ctx, call, TensorOp.MIN, _Operand("min", p.min), p.a, _const8(call, p.b, p.b_is_signed))


def relu_as_max(ctx: Bmk1880Context, call: str, ofmap: tensor_lmem, ifmap: tensor_lmem) -> Op:
    """The chip has no ReLU of its own: it is the signed maximum with 0 (bm1880.md 4.1)."""
    return _select(ctx, call, TensorOp.MAX, _Operand("ofmap", ofmap), ifmap, _Const(0, True), a_name="ifmap")


def _select(
    ctx: Bmk1880Context,
    call: str,
    op: TensorOp,
    res: _Operand,
    a: tensor_lmem,
    b: _Operand | _Const,
    a_name: str = "a",
) -> Op:
    check_format(call, res.name, res.low, a.signed, f"{a_name} and result must agree")
    if isinstance(b, _Operand):
        check_format(call, b.name, b.low, a.signed, f"{a_name} and {b.name} must agree")
    elif bool(b.signed) != bool(a.signed):
        fail(call, "b_is_signed", bool(b.signed), f"must agree with the format of {a_name}")
    fields = {"opt_opd1_sign": a.signed, "res0_b_str": PLANE_STRIDE}
    return _emit(ctx, call, op, res, _Operand(a_name, a), b, fields)


def bmk1880_tpu_arith_shift(ctx: Bmk1880Context, p: bmk1880_arith_shift_param_t) -> Op:
    """Shift by per-element amounts; see `bmk1880_arith_shift_param_t`."""
    call = "bmk1880_tpu_arith_shift"
    _need_planes(call, res_high=p.res_high, a_high=p.a_high)
    for what, t in (("res_low", p.res_low), ("a_low", p.a_low), ("bits", p.bits)):
        check_format(call, what, t, 1, "arithmetic shifts are signed")
    res, a = _Operand("res", p.res_low, p.res_high), _Operand("a", p.a_low, p.a_high)
    return _emit(ctx, call, TensorOp.SHIFT, res, a, _Operand("bits", p.bits), {"opt_rshift_typ": 0})


def bmk1880_tpu_and_int8(ctx: Bmk1880Context, p: bmk1880_and_int8_param_t) -> Op:
    """Bitwise and, 8 bits."""
    return _logic_8(ctx, "bmk1880_tpu_and_int8", TensorOp.AND, p)


def bmk1880_tpu_or_int8(ctx: Bmk1880Context, p: bmk1880_or_int8_param_t) -> Op:
    """Bitwise or, 8 bits."""
    return _logic_8(ctx, "bmk1880_tpu_or_int8", TensorOp.OR, p)


def bmk1880_tpu_xor_int8(ctx: Bmk1880Context, p: bmk1880_xor_int8_param_t) -> Op:
    """Bitwise exclusive or, 8 bits."""
    return _logic_8(ctx, "bmk1880_tpu_xor_int8", TensorOp.XOR, p)


def bmk1880_tpu_and_int16(ctx: Bmk1880Context, p: bmk1880_and_int16_param_t) -> Op:
    """Bitwise and, 16 bits."""
    return _logic_16(ctx, "bmk1880_tpu_and_int16", TensorOp.AND, p)


def bmk1880_tpu_or_int16(ctx: Bmk1880Context, p: bmk1880_or_int16_param_t) -> Op:
    """Bitwise or, 16 bits."""
    return _logic_16(ctx, "bmk1880_tpu_or_int16", TensorOp.OR, p)


def bmk1880_tpu_xor_int16(ctx: Bmk1880Context, p: bmk1880_xor_int16_param_t) -> Op:
    """Bitwise exclusive or, 16 bits."""
    return _logic_16(ctx, "bmk1880_tpu_xor_int16", TensorOp.XOR, p)


_LOGIC = {"opt_shift_typ": 0, "opt_res0_sign": 0, "opt_opd0_sign": 0, "opt_opd1_sign": 0}


def _logic_8(ctx: Bmk1880Context, call: str, op: TensorOp, p: bmk1880_and_int8_param_t) -> Op:
    fields = _LOGIC | {"res0_b_str": PLANE_STRIDE}
    return _emit(ctx, call, op, _Operand("res", p.res), _Operand("a", p.a), _Operand("b", p.b), fields)


def _logic_16(ctx: Bmk1880Context, call: str, op: TensorOp, p: bmk1880_and_int16_param_t) -> Op:
    _need_planes(call, res_high=p.res_high, a_high=p.a_high, b_high=p.b_high)
    return _emit_16(ctx, call, op, p, dict(_LOGIC))


def _emit_16(
    ctx: Bmk1880Context,
    call: str,
    op: TensorOp,
    p: bmk1880_add_param_t | bmk1880_and_int16_param_t,
    fields: dict[str, int],
) -> Op:
    res = _Operand("res", p.res_low, p.res_high)
    return _emit(ctx, call, op, res, _Operand("a", p.a_low, p.a_high), _Operand("b", p.b_low, p.b_high), fields)


def _emit(
    ctx: Bmk1880Context,
    call: str,
    op: TensorOp,
    res: _Operand,
    a: _Operand,
    b: _Operand | _Const,
    fields: dict[str, int],
) -> Op:
    """Check the operands and emit; `fields` override what follows from the operands."""
    for operand in (res, a, b) if isinstance(b, _Operand) else (res, a):
        _check_operand(call, operand, res.low)
    values = explicit_operands(op, res.low, a.low)
    values |= {
        "opt_res0_sign": res.low.signed,
        "opt_opd0_sign": a.low.signed,
        "opt_res0_int8": int(res.high is None),
        "opt_opd0_int8": int(a.high is None),
        "res0_b_str": _plane_distance(res, 0),
        "opd0_b_str": _plane_distance(a, PLANE_STRIDE),
    }
    if isinstance(b, _Const):
        values |= {"opt_opd1_const": 1, "opd1_addr": b.bits, "opt_opd1_sign": int(b.signed)}
        values |= operand_group("opd1", a.low)
    else:
        check_same_lane(call, b.name, b.low, res.name, res.low)
        values |= {"opd1_addr": b.low.offset, "opt_opd1_int8": int(b.high is None)}
        values |= operand_group("opd1", b.low)
        values["opd1_b_str"] = _plane_distance(b, PLANE_STRIDE)
    return ctx.emit_tpu(call, values | fields)


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


def _check_operand(call: str, operand: _Operand, like: tensor_lmem) -> None:
    name, low, high = operand
    check_tpu_tensor(call, name, low)
    check_strides(call, name, low)
    if low.shape != like.shape:
        fail(call, f"shape of {name}", low.shape, f"must be {like.shape}, that of the result")
    if high is not None:
        check_planes(call, name, low, high)


def check_planes(call: str, name: str, low: tensor_lmem, high: tensor_lmem) -> None:
    """A 16-bit operand: equal planes, the high one a multiple of 16 bytes after the low one in the same lane."""
    check_tpu_tensor(call, f"{name}_high", high)
    if high.shape != low.shape or high.strides != low.strides or high.fmt != low.fmt:
        fail(call, f"{name}_high", high.shape, f"must have the shape {low.shape}, layout and format of {name}_low")
    distance = high.address - low.address
    if distance <= 0 or distance % CHIP.alignment or distance > MAX_STRIDE or high.lane != low.lane:
        fail(
            call,
            f"address of {name}_high",
            f"{distance} after {name}_low",
            f"must be a positive multiple of {CHIP.alignment}, in the same lane",
        )


def _need_planes(call: str, **planes: tensor_lmem | None) -> None:
    for name, plane in planes.items():
        if plane is None:
            fail(call, name, "None", "the operand has 16 bits and needs its high plane")


def _plane_distance(operand: _Operand, without: int) -> int:
    return without if operand.high is None else operand.high.address - operand.low.address


def _const8(call: str, value: int, signed: bool) -> _Const:
    check_range(call, "b", value, *((-128, 127) if signed else (0, 255)))
    # sign-extended from 8 bits whatever b_is_signed; the engine reads the low byte and the sign bit of operand 1
    return _Const(((value & 0xFF) ^ 0x80) - 0x80 & 0xFFFF, signed)
