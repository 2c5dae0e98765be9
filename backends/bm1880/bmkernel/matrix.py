"""TPU matrix products (bm1880.md 2.3, 4.2, 8.2)."""
# ruff: noqa: N801

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.backends.bm1880.bmkernel.checks import (
    MAX_LSHIFT,
    MAX_RSHIFT,
    MAX_TPU_DIM,
    RESULT_RULE,
    check_aligned,
    check_format,
    check_range,
    check_same_lane,
    check_shape,
    check_tpu_tensor,
    fail,
    kernel_call,
)
from bmcompiler.backends.bm1880.bmkernel.context import Bmk1880Context
from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.backends.bm1880.bmkernel.sync import Op
from bmcompiler.backends.bm1880.bmkernel.tensors import matrix_dims, tensor_lmem
from bmcompiler.backends.bm1880.isa import CTRL_NULL, CTRL_RA, CTRL_RELU, Task

_LEFT_2 = (1, 256, 1, 256)
_RIGHT_2 = (256, 16, 1, 16)


@KERNEL.struct
@dataclass(kw_only=True)
class bmk1880_matrix_mac_param_t:
    """res (R, C) = left (R, K) x right (K, C), all aligned matrices.

    acc = left x right + bias; CTRL_RA adds old 16-bit res << lshift_width, CTRL_RELU clips at 0; rounded right shift;
    saturation to 8 or 16 bits. A 16-bit old or new result is the matrix (2R, C): rows of low bytes, rows of high bytes.
    bias is (2, C), low row and high row.
    """

    res: tensor_lmem
    left: tensor_lmem
    right: tensor_lmem
    bias: tensor_lmem | None = None
    lshift_width: int = 0
    rshift_width: int = 0
    res_is_int8: bool = True
    ctrls: int = CTRL_NULL


@KERNEL.struct
@dataclass(kw_only=True)
class bmk1880_matrix_mac_2_param_t:
    """256 x 256 product of left (1, 256, 1, 256) and right (256, 16, 1, 16), transposed, bytes folded."""

    res: tensor_lmem
    left: tensor_lmem
    right: tensor_lmem


@kernel_call
def bmk1880_tpu_matrix_mac(ctx: Bmk1880Context, p: bmk1880_matrix_mac_param_t) -> Op:
    """Matrix product; see `bmk1880_matrix_mac_param_t`."""
    _check_matrices(p)
    relu, accumulate = bool(p.ctrls & CTRL_RELU), bool(p.ctrls & CTRL_RA)
    if not (relu or p.left.signed | p.right.signed):
        fail("ctrls", hex(p.ctrls), "must be CTRL_RELU when left and right are both unsigned")
    rows, depth, cols = p.left.shape.row, p.left.shape.col, p.right.shape.col
    _, left_c, _, left_w = p.left.dims
    _, cols_c, _, cols_w = matrix_dims(1, cols)
    values = {
        "tsk_typ": Task.MATRIX_MAC,
        "tsk_opd_num": 2,
        "opt_right_shift": p.rshift_width,
        "opt_left_shift": p.lshift_width,
        "opt_relu": int(relu),
        "opt_res_add": int(accumulate),
        "opt_res0_sign": int(not relu),
        "opt_opd0_sign": p.left.signed,
        "opt_opd1_sign": p.right.signed,
        "opt_res0_int8": int(p.res_is_int8),
        "res0_addr": p.res.address,
        "res0_n": rows,
        "res0_c": cols_c,
        "res0_h": 1,
        "res0_w": cols_w,
        "opd0_addr": p.left.address,
        "opd0_n": rows,
        "opd0_c": left_c,
        "opd0_h": 1,
        "opd0_w": left_w,
        "opd1_addr": p.right.offset,
        "opd1_n": depth,
        "opd1_c": cols_c,
        "opd1_h": 1,
        "opd1_w": depth - (left_c - 1) * left_w,
    }
    if p.bias is not None:
        values |= {
            "tsk_opd_num": 3,
            "opd2_addr": p.bias.offset,
            "opd2_n": 1,
            "opd2_c": cols_c,
            "opd2_h": 1,
            "opd2_w": cols_w,
        }
    return ctx.emit_tpu(values)


def _check_matrices(p: bmk1880_matrix_mac_param_t) -> None:
    if p.ctrls not in (CTRL_NULL, CTRL_RA, CTRL_RELU):
        fail("ctrls", hex(p.ctrls), "must be CTRL_NULL, CTRL_RA or CTRL_RELU")
    check_range("lshift_width", p.lshift_width, 0, MAX_LSHIFT)
    check_range("rshift_width", p.rshift_width, 0, MAX_RSHIFT)
    rows, depth, cols = p.left.shape.row, p.left.shape.col, p.right.shape.col
    wide = p.ctrls == CTRL_RA or not p.res_is_int8
    _check_matrix("left", p.left, (rows, depth))
    _check_matrix("right", p.right, (depth, cols))
    _check_matrix("res", p.res, (rows * (2 if wide else 1), cols))
    check_same_lane("right", p.right, "res", p.res)
    if p.bias is not None:
        _check_matrix("bias", p.bias, (2, cols))
        check_same_lane("bias", p.bias, "res", p.res)


def _check_matrix(what: str, t: tensor_lmem, expected: tuple[int, int]) -> None:
    if not t.is_matrix:
        fail(what, f"a tensor {t.shape}", "must be a matrix (shape_t2)")
    if (t.shape.row, t.shape.col) != expected:
        fail(f"shape of {what}", t.shape, f"must be {expected}")
    if t.dims[0] > MAX_TPU_DIM or t.dims[1] > MAX_TPU_DIM:
        fail(f"shape of {what}", t.shape, f"must have at most {MAX_TPU_DIM} rows and chunks of columns")
    check_aligned(what, t)


@kernel_call
def bmk1880_tpu_matrix_mac_2(ctx: Bmk1880Context, p: bmk1880_matrix_mac_2_param_t) -> Op:
    """The matrix-hash product; see `bmk1880_matrix_mac_2_param_t` and bm1880.md 8.2."""
    for what, t, dims in (("res", p.res, _LEFT_2), ("left", p.left, _LEFT_2), ("right", p.right, _RIGHT_2)):
        check_tpu_tensor(what, t)
        check_shape(what, t, dims)
        check_aligned(what, t)
    check_same_lane("right", p.right, "res", p.res)
    check_format("res", p.res, p.left.signed | p.right.signed, RESULT_RULE)
    values = {
        "tsk_typ": Task.MATRIX_MAC_2,
        "tsk_opd_num": 2,
        "opt_right_shift": 0,
        "opt_relu": 0,
        "opt_shift_typ": 0,
        "opt_res0_sign": p.res.signed,
        "opt_opd0_sign": p.left.signed,
        "opt_opd1_sign": p.right.signed,
        "res0_addr": p.res.address,
        "opd0_addr": p.left.address,
        "opd1_addr": p.right.offset,
    }
    for role, (n, c, h, w) in (("res0", _LEFT_2), ("opd0", _LEFT_2), ("opd1", _RIGHT_2)):
        values |= {f"{role}_n": n, f"{role}_c": c, f"{role}_h": h, f"{role}_w": w}
    return ctx.emit_tpu(values)
