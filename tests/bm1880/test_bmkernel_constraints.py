"""Every constraint of the kernel API (bm1880.md 8.3) and its message."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from bmcompiler.backends.bm1880 import bmkernel as bk
from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NEURON,
    CTRL_RA,
    CTRL_RELU,
    CTRL_TP,
    CTRL_WEIGHT,
    CTRL_WINOGRAD,
    FMT_I8,
    FMT_U8,
    shape_t2,
    shape_t4,
    stride_t4,
)
from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import TIU
from bmcompiler.errors import EncodingError


@pytest.fixture
def ctx() -> bk.Bmk1880Context:
    return bk.bmk1880_register()


def aligned(ctx: bk.Bmk1880Context, at: int, *dims: int, fmt: int = FMT_I8) -> bk.tensor_lmem:
    return bk.bmk1880_tl_prealloc_align(ctx, at, shape_t4(*dims) if len(dims) == 4 else shape_t2(*dims), fmt)


def plain(ctx: bk.Bmk1880Context, at: int, *dims: int, fmt: int = FMT_I8) -> bk.tensor_lmem:
    return bk.bmk1880_tl_prealloc(ctx, at, shape_t4(*dims), fmt)


X = (1, 4, 6, 8)


def conv(ctx: bk.Bmk1880Context, **changes: Any) -> bk.Op:
    values: dict[str, Any] = {
        "ofmap": aligned(ctx, 0, 1, 8, 4, 6),
        "ifmap": aligned(ctx, 1024, *X),
        "weight": plain(ctx, 2048, 4, 8, 3, 3),
        "bias": plain(ctx, 4096, 2, 8, 1, 1),
    }
    return bk.bmk1880_tpu_conv(ctx, bk.bmk1880_conv_param_t(**(values | changes)))


def mul(ctx: bk.Bmk1880Context, **changes: Any) -> bk.Op:
    a, b, res = (aligned(ctx, at, *X) for at in (0, 256, 512))
    values = {"res_high": None, "res_low": res, "a": a, "b": b, "rshift_width": 0}
    return bk.bmk1880_tpu_mul(ctx, bk.bmk1880_mul_param_t(**(values | changes)))


def add(ctx: bk.Bmk1880Context, call: str = "add", **changes: Any) -> bk.Op:
    names = ("res_low", "res_high", "a_low", "a_high", "b_low", "b_high")
    values = {name: aligned(ctx, 256 * i, *X) for i, name in enumerate(names)}
    return getattr(bk, f"bmk1880_tpu_{call}")(ctx, getattr(bk, f"bmk1880_{call}_param_t")(**(values | changes)))


def pool(ctx: bk.Bmk1880Context, kind: str = "max", **changes: Any) -> bk.Op:
    values: dict[str, Any] = {"ofmap": aligned(ctx, 0, 1, 4, 5, 7), "ifmap": aligned(ctx, 1024, *X), "kh": 2, "kw": 2}
    make = getattr(bk, f"bmk1880_{kind}_pooling_param_t")
    return getattr(bk, f"bmk1880_tpu_{kind}_pooling")(ctx, make(**(values | changes)))


def matrix(ctx: bk.Bmk1880Context, **changes: Any) -> bk.Op:
    values: dict[str, Any] = {
        "res": aligned(ctx, 0, 5, 70),
        "left": aligned(ctx, 1024, 5, 100),
        "right": aligned(ctx, 4096, 100, 70),
    }
    return bk.bmk1880_tpu_matrix_mac(ctx, bk.bmk1880_matrix_mac_param_t(**(values | changes)))


def depthwise(ctx: bk.Bmk1880Context, **changes: Any) -> bk.Op:
    values: dict[str, Any] = {
        "ofmap": aligned(ctx, 0, 1, 4, 4, 6),
        "ifmap": aligned(ctx, 1024, *X),
        "weight": aligned(ctx, 2048, 1, 4, 3, 3),
    }
    return bk.bmk1880_tpu_depthwise(ctx, bk.bmk1880_depthwise_param_t(**(values | changes)))


def winograd(ctx: bk.Bmk1880Context, **changes: Any) -> bk.Op:
    values: dict[str, Any] = {
        "ofmap": aligned(ctx, 0, 1, 8, 4, 6),
        "ifmap": aligned(ctx, 1024, *X),
        "weight": plain(ctx, 2048, 4, 8, 4, 4),
    }
    return bk.bmk1880_tpu_winograd(ctx, bk.bmk1880_winograd_param_t(**(values | changes)))


def mac(ctx: bk.Bmk1880Context, **changes: Any) -> bk.Op:
    names = ("res_low", "res_high", "a", "b")
    values: dict[str, Any] = {name: aligned(ctx, 256 * i, *X) for i, name in enumerate(names)}
    values |= {"res_is_int8": True, "lshift_width": 0, "rshift_width": 0}
    return bk.bmk1880_tpu_mac(ctx, bk.bmk1880_mac_param_t(**(values | changes)))


@pytest.mark.parametrize("call", [conv, mul, add, pool, matrix, depthwise, winograd, mac])
def test_the_unchanged_calls_are_accepted(ctx: bk.Bmk1880Context, call: Callable[..., bk.Op]) -> None:
    call(ctx)


LANE1 = 65536
REFUSED: list[tuple[Callable[[bk.Bmk1880Context], object], str]] = [
    (lambda c: conv(c, pad_top=16), "bmk1880_tpu_conv: pad_top is 16, must be 0..15"),
    (lambda c: conv(c, stride_h=0), "bmk1880_tpu_conv: stride_h is 0, must be 1..15"),
    (lambda c: conv(c, dilation_w=17), "bmk1880_tpu_conv: dilation_w is 17, must be 1..16"),
    (lambda c: conv(c, rshift_width=32), "rshift_width is 32, must be 0..31"),
    (lambda c: conv(c, ofmap=plain(c, 0, 1, 8, 4, 6)), "ofmap is .* must have the aligned layout"),
    (lambda c: conv(c, ofmap=aligned(c, 8, 1, 8, 4, 6)), "address of ofmap is 0x8, must be a multiple of 16"),
    (lambda c: conv(c, ofmap=aligned(c, 0, 1, 8, 5, 6)), r"shape of ofmap is \(1, 8, 5, 6\), must be \(1, 8, 4, 6\)"),
    (lambda c: conv(c, weight=aligned(c, 2048, 4, 8, 3, 3)), "weight is .* must have the unaligned layout"),
    (
        lambda c: conv(c, weight=plain(c, 2048, 3, 8, 3, 3)),
        r"weight is \(3, 8, 3, 3\), must be \(4, 8, 3, 3\)",
    ),
    (lambda c: conv(c, weight=plain(c, LANE1, 4, 8, 3, 3)), "lane of weight is 1, must be 0, the lane of ofmap"),
    (lambda c: conv(c, bias=plain(c, LANE1, 2, 8, 1, 1)), "lane of bias is 1"),
    (lambda c: conv(c, bias=plain(c, 4096, 1, 8, 1, 1)), r"shape of bias is \(1, 8, 1, 1\), must be \(2, 8, 1, 1\)"),
    (
        lambda c: conv(c, ifmap=aligned(c, 1024, *X, fmt=FMT_U8), weight=plain(c, 2048, 4, 8, 3, 3, fmt=FMT_U8)),
        "relu_enable is False, must be set when ifmap and weight are both unsigned",
    ),
    (
        lambda c: conv(c, ifmap=aligned(c, 1024, 1, 4, 1, 8), ins_h=1),
        "ins_h, ins_w is .* must be 0 along a dimension of size 1",
    ),
    (lambda c: conv(c, ifmap=aligned(c, 1024, 1, 4, 1, 1025)), "h and w at most 1024"),
    (lambda c: pool(c, kh=1, kw=1), "kh \\* kw is 1, must be more than 1"),
    (lambda c: pool(c, ofmap=aligned(c, 0, 1, 4, 5, 7, fmt=FMT_U8)), "format of ofmap is FMT_U8, must be FMT_I8"),
    (lambda c: pool(c, ins_h=1), "bmk1880_tpu_max_pooling: ins_h.* must be 0"),
    (lambda c: pool(c, "avg", avg_pooling_const=256), "avg_pooling_const is 256, must be 0..255"),
    (lambda c: depthwise(c, weight=plain(c, 2048, 1, 4, 3, 3)), "weight is .* must have the aligned layout"),
    (lambda c: depthwise(c, weight=aligned(c, 2048, 1, 4, 3, 3, fmt=FMT_U8)), "format of weight is FMT_U8"),
    (lambda c: winograd(c, relu_enable=True), "relu_enable is True, must be False"),
    (lambda c: winograd(c, weight=plain(c, 2048, 4, 8, 3, 3)), "h and w must be 4 and 4"),
    (lambda c: winograd(c, ifmap=aligned(c, 1024, 1, 4, 7, 8), ofmap=aligned(c, 0, 1, 8, 5, 6)), "must be even"),
    (lambda c: winograd(c, ins_last_w=1), "must be 0: the chip has no insertion"),
    (lambda c: matrix(c, ctrls=CTRL_RELU | CTRL_RA), "ctrls is 0x104, must be CTRL_NULL, CTRL_RA or CTRL_RELU"),
    (lambda c: matrix(c, ctrls=CTRL_TP), "ctrls is 0x20, must be"),
    (lambda c: matrix(c, res_is_int8=False), r"shape of res is \(5, 70\), must be \(10, 70\)"),
    (lambda c: matrix(c, bias=aligned(c, 0x8000, 1, 70)), r"shape of bias is \(1, 70\), must be \(2, 70\)"),
    (lambda c: matrix(c, left=aligned(c, 1032, 5, 100)), "address of left is 0x408"),
    (lambda c: matrix(c, left=aligned(c, 1024, 1, 5, 1, 100)), "left is a tensor .* must be a matrix"),
    (
        lambda c: matrix(c, left=aligned(c, 1024, 5, 100, fmt=FMT_U8), right=aligned(c, 4096, 100, 70, fmt=FMT_U8)),
        "must be CTRL_RELU when left and right are both unsigned",
    ),
    (lambda c: mac(c, rshift_width=16), "rshift_width is 16, must be 0..15"),
    (lambda c: mac(c, lshift_width=32), "lshift_width is 32, must be 0..31"),
    (lambda c: mac(c, res_high=None), "res_high is None"),
    (lambda c: mac(c, res_high=aligned(c, 0, *X), res_low=aligned(c, 256, *X)), "address of res_high is -256 after"),
    (lambda c: add(c, a_high=aligned(c, 520, *X)), "address of a_high is 8 after a_low, must be a positive multiple"),
    (lambda c: add(c, a_high=aligned(c, 768, 1, 4, 8, 6)), "a_high is .* must have the shape"),
    (lambda c: add(c, b_high=None), "b_high is None"),
    (lambda c: add(c, res_low=aligned(c, 0, *X, fmt=FMT_U8), res_high=None), "res_low is FMT_U8, must be FMT_I8"),
    (lambda c: add(c, "sub", res_low=aligned(c, 0, *X, fmt=FMT_U8), res_high=None), "a difference is signed"),
    (
        lambda c: add(
            c,
            "sub",
            **{n: aligned(c, 4096 + 256 * i, *X, fmt=FMT_U8) for i, n in enumerate(("a_low", "a_high"))},
            **{n: aligned(c, 8192 + 256 * i, *X, fmt=FMT_U8) for i, n in enumerate(("b_low", "b_high"))},
        ),
        "at least one must be FMT_I8",
    ),
    (
        lambda c: mul(
            c,
            rshift_width=1,
            **{n: aligned(c, 256 * i, *X, fmt=FMT_U8) for i, n in enumerate(("a", "b", "res_low"))},
        ),
        "rshift_width is 1, must be 0 when both factors are unsigned",
    ),
    (lambda c: mul(c, b=aligned(c, 256, 1, 4, 8, 6)), r"shape of b is \(1, 4, 8, 6\), must be \(1, 4, 6, 8\)"),
    (lambda c: mul(c, b=aligned(c, LANE1, *X)), "lane of b is 1, must be 0, the lane of res"),
    (lambda c: mul(c, a=aligned(c, 0, 4, 64)), "a is a matrix"),
    (
        lambda c: mul(c, **{n: plain(c, 0, 1, 64, 64, 512) for n in ("a", "b", "res_low")}),
        "strides of res is .* each must be 0..65535",
    ),
    (
        lambda c: bk.bmk1880_tpu_mul_const(
            c, bk.bmk1880_mul_const_param_t(None, aligned(c, 0, *X), aligned(c, 256, *X), 128, True, 0)
        ),
        "b is 128, must be -128..127",
    ),
    (
        lambda c: bk.bmk1880_tpu_min_const(
            c, bk.bmk1880_min_const_param_t(aligned(c, 0, *X), aligned(c, 256, *X), 1, False)
        ),
        "b_is_signed is False, must agree with the format of a",
    ),
    (
        lambda c: bk.bmk1880_tpu_relu(c, bk.bmk1880_relu_param_t(aligned(c, 8, *X), aligned(c, 256, *X))),
        "address of ofmap is 0x8",
    ),
    (
        lambda c: bk.bmk1880_tpu_lut(
            c,
            bk.bmk1880_lut_param_t(aligned(c, 0, *X), aligned(c, 256, *X), aligned(c, 512, 1, 16, 16, 16)),
        ),
        r"shape of table is \(1, 16, 16, 16\), must be \(1, 32, 16, 16\)",
    ),
    (
        lambda c: bk.bmk1880_tpu_mdsum(
            c, bk.bmk1880_mdsum_param_t(None, aligned(c, 0, 1, 4, 1, 1), aligned(c, 256, *X))
        ),
        "res_low is .* must have the unaligned layout",
    ),
    (
        lambda c: bk.bmk1880_tpu_arith_shift(
            c,
            bk.bmk1880_arith_shift_param_t(
                *(aligned(c, at, *X) for at in (256, 0, 768, 512)), aligned(c, 1024, *X, fmt=FMT_U8)
            ),
        ),
        "format of bits is FMT_U8",
    ),
    (
        lambda c: bk.bmk1880_tpu_copy_with_stride(
            c,
            bk.bmk1880_copy_with_stride_param_t(
                aligned(c, 0, *X), stride_t4(0, 0, 65000, 1), aligned(c, 256, *X), stride_t4(48, 48, 8, 1)
            ),
        ),
        "bmk1880_tpu_copy_with_stride: dst: .* ends at byte",
    ),
    (
        lambda c: bk.bmk1880_tpu_matrix_mac_2(
            c,
            bk.bmk1880_matrix_mac_2_param_t(
                res=aligned(c, 0, 1, 256, 1, 256), left=aligned(c, 4096, *X), right=aligned(c, 8192, 256, 16, 1, 16)
            ),
        ),
        "shape of left is",
    ),
    (lambda c: bk.bmk1880_gdma_load(c, aligned(c, 0, *X), -1, 0), "gaddr is -1, must be 0"),
    (lambda c: bk.bmk1880_gdma_load(c, aligned(c, 0, *X), 0xFF00000000, 0), "global address is 0xff00000000"),
    (lambda c: bk.bmk1880_gdma_load(c, aligned(c, 0, *X), 0, CTRL_NEURON | CTRL_WEIGHT), "exclude each other"),
    (lambda c: bk.bmk1880_gdma_load(c, aligned(c, 0, *X), 0, CTRL_RELU), "has bits this call does not take"),
    (lambda c: bk.bmk1880_gdma_load(c, aligned(c, 0, *X), 0, 1 << 28), "bits 31:28 need CTRL_WINOGRAD"),
    (lambda c: bk.bmk1880_gdma_load(c, plain(c, 0, 1, 4, 1, 8), 0, CTRL_WINOGRAD), "w must be a multiple of 16"),
    (lambda c: bk.bmk1880_gdma_load(c, aligned(c, 0, 1, 4, 3, 16), 0, CTRL_WINOGRAD | CTRL_TP), "exclude"),
    (lambda c: bk.bmk1880_gdma_load(c, aligned(c, 0, 1, 4, 3, 16), 0, CTRL_WINOGRAD), "unaligned layout"),
    (lambda c: bk.bmk1880_gdma_load(c, plain(c, 0, 1, 4, 3, 5), 0, CTRL_TP), "aligned layout for CTRL_TP"),
    (
        lambda c: bk.bmk1880_gdma_load_stride(c, aligned(c, 0, *X), 0, stride_t4(1, 1, 65536, 1), 0),
        r"global strides is .* must be 0..65535",
    ),
    (
        lambda c: bk.bmk1880_gdma_load_stride(c, aligned(c, 0, *X), 0, stride_t4(1, 1, 1, 2), 0),
        "the innermost stride must be 1",
    ),
    (lambda c: bk.bmk1880_gdma_copy_lmem(c, plain(c, 0, 1, 4, 3, 5), aligned(c, 512, 1, 4, 3, 5)), "dst is .* aligned"),
    (lambda c: bk.bmk1880_gdma_copy_lmem(c, aligned(c, 0, 1, 4, 3, 5), aligned(c, 512, *X)), "n, c and h \\* w of src"),
    (
        lambda c: bk.bmk1880_gdma_lrn_shift(c, aligned(c, 0, *X), aligned(c, 256, *X), True, 4),
        "lrn_step is 4, must be 0..3",
    ),
    (
        lambda c: bk.bmk1880_gdma_copy_gmem(
            c, bk.global_tensor(0, shape_t4(1, 2, 3, 4)), bk.global_tensor(64, shape_t4(1, 2, 3, 5)), 0
        ),
        "of 24 elements, src has 30",
    ),
    (
        lambda c: bk.bmk1880_gdma_copy_gmem(
            c, bk.global_tensor(0, shape_t2(3, 4)), bk.global_tensor(64, shape_t4(1, 1, 3, 4)), 0
        ),
        "must be of the same kind",
    ),
    (lambda c: bk.bmk1880_tl_alloc(c, shape_t4(1, 1, 1, 1), FMT_I8, CTRL_TP), "must be CTRL_NULL or CTRL_AL"),
    (lambda c: plain(c, 0, 0, 1, 1, 1), "every dimension must be at least 1"),
    (lambda c: plain(c, 65000, 1, 1, 1, 1000), "ends at byte 66000 of its lane"),
    (lambda c: plain(c, 32 * 65536, 1, 1, 1, 1), "at address 0x200000"),
    (lambda c: plain(c, 0, 1, 1, 1, 1, fmt=2), "format 2 is neither FMT_I8"),
    (lambda c: bk.bmk1880_cpu_op(c, "a name much too long", b""), "must be 1 to 15 ASCII characters"),
]


@pytest.mark.parametrize(("call", "reason"), REFUSED, ids=[re.sub(r"\W+", "-", reason)[:60] for _, reason in REFUSED])
def test_broken_constraints_say_which(
    ctx: bk.Bmk1880Context, call: Callable[[bk.Bmk1880Context], object], reason: str
) -> None:
    with pytest.raises(EncodingError, match=reason):
        call(ctx)
    assert bk.bmk1880_acquire_cmdbuf(ctx) == b""


def test_a_refused_call_takes_no_id(ctx: bk.Bmk1880Context) -> None:
    with pytest.raises(EncodingError):
        conv(ctx, pad_top=16)
    conv(ctx)
    ((_, payload, _),) = records(bk.bmk1880_acquire_cmdbuf(ctx))
    assert TIU.unpack(payload)["cmd_id_tpu"] == 1
