"""TPU calls on whole 8-bit tensors: copies, channel sum, lookup, ReLU (bm1880.md 4.1, 8.2)."""
# ruff: noqa: N801

from __future__ import annotations

from dataclasses import dataclass, replace

from bmcompiler.backends.bm1880.bmkernel.checks import (
    ConstraintError,
    check_address,
    check_aligned,
    check_format,
    check_same_lane,
    check_shape,
    check_strides,
    check_tpu_tensor,
    check_unaligned,
    fail,
    kernel_call,
)
from bmcompiler.backends.bm1880.bmkernel.context import Bmk1880Context
from bmcompiler.backends.bm1880.bmkernel.elementwise import check_planes, explicit_operands, operand_group
from bmcompiler.backends.bm1880.bmkernel.logic import relu_as_max
from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.backends.bm1880.bmkernel.sync import Op
from bmcompiler.backends.bm1880.bmkernel.tensors import stride_t, tensor_lmem
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.isa import StrideCode, Task, TensorOp
from bmcompiler.errors import EncodingError

_TABLE = (1, CHIP.lanes, 16, 16)


@KERNEL.struct
@dataclass
class bmk1880_copy_param_t:
    """dst = src, bytes."""

    dst: tensor_lmem
    src: tensor_lmem


@KERNEL.struct
@dataclass
class bmk1880_copy_with_stride_param_t:
    """dst = src with strides in bytes in place of the tensors' own."""

    dst: tensor_lmem
    dst_stride: stride_t
    src: tensor_lmem
    src_stride: stride_t


@KERNEL.struct
@dataclass
class bmk1880_mdsum_param_t:
    """res (1, C, 1, 1), unaligned = per channel sum of aligned a (N, C, H, W), saturated to 8 bits.

    The 16-bit form (`res_high` given) encodes, but the reference model writes only sum mod 256 (bm1880.md 8.2).
    """

    res_high: tensor_lmem | None
    res_low: tensor_lmem
    a: tensor_lmem


@KERNEL.struct
@dataclass
class bmk1880_lut_param_t:
    """ofmap = table[lane][unsigned byte of ifmap]; table is aligned (1, 32, 16, 16)."""

    ofmap: tensor_lmem
    ifmap: tensor_lmem
    table: tensor_lmem


@KERNEL.struct
@dataclass
class bmk1880_relu_param_t:
    """ofmap = max(ifmap, 0), signed."""

    ofmap: tensor_lmem
    ifmap: tensor_lmem


_COPY = {
    "tsk_opd_num": 1,
    "opt_shift_typ": 0,
    "opt_res0_sign": 0,
    "opt_opd0_sign": 0,
}


@kernel_call
def bmk1880_tpu_copy(ctx: Bmk1880Context, p: bmk1880_copy_param_t) -> Op:
    """Copy a tensor; see `bmk1880_copy_param_t`."""
    _check_copy(p.dst, p.src)
    values = explicit_operands(TensorOp.COPY, p.dst, p.src) | operand_group("opd1", p.src) | _COPY
    return ctx.emit_tpu(values)


@kernel_call
def bmk1880_tpu_copy_with_stride(ctx: Bmk1880Context, p: bmk1880_copy_with_stride_param_t) -> Op:
    """Copy a tensor with other strides; see `bmk1880_copy_with_stride_param_t`."""
    dst = _restrided("dst", p.dst, p.dst_stride)
    src = _restrided("src", p.src, p.src_stride)
    _check_copy(dst, src)
    values = explicit_operands(TensorOp.COPY, dst, src) | _COPY
    n, c, h, w = src.dims
    values |= {"opd1_n": n, "opd1_c": c, "opd1_h": h, "opd1_w": w}
    for axis in "nchw":
        del values[f"opd2_{axis}_str"]
    return ctx.emit_tpu(values)


def _restrided(what: str, t: tensor_lmem, stride: stride_t) -> tensor_lmem:
    try:
        return replace(t, stride=stride)
    except EncodingError as error:
        raise ConstraintError(f"{what}: {error.reason}") from error


def _check_copy(dst: tensor_lmem, src: tensor_lmem) -> None:
    for what, t in (("dst", dst), ("src", src)):
        check_tpu_tensor(what, t)
        check_strides(what, t)
    if dst.shape != src.shape:
        fail("shape of dst", dst.shape, f"must be {src.shape}, that of src")


@kernel_call
def bmk1880_tpu_mdsum(ctx: Bmk1880Context, p: bmk1880_mdsum_param_t) -> Op:
    """Sum per channel; see `bmk1880_mdsum_param_t`."""
    a, low, high = p.a, p.res_low, p.res_high
    check_tpu_tensor("a", a)
    check_aligned("a", a)
    check_shape("res_low", low, (1, a.shape.c, 1, 1))
    check_unaligned("res_low", low)
    check_format("res_low", low, a.signed, "result and a must agree")
    if high is not None:
        check_planes("res", low, high)
    values = {
        "tsk_typ": Task.TENSOR,
        "tsk_eu_typ": 0,
        "tsk_opd_num": 1,
        "opt_right_shift": 0,
        "opt_relu": 0,
        "tens_mdsum": 1,
        "opt_res0_sign": a.signed,
        "opt_opd0_sign": a.signed,
        "opt_res0_int8": int(high is None),
        "short_res0_str": StrideCode.SPECIAL,
        "res0_addr": low.address,
        "res0_c": a.shape.c,
        "res0_w": 1,
        "res0_b_str": 0 if high is None else high.address - low.address,
        "opd0_addr": a.address,
        **operand_group("opd0", a),
    }
    return ctx.emit_tpu(values)


@kernel_call
def bmk1880_tpu_lut(ctx: Bmk1880Context, p: bmk1880_lut_param_t) -> Op:
    """Look every byte up in a table; see `bmk1880_lut_param_t`."""
    for what, t in (("ofmap", p.ofmap), ("ifmap", p.ifmap), ("table", p.table)):
        check_tpu_tensor(what, t)
        check_aligned(what, t)
    if p.ofmap.shape != p.ifmap.shape:
        fail("shape of ofmap", p.ofmap.shape, f"must be {p.ifmap.shape}, that of ifmap")
    check_shape("table", p.table, _TABLE)
    check_same_lane("table", p.table, "ofmap", p.ofmap)
    values = {
        "tsk_typ": Task.TENSOR,
        "tsk_eu_typ": 0,
        "tsk_opd_num": 2,
        "opt_right_shift": 0,
        "opt_relu": 0,
        "opt_shift_typ": 0,
        "opt_opd1_sign": 0,
        "tens_lookup": 1,
        "short_opd2_str": StrideCode.EXPLICIT,
        "res0_addr": p.ofmap.address,
        "opd0_addr": p.ifmap.address,
        "opd1_addr": p.table.offset,
        **operand_group("res0", p.ofmap),
        **operand_group("opd0", p.ifmap),
        **operand_group("opd1", p.table),
        **_UNIT_STRIDES,
    }
    return ctx.emit_tpu(values)


_UNIT_STRIDES = {f"{role}_{axis}_str": 1 for role in ("res0", "opd0", "opd1", "opd2") for axis in "nchw"}


@kernel_call
def bmk1880_tpu_relu(ctx: Bmk1880Context, p: bmk1880_relu_param_t) -> Op:
    """Replace negative values by 0; see `bmk1880_relu_param_t`."""
    check_format("ifmap", p.ifmap, 1, "the comparison with 0 is signed")
    check_address("ofmap", p.ofmap)
    check_address("ifmap", p.ifmap)
    return relu_as_max(ctx, p.ofmap, p.ifmap)
