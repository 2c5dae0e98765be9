"""TPU selection and logic, element by element: max, min, and, or, xor (bm1880.md 4.1, 8.2)."""
# ruff: noqa: N801

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bmcompiler.backends.bm1880.bmkernel.checks import check_format, fail, kernel_call
from bmcompiler.backends.bm1880.bmkernel.context import Bmk1880Context
from bmcompiler.backends.bm1880.bmkernel.elementwise import (
    PLANE_STRIDE,
    Const,
    Operand,
    Planes16,
    const8,
    emit,
    emit_16,
    need_planes,
)
from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.backends.bm1880.bmkernel.sync import Op
from bmcompiler.backends.bm1880.bmkernel.tensors import tensor_lmem
from bmcompiler.backends.bm1880.isa import TensorOp


@KERNEL.struct
@dataclass
class bmk1880_max_param_t:
    """max = max(a, b); one format for all."""

    max: tensor_lmem
    a: tensor_lmem
    b: tensor_lmem


@KERNEL.struct
@dataclass
class bmk1880_min_param_t:
    """min = min(a, b); one format for all."""

    min: tensor_lmem
    a: tensor_lmem
    b: tensor_lmem


@KERNEL.struct
@dataclass
class bmk1880_max_const_param_t:
    """max = max(a, b) with an 8-bit constant of a's signedness."""

    max: tensor_lmem
    a: tensor_lmem
    b: int
    b_is_signed: bool


@KERNEL.struct
@dataclass
class bmk1880_min_const_param_t:
    """min = min(a, b) with an 8-bit constant of a's signedness."""

    min: tensor_lmem
    a: tensor_lmem
    b: int
    b_is_signed: bool


@KERNEL.struct
@dataclass
class bmk1880_and_int8_param_t:
    """res = a & b, 8 bits."""

    res: tensor_lmem
    a: tensor_lmem
    b: tensor_lmem


@KERNEL.struct
@dataclass
class bmk1880_or_int8_param_t(bmk1880_and_int8_param_t):
    """res = a | b, 8 bits."""


@KERNEL.struct
@dataclass
class bmk1880_xor_int8_param_t(bmk1880_and_int8_param_t):
    """res = a ^ b, 8 bits."""


@KERNEL.struct
@dataclass
class bmk1880_and_int16_param_t(Planes16):
    """res = a & b, 16 bits."""


@KERNEL.struct
@dataclass
class bmk1880_or_int16_param_t(Planes16):
    """res = a | b, 16 bits."""


@KERNEL.struct
@dataclass
class bmk1880_xor_int16_param_t(Planes16):
    """res = a ^ b, 16 bits."""


@kernel_call
def bmk1880_tpu_max(ctx: Bmk1880Context, p: bmk1880_max_param_t) -> Op:
    """Larger of two; see `bmk1880_max_param_t`."""
    return _select(ctx, TensorOp.MAX, (Operand("max", p.max), Operand("a", p.a), Operand("b", p.b)))


@kernel_call
def bmk1880_tpu_min(ctx: Bmk1880Context, p: bmk1880_min_param_t) -> Op:
    """Smaller of two; see `bmk1880_min_param_t`."""
    return _select(ctx, TensorOp.MIN, (Operand("min", p.min), Operand("a", p.a), Operand("b", p.b)))


@kernel_call
def bmk1880_tpu_max_const(ctx: Bmk1880Context, p: bmk1880_max_const_param_t) -> Op:
    """Larger of a tensor and a constant; see `bmk1880_max_const_param_t`."""
    operands = (Operand("max", p.max), Operand("a", p.a), const8(p.b, p.b_is_signed))
    return _select(ctx, TensorOp.MAX, operands)


@kernel_call
def bmk1880_tpu_min_const(ctx: Bmk1880Context, p: bmk1880_min_const_param_t) -> Op:
    """Smaller of a tensor and a constant; see `bmk1880_min_const_param_t`."""
    operands = (Operand("min", p.min), Operand("a", p.a), const8(p.b, p.b_is_signed))
    return _select(ctx, TensorOp.MIN, operands)


def relu_as_max(ctx: Bmk1880Context, ofmap: tensor_lmem, ifmap: tensor_lmem) -> Op:
    """The chip has no ReLU of its own: it is the signed maximum with 0 (bm1880.md 4.1)."""
    return _select(ctx, TensorOp.MAX, (Operand("ofmap", ofmap), Operand("ifmap", ifmap), Const(0, True)))


def _select(ctx: Bmk1880Context, op: TensorOp, operands: tuple[Operand, Operand, Operand | Const]) -> Op:
    res, a, b = operands
    check_format(res.name, res.low, a.low.signed, f"{a.name} and result must agree")
    if isinstance(b, Operand):
        check_format(b.name, b.low, a.low.signed, f"{a.name} and {b.name} must agree")
    elif bool(b.signed) != bool(a.low.signed):
        fail("b_is_signed", bool(b.signed), f"must agree with the format of {a.name}")
    return emit(ctx, op, operands, {"res0_b_str": PLANE_STRIDE})


_LOGIC = {"opt_shift_typ": 0, "opt_res0_sign": 0, "opt_opd0_sign": 0, "opt_opd1_sign": 0}


_T = TypeVar("_T", bound=bmk1880_and_int8_param_t | Planes16)
_Logic = Callable[[Bmk1880Context, _T], Op]


def _logic_8(op: TensorOp, ctx: Bmk1880Context, p: bmk1880_and_int8_param_t) -> Op:
    fields = _LOGIC | {"res0_b_str": PLANE_STRIDE}
    return emit(ctx, op, (Operand("res", p.res), Operand("a", p.a), Operand("b", p.b)), fields)


def _logic_16(op: TensorOp, ctx: Bmk1880Context, p: Planes16) -> Op:
    need_planes(res_high=p.res_high, a_high=p.a_high, b_high=p.b_high)
    return emit_16(ctx, op, p, dict(_LOGIC))


def _bitwise(bits: int, op: TensorOp, emitted: Callable[[TensorOp, Bmk1880Context, _T], Op]) -> _Logic[_T]:
    """The call of an operation on operands of 8 or 16 bits."""

    def call(ctx: Bmk1880Context, p: _T) -> Op:
        return emitted(op, ctx, p)

    call.__name__ = call.__qualname__ = f"bmk1880_tpu_{op.name.lower()}_int{bits}"
    call.__doc__ = f"Bitwise {op.name.lower()}, {bits} bits."
    return kernel_call(call)


bmk1880_tpu_and_int8: _Logic[bmk1880_and_int8_param_t] = _bitwise(8, TensorOp.AND, _logic_8)
bmk1880_tpu_or_int8: _Logic[bmk1880_or_int8_param_t] = _bitwise(8, TensorOp.OR, _logic_8)
bmk1880_tpu_xor_int8: _Logic[bmk1880_xor_int8_param_t] = _bitwise(8, TensorOp.XOR, _logic_8)
bmk1880_tpu_and_int16: _Logic[bmk1880_and_int16_param_t] = _bitwise(16, TensorOp.AND, _logic_16)
bmk1880_tpu_or_int16: _Logic[bmk1880_or_int16_param_t] = _bitwise(16, TensorOp.OR, _logic_16)
bmk1880_tpu_xor_int16: _Logic[bmk1880_xor_int16_param_t] = _bitwise(16, TensorOp.XOR, _logic_16)
