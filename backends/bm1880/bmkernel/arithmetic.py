"""TPU arithmetic, element by element: mul, mac, add, sub, arith_shift (bm1880.md 4.1, 8.2)."""
# ruff: noqa: N801

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.backends.bm1880.bmkernel.checks import (
    MAX_LSHIFT,
    MAX_MAC_RSHIFT,
    MAX_RSHIFT,
    RESULT_RULE,
    check_format,
    check_range,
    fail,
    kernel_call,
)
from bmcompiler.backends.bm1880.bmkernel.context import Bmk1880Context
from bmcompiler.backends.bm1880.bmkernel.elementwise import Const, Operand, Planes16, const8, emit, emit_16, need_planes
from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.backends.bm1880.bmkernel.sync import Op
from bmcompiler.backends.bm1880.bmkernel.tensors import tensor_lmem
from bmcompiler.backends.bm1880.isa import TensorOp


@KERNEL.struct
@dataclass
class bmk1880_mul_param_t:
    """res = sat(round(a * b >> rshift_width)); 16-bit result when `res_high` is given."""

    res_high: tensor_lmem | None
    res_low: tensor_lmem
    a: tensor_lmem
    b: tensor_lmem
    rshift_width: int


@KERNEL.struct
@dataclass
class bmk1880_mul_const_param_t:
    """`bmk1880_mul_param_t` with an 8-bit constant (-128..127 signed, 0..255 unsigned)."""

    res_high: tensor_lmem | None
    res_low: tensor_lmem
    a: tensor_lmem
    b: int
    b_is_signed: bool
    rshift_width: int


@KERNEL.struct
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


@KERNEL.struct
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


@KERNEL.struct
@dataclass
class bmk1880_add_param_t(Planes16):
    """res = sat(a + b), 16-bit inputs; 16-bit result when `res_high` is given."""


@KERNEL.struct
@dataclass
class bmk1880_sub_param_t(Planes16):
    """res = sat(a - b), signed."""


@KERNEL.struct
@dataclass
class bmk1880_add_const_param_t:
    """res = sat(a + b) with a 16-bit constant (-32768..32767 signed, 0..65535 unsigned)."""

    res_high: tensor_lmem | None
    res_low: tensor_lmem
    a_high: tensor_lmem
    a_low: tensor_lmem
    b: int
    b_is_signed: bool


@KERNEL.struct
@dataclass
class bmk1880_arith_shift_param_t:
    """16-bit signed a shifted LEFT by positive bits (wrapping), right with floor by negative ones; bits are -16..16.

    The vendor's text says the opposite direction; the measured one wins (bm1880.md 8.2).
    """

    res_high: tensor_lmem
    res_low: tensor_lmem
    a_high: tensor_lmem
    a_low: tensor_lmem
    bits: tensor_lmem


@kernel_call
def bmk1880_tpu_mul(ctx: Bmk1880Context, p: bmk1880_mul_param_t) -> Op:
    """Multiply; see `bmk1880_mul_param_t`."""
    return _mul(ctx, p, Operand("b", p.b), p.b.signed)


@kernel_call
def bmk1880_tpu_mul_const(ctx: Bmk1880Context, p: bmk1880_mul_const_param_t) -> Op:
    """Multiply by a constant; see `bmk1880_mul_const_param_t`."""
    return _mul(ctx, p, const8(p.b, p.b_is_signed), int(p.b_is_signed))


def _mul(
    ctx: Bmk1880Context,
    p: bmk1880_mul_param_t | bmk1880_mul_const_param_t,
    b: Operand | Const,
    b_signed: int,
) -> Op:
    check_range("rshift_width", p.rshift_width, 0, MAX_RSHIFT)
    signed = p.a.signed | b_signed
    if p.rshift_width and not signed:
        fail("rshift_width", p.rshift_width, "must be 0 when both factors are unsigned")
    check_format("res_low", p.res_low, signed, RESULT_RULE)
    operands = (Operand("res", p.res_low, p.res_high), Operand("a", p.a), b)
    return emit(ctx, TensorOp.MUL, operands, {"opt_right_shift": p.rshift_width})


@kernel_call
def bmk1880_tpu_mac(ctx: Bmk1880Context, p: bmk1880_mac_param_t) -> Op:
    """Multiply and accumulate; see `bmk1880_mac_param_t`."""
    return _mac(ctx, p, Operand("b", p.b), p.b.signed)


@kernel_call
def bmk1880_tpu_mac_const(ctx: Bmk1880Context, p: bmk1880_mac_const_param_t) -> Op:
    """Multiply by a constant and accumulate; see `bmk1880_mac_const_param_t`."""
    return _mac(ctx, p, const8(p.b, p.b_is_signed), int(p.b_is_signed))


def _mac(
    ctx: Bmk1880Context,
    p: bmk1880_mac_param_t | bmk1880_mac_const_param_t,
    b: Operand | Const,
    b_signed: int,
) -> Op:
    check_range("rshift_width", p.rshift_width, 0, MAX_MAC_RSHIFT)
    check_range("lshift_width", p.lshift_width, 0, MAX_LSHIFT)
    need_planes(res_high=p.res_high)
    check_format("res_low", p.res_low, p.a.signed | b_signed, RESULT_RULE)
    fields = {
        "opt_right_shift": p.rshift_width,
        "opt_left_shift": p.lshift_width,
        "opt_shift_typ": p.res_low.signed,
        "opt_res_add": 1,
        "opt_res0_int8": int(p.res_is_int8),
    }
    operands = (Operand("res", p.res_low, p.res_high), Operand("a", p.a), b)
    return emit(ctx, TensorOp.MAC, operands, fields)


@kernel_call
def bmk1880_tpu_add(ctx: Bmk1880Context, p: bmk1880_add_param_t) -> Op:
    """Add; see `bmk1880_add_param_t`."""
    need_planes(a_high=p.a_high, b_high=p.b_high)
    check_format("res_low", p.res_low, p.a_low.signed | p.b_low.signed, RESULT_RULE)
    return emit_16(ctx, TensorOp.ADD, p, {})


@kernel_call
def bmk1880_tpu_sub(ctx: Bmk1880Context, p: bmk1880_sub_param_t) -> Op:
    """Subtract; see `bmk1880_sub_param_t`."""
    need_planes(a_high=p.a_high, b_high=p.b_high)
    check_format("res_low", p.res_low, 1, "a difference is signed")
    if not p.a_low.signed | p.b_low.signed:
        fail("format of a_low and b_low", "FMT_U8", "at least one must be FMT_I8")
    return emit_16(ctx, TensorOp.SUB, p, {})


@kernel_call
def bmk1880_tpu_add_const(ctx: Bmk1880Context, p: bmk1880_add_const_param_t) -> Op:
    """Add a constant; see `bmk1880_add_const_param_t`."""
    need_planes(a_high=p.a_high)
    low, high = (-32768, 32767) if p.b_is_signed else (0, 65535)
    check_range("b", p.b, low, high)
    check_format("res_low", p.res_low, p.a_low.signed | int(p.b_is_signed), RESULT_RULE)
    res, a = Operand("res", p.res_low, p.res_high), Operand("a", p.a_low, p.a_high)
    operands = (res, a, Const(p.b & 0xFFFF, p.b_is_signed))
    return emit(ctx, TensorOp.ADD, operands, {"opt_opd1_int8": 0})


@kernel_call
def bmk1880_tpu_arith_shift(ctx: Bmk1880Context, p: bmk1880_arith_shift_param_t) -> Op:
    """Shift by per-element amounts; see `bmk1880_arith_shift_param_t`."""
    need_planes(res_high=p.res_high, a_high=p.a_high)
    for what, t in (("res_low", p.res_low), ("a_low", p.a_low), ("bits", p.bits)):
        check_format(what, t, 1, "arithmetic shifts are signed")
    res, a = Operand("res", p.res_low, p.res_high), Operand("a", p.a_low, p.a_high)
    return emit(ctx, TensorOp.SHIFT, (res, a, Operand("bits", p.bits)), {"opt_rshift_typ": 0})
