"""Real vendor command buffers: the assembler keeps them, and our kernel calls reproduce their TPU commands."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from bmcompiler import bmodel
from bmcompiler.backends.bm1880 import bmkernel as bk
from bmcompiler.backends.bm1880.asm import assemble, disassemble
from bmcompiler.backends.bm1880.bmkernel import FMT_I8, FMT_U8, shape_t4
from bmcompiler.backends.bm1880.cmdbuf import normalised, records
from bmcompiler.backends.bm1880.isa import TIU, Engine, StrideCode, Task, TensorOp, WindowOp
from bmcompiler.bmodel.bm1880 import Bm1880Model

ROOT = Path(__file__).parents[2]
SAMPLES = Path(os.environ.get("BMCOMPILER_BM1880_SAMPLES", ROOT.parent / "shared/hardware/bm1880_samples"))
pytestmark = pytest.mark.skipif(
    not SAMPLES.is_dir(), reason="no vendor model files: set BMCOMPILER_BM1880_SAMPLES to their folder"
)


def vendor_buffers() -> list[bytes]:
    out = []
    for path in sorted(SAMPLES.glob("*.bmodel")):
        model = bmodel.load(path)
        assert isinstance(model, Bm1880Model)
        out += [command.cmdbuf for command in model.commands]
    return out


def test_vendor_buffers_survive_the_round_trip() -> None:
    for cmdbuf in vendor_buffers():
        text = disassemble(cmdbuf)
        assert ".raw" not in text
        assert "reserved" not in text
        assert assemble(text) == normalised(cmdbuf)


def tensor(f: dict[str, int], role: str, aligned: bool = True) -> bk.tensor_lmem:
    """The tensor an operand's address, shape and sign fields describe."""
    lane = f["res0_addr"] & ~0xFFFF if role in ("opd1", "opd2") else 0
    shape = shape_t4(*(f[f"{role}_{axis}"] for axis in "nchw"))
    return bk.tensor_lmem(lane + f[f"{role}_addr"], shape, FMT_I8 if f[f"opt_{role}_sign"] else FMT_U8, aligned)


def bias(f: dict[str, int]) -> bk.tensor_lmem | None:
    if f["tsk_opd_num"] != 3:
        return None
    lane = f["res0_addr"] & ~0xFFFF
    return bk.tensor_lmem(lane + f["opd2_addr"], shape_t4(2, f["res0_c"], 1, 1), FMT_I8)


def window(f: dict[str, int]) -> dict[str, int]:
    return {
        "pad_top": f["conv_opd0_up_pad"],
        "pad_bottom": f["conv_opd0_dn_pad"],
        "pad_left": f["conv_opd0_lf_pad"],
        "pad_right": f["conv_opd0_rt_pad"],
        "stride_h": f["conv_op_y_str"],
        "stride_w": f["conv_op_x_str"],
    }


def repeat(ctx: bk.Bmk1880Context, f: dict[str, int]) -> str:
    """Issue the kernel call behind a decoded TPU command; returns its name."""
    task, unit, rshift = f["tsk_typ"], f["tsk_eu_typ"], f["opt_right_shift"]
    res, a = tensor(f, "res0"), tensor(f, "opd0")
    if task == Task.CONV:
        weight = tensor(f, "opd1", aligned=False)
        p = bk.bmk1880_conv_param_t(ofmap=res, ifmap=a, weight=weight, bias=bias(f), rshift_width=rshift, **window(f))
        bk.bmk1880_tpu_conv(ctx, p)
        return "conv"
    if task == Task.WINDOW and unit == WindowOp.DEPTHWISE:
        weight = tensor(f, "opd1")
        d = bk.bmk1880_depthwise_param_t(
            ofmap=res, ifmap=a, weight=weight, bias=bias(f), rshift_width=rshift, **window(f)
        )
        bk.bmk1880_tpu_depthwise(ctx, d)
        return "depthwise"
    if task == Task.WINDOW:
        m = bk.bmk1880_max_pooling_param_t(ofmap=res, ifmap=a, kh=f["opd1_h"], kw=f["opd1_w"], **window(f))
        bk.bmk1880_tpu_max_pooling(ctx, m)
        return "max_pooling"
    if unit == TensorOp.OR:
        bk.bmk1880_tpu_or_int8(ctx, bk.bmk1880_or_int8_param_t(res, a, tensor(f, "opd1")))
        return "or_int8"
    value, signed = f["opd1_addr"] & 0xFF, bool(f["opt_opd1_sign"])
    value = value - 256 if signed and value > 127 else value
    if unit == TensorOp.MUL:
        bk.bmk1880_tpu_mul_const(ctx, bk.bmk1880_mul_const_param_t(None, res, a, value, signed, rshift))
        return "mul_const"
    if unit == TensorOp.MIN:
        bk.bmk1880_tpu_min_const(ctx, bk.bmk1880_min_const_param_t(res, a, value, signed))
        return "min_const"
    bk.bmk1880_tpu_max_const(ctx, bk.bmk1880_max_const_param_t(res, a, value, signed))
    return "max_const"


def meaningful(f: dict[str, int]) -> dict[str, int]:
    """The command without ids and without operand 1 strides its stride code leaves unused: older encoders set them."""
    unused = {"cmd_id_tpu", "cmd_id_gdma"}
    if f["short_opd1_str"] != StrideCode.EXPLICIT:
        unused |= {f"opd1_{axis}_str" for axis in "nchw"}
    return {name: value for name, value in f.items() if name not in unused}


def test_kernel_calls_reproduce_every_vendor_tpu_command() -> None:
    seen: Counter[str] = Counter()
    for cmdbuf in vendor_buffers():
        for engine, payload, _ in records(cmdbuf):
            if engine != Engine.TPU:
                continue
            fields = TIU.unpack(payload)
            ctx = bk.bmk1880_register()
            seen[repeat(ctx, fields)] += 1
            ((_, ours, _),) = records(bk.bmk1880_acquire_cmdbuf(ctx))
            assert meaningful(TIU.unpack(ours)) == meaningful(fields)
    assert set(seen) == {"conv", "depthwise", "max_pooling", "or_int8", "mul_const", "min_const", "max_const"}
