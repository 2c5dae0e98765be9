"""TPU calls that slide a window: convolution, Winograd, depthwise convolution, pooling (bm1880.md 4.1, 8.2)."""
# ruff: noqa: N801

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bmcompiler.backends.bm1880.bmkernel.checks import (
    MAX_RSHIFT,
    check_aligned,
    check_format,
    check_range,
    check_same_lane,
    check_shape,
    check_tpu_tensor,
    check_unaligned,
    fail,
    kernel_call,
)
from bmcompiler.backends.bm1880.bmkernel.context import Bmk1880Context
from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.backends.bm1880.bmkernel.sync import Op
from bmcompiler.backends.bm1880.bmkernel.tensors import tensor_lmem
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.isa import StrideCode, Task, WindowOp

_MAX_4_BIT = 15
_MAX_DILATION = 16
_MAX_WINOGRAD_TILES = 4095
_WINOGRAD_KERNELS = ((4, 4), (1, 16))
_MINUS_128 = 0x80


@dataclass(kw_only=True)
class _Maps:
    ofmap: tensor_lmem
    ifmap: tensor_lmem


@dataclass(kw_only=True)
class _Filter(_Maps):
    weight: tensor_lmem
    bias: tensor_lmem | None = None


@dataclass(kw_only=True)
class _Pool(_Maps):
    kh: int
    kw: int


@dataclass(kw_only=True)
class _Window(_Maps):
    """What all parameter blocks here have in common."""

    ins_h: int = 0
    ins_last_h: int = 0
    ins_w: int = 0
    ins_last_w: int = 0
    pad_top: int = 0
    pad_bottom: int = 0
    pad_left: int = 0
    pad_right: int = 0


@dataclass(kw_only=True)
class _Strided(_Window):
    stride_h: int = 1
    stride_w: int = 1


@KERNEL.struct
@dataclass(kw_only=True)
class bmk1880_conv_param_t(_Strided, _Filter):
    """Convolution of aligned ifmap (N, IC, H, W) with weight (IC, OC, KH, KW) into aligned ofmap (N, OC, OH, OW).

    out H = (H' + pads - ((KH - 1) * dilation_h + 1)) // stride_h + 1 with H' = (H - 1) * (ins_h + 1) + 1 + ins_last_h;
    bias (2, OC, 1, 1) is added, then ReLU, rounded right shift, saturation (unsigned after ReLU, else signed).
    """

    dilation_h: int = 1
    dilation_w: int = 1
    relu_enable: bool = False
    rshift_width: int = 0


@KERNEL.struct
@dataclass(kw_only=True)
class bmk1880_winograd_param_t(_Window, _Filter):
    """F(2x2, 3x3) convolution; weight (IC, OC, 4, 4) was loaded with CTRL_WINOGRAD. No insertion, no ReLU."""

    relu_enable: bool = False
    rshift_width: int = 0


@KERNEL.struct
@dataclass(kw_only=True)
class bmk1880_depthwise_param_t(_Strided, _Filter):
    """Depthwise convolution with aligned signed weight (1, C, KH, KW)."""

    rshift_width: int = 0


@KERNEL.struct
@dataclass(kw_only=True)
class bmk1880_max_pooling_param_t(_Strided, _Pool):
    """Maximum over kh x kw; padding counts as the lowest value. The encoder of the chip has no insertion here."""


@KERNEL.struct
@dataclass(kw_only=True)
class bmk1880_avg_pooling_param_t(_Strided, _Pool):
    """round(sum over kh x kw * avg_pooling_const >> rshift_width), constant 0..255."""

    avg_pooling_const: int = 1
    rshift_width: int = 0


class _Kernel(NamedTuple):
    """Window size, step and dilation."""

    h: int
    w: int
    stride_h: int = 1
    stride_w: int = 1
    dilation_h: int = 1
    dilation_w: int = 1


@kernel_call
def bmk1880_tpu_conv(ctx: Bmk1880Context, p: bmk1880_conv_param_t) -> Op:
    """Convolution; see `bmk1880_conv_param_t`."""
    ic, oc, kh, kw = p.weight.shape.dims
    kernel = _Kernel(kh, kw, p.stride_h, p.stride_w, p.dilation_h, p.dilation_w)
    check_tpu_tensor("weight", p.weight)
    values = _window_fields(p, kernel, oc)
    check_shape("weight", p.weight, (p.ifmap.shape.c, oc, kh, kw))
    check_unaligned("weight", p.weight)
    check_same_lane("weight", p.weight, "ofmap", p.ofmap)
    check_range("rshift_width", p.rshift_width, 0, MAX_RSHIFT)
    if not (p.relu_enable or p.ifmap.signed | p.weight.signed):
        fail("relu_enable", p.relu_enable, "must be set when ifmap and weight are both unsigned")
    values |= _bias_fields(p.bias, p.ofmap) | {
        "tsk_typ": Task.CONV,
        "opt_right_shift": p.rshift_width,
        "opt_relu": int(p.relu_enable),
        "opt_res0_sign": int(not p.relu_enable),
        "opt_opd1_sign": p.weight.signed,
        "short_opd1_str": StrideCode.SPECIAL,
        "opd1_addr": p.weight.offset,
        "opd1_n": ic,
        "opd1_c": oc,
    }
    return ctx.emit_tpu(values)


@kernel_call
def bmk1880_tpu_winograd(ctx: Bmk1880Context, p: bmk1880_winograd_param_t) -> Op:
    """3x3 convolution by Winograd's method; see `bmk1880_winograd_param_t`."""
    ic, oc, kh, kw = p.weight.shape.dims
    check_tpu_tensor("weight", p.weight)
    _no_insertion(p)
    if p.relu_enable:
        fail("relu_enable", True, "must be False: the chip rejects it here, use bmk1880_tpu_relu")
    if (kh, kw) not in _WINOGRAD_KERNELS:
        fail("shape of weight", p.weight.shape, "h and w must be 4 and 4, as CTRL_WINOGRAD loads them")
    values = _window_fields(p, _Kernel(3, 3), oc)
    check_shape("weight", p.weight, (p.ifmap.shape.c, oc, kh, kw))
    check_unaligned("weight", p.weight)
    check_same_lane("weight", p.weight, "ofmap", p.ofmap)
    check_format("weight", p.weight, 1, "transformed weights are signed")
    check_range("rshift_width", p.rshift_width, 0, MAX_RSHIFT)
    h, w = p.ofmap.shape.h, p.ofmap.shape.w
    if h % 2 or w % 2 or h * w // 4 >= _MAX_WINOGRAD_TILES:
        fail("shape of ofmap", p.ofmap.shape, f"h and w must be even with h * w / 4 < {_MAX_WINOGRAD_TILES}")
    values |= _bias_fields(p.bias, p.ofmap) | {
        "tsk_typ": Task.CONV,
        "opt_winograd": 1,
        "opt_right_shift": p.rshift_width,
        "opt_res0_sign": 1,
        "opd1_addr": p.weight.offset,
        "opd1_n": ic,
        "opd1_c": oc,
        "opd1_h": 1,
        "opd1_w": 16,
    }
    return ctx.emit_tpu(values)


@kernel_call
def bmk1880_tpu_depthwise(ctx: Bmk1880Context, p: bmk1880_depthwise_param_t) -> Op:
    """Depthwise convolution; see `bmk1880_depthwise_param_t`."""
    _, c, kh, kw = p.weight.shape.dims
    check_tpu_tensor("weight", p.weight)
    values = _window_fields(p, _Kernel(kh, kw, p.stride_h, p.stride_w), p.ifmap.shape.c)
    check_shape("weight", p.weight, (1, p.ifmap.shape.c, kh, kw))
    check_aligned("weight", p.weight)
    check_same_lane("weight", p.weight, "ofmap", p.ofmap)
    check_format("weight", p.weight, 1, "depthwise weights are taken as signed")
    check_range("rshift_width", p.rshift_width, 0, MAX_RSHIFT)
    values |= _bias_fields(p.bias, p.ofmap) | {
        "tsk_typ": Task.WINDOW,
        "tsk_eu_typ": WindowOp.DEPTHWISE,
        "opt_right_shift": p.rshift_width,
        "opt_res0_sign": 1,
        "opd1_addr": p.weight.offset,
        "opd1_n": 1,
        "opd1_c": c,
    }
    return ctx.emit_tpu(values)


@kernel_call
def bmk1880_tpu_max_pooling(ctx: Bmk1880Context, p: bmk1880_max_pooling_param_t) -> Op:
    """Maximum pooling; see `bmk1880_max_pooling_param_t`."""
    _no_insertion(p)
    values = _pooling_fields(p, _Kernel(p.kh, p.kw, p.stride_h, p.stride_w)) | {
        "tsk_opd_num": 1,
        "tsk_eu_typ": WindowOp.MAX_POOLING,
        "opt_right_shift": 0,
        "opd0_ins_val": _MINUS_128 if p.ifmap.signed else 0,
    }
    return ctx.emit_tpu(values)


@kernel_call
def bmk1880_tpu_avg_pooling(ctx: Bmk1880Context, p: bmk1880_avg_pooling_param_t) -> Op:
    """Average pooling; see `bmk1880_avg_pooling_param_t`."""
    check_range("avg_pooling_const", p.avg_pooling_const, 0, 255)
    check_range("rshift_width", p.rshift_width, 0, MAX_RSHIFT)
    values = _pooling_fields(p, _Kernel(p.kh, p.kw, p.stride_h, p.stride_w)) | {
        "tsk_opd_num": 2,
        "tsk_eu_typ": WindowOp.AVG_POOLING,
        "opt_right_shift": p.rshift_width,
        "opt_opd1_sign": 0,
        "opt_opd1_const": 1,
        "opd1_addr": p.avg_pooling_const,
    }
    return ctx.emit_tpu(values)


def _pooling_fields(p: bmk1880_max_pooling_param_t | bmk1880_avg_pooling_param_t, kernel: _Kernel) -> dict[str, int]:
    check_range("kh", kernel.h, 1, 4095)
    check_range("kw", kernel.w, 1, 4095)
    if kernel.h * kernel.w < 2:
        fail("kh * kw", kernel.h * kernel.w, "must be more than 1")
    check_format("ofmap", p.ofmap, p.ifmap.signed, "ofmap and ifmap must agree")
    signed = p.ifmap.signed
    fields = _window_fields(p, kernel, p.ifmap.shape.c)
    return fields | {"tsk_typ": Task.WINDOW, "opt_shift_typ": signed, "opt_res0_sign": signed}


def _window_fields(p: _Window, kernel: _Kernel, out_channels: int) -> dict[str, int]:
    """Checks and fields common to the family: feature maps, window, pads, insertion; strides stay at reset values."""
    for what, t in (("ofmap", p.ofmap), ("ifmap", p.ifmap)):
        check_tpu_tensor(what, t)
        check_aligned(what, t)
    for name in ("pad_top", "pad_bottom", "pad_left", "pad_right", "ins_h", "ins_last_h", "ins_w", "ins_last_w"):
        check_range(name, getattr(p, name), 0, _MAX_4_BIT)
    check_range("stride_h", kernel.stride_h, 1, _MAX_4_BIT)
    check_range("stride_w", kernel.stride_w, 1, _MAX_4_BIT)
    check_range("dilation_h", kernel.dilation_h, 1, _MAX_DILATION)
    check_range("dilation_w", kernel.dilation_w, 1, _MAX_DILATION)
    n, c, h, w = p.ifmap.shape.dims
    if (h == 1 and p.ins_h) or (w == 1 and p.ins_w):
        fail("ins_h, ins_w", (p.ins_h, p.ins_w), f"must be 0 along a dimension of size 1 (ifmap {p.ifmap.shape})")
    height = (h - 1) * (p.ins_h + 1) + 1 + p.ins_last_h + p.pad_top + p.pad_bottom
    width = (w - 1) * (p.ins_w + 1) + 1 + p.ins_last_w + p.pad_left + p.pad_right
    out_h = (height - (kernel.h - 1) * kernel.dilation_h - 1) // kernel.stride_h + 1
    out_w = (width - (kernel.w - 1) * kernel.dilation_w - 1) // kernel.stride_w + 1
    check_shape("ofmap", p.ofmap, (n, out_channels, out_h, out_w))
    return {
        "opt_relu": 0,
        "opt_opd0_sign": p.ifmap.signed,
        "conv_opd0_x_ins0": p.ins_w,
        "conv_opd0_y_ins0": p.ins_h,
        "conv_opd0_x_ins0_last": p.ins_last_w,
        "conv_opd0_y_ins0_last": p.ins_last_h,
        "conv_opd1_x_ins0": kernel.dilation_w - 1,
        "conv_opd1_y_ins0": kernel.dilation_h - 1,
        "conv_opd0_up_pad": p.pad_top,
        "conv_opd0_dn_pad": p.pad_bottom,
        "conv_opd0_lf_pad": p.pad_left,
        "conv_opd0_rt_pad": p.pad_right,
        "conv_op_x_str": kernel.stride_w,
        "conv_op_y_str": kernel.stride_h,
        "res0_addr": p.ofmap.address,
        "res0_n": n,
        "res0_c": out_channels,
        "res0_h": out_h,
        "res0_w": out_w,
        "opd0_addr": p.ifmap.address,
        "opd0_n": n,
        "opd0_c": c,
        "opd0_h": h,
        "opd0_w": w,
        "opd1_h": kernel.h,
        "opd1_w": kernel.w,
    }


def _bias_fields(bias: tensor_lmem | None, ofmap: tensor_lmem) -> dict[str, int]:
    if bias is None:
        return {"tsk_opd_num": 2}
    oc = ofmap.shape.c
    check_tpu_tensor("bias", bias)
    check_shape("bias", bias, (2, oc, 1, 1))
    check_unaligned("bias", bias)
    check_same_lane("bias", bias, "ofmap", ofmap)
    return {
        "tsk_opd_num": 3,
        "short_opd2_str": StrideCode.UNALIGNED,
        "opd2_addr": bias.offset,
        "opd2_n": 1,
        "opd2_c": oc,
        "opd2_h": 1,
        "opd2_w": 1,
        "opd2_b_str": -(-oc // CHIP.lanes),
    }


def _no_insertion(p: _Window) -> None:
    given = (p.ins_h, p.ins_last_h, p.ins_w, p.ins_last_w)
    if any(given):
        fail("ins_h, ins_last_h, ins_w, ins_last_w", given, "must be 0: the chip has no insertion for this call")
