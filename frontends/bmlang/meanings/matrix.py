"""Convolutions and matrix products; integers in the three modes (bmlang.md 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bmcompiler.frontends.bmlang.checks import PRODUCTS, mode_of
from bmcompiler.frontends.bmlang.emit import Emit
from bmcompiler.frontends.bmlang.meanings.registry import Call, meaning
from bmcompiler.frontends.bmlang.types import ConvParam, MatrixMulParam
from bmcompiler.ir import Value


def _quantized(c: Call, x: Value, param: ConvParam | MatrixMulParam) -> dict[str, Any]:
    """The attributes of the integer form."""
    if x.type.is_float:
        return {}
    mode = mode_of(c.row, param)
    if c.name in PRODUCTS and mode == "low" and c.outs[0].bits == 16:
        mode = "high"  # a product without parameters that keeps 16 bits (bmlang.md 4.1)
    points = (param.left_zero_point, param.right_zero_point, param.output_zero_point)
    if mode != "asymmetric":
        if any(points):
            raise c.wrong(f"zero points must be 0 in {param.mode.name}, got {list(points)}")
        return {"mode": mode, "scale": float(param.scale)}
    return {"mode": mode, "scale": float(param.scale), "zero_points": points}


def _flat_bias(e: Emit, c: Call, inputs: Sequence[Value], shape: tuple[int, ...]) -> list[Value]:
    """The bias as a vector, if there is one."""
    if len(inputs) < 3:
        return []
    bias = inputs[2]
    if bias.shape != shape:
        raise c.wrong(f"the bias must have shape {list(shape)}, got {list(bias.shape)}")
    return [e.reshape(bias, (bias.type.size,))]


@meaning("conv", "deconv")
def convolution(e: Emit, c: Call) -> Value:
    """[input, weight, bias (1, OC, 1, 1)]."""
    inputs, p = c["tensor_i"], c["param"]
    x, weight = inputs[:2]
    if x.type.rank != 4 or weight.type.rank != 4:
        raise c.wrong(f"input and weight need 4 axes, got {list(x.shape)} and {list(weight.shape)}")
    channels = weight.shape[0] if c.name == "conv" else weight.shape[1] * p.groups
    bias = _flat_bias(e, c, inputs, (1, channels, 1, 1))
    window = {
        "strides": (p.stride_h, p.stride_w),
        "pads": (p.pad_h_t, p.pad_h_b, p.pad_w_l, p.pad_w_r),
        "dilations": (p.dh, p.dw),
        "group": p.groups,
    }
    numbers = _quantized(c, x, p)
    if numbers.get("mode", "low") != "low" and p.groups == x.shape[1] == channels:
        return _depthwise(e, c, (x, weight, *bias), window)
    return e.op(c.name, x, weight, *bias, **window, **numbers, result=c.out)


def _depthwise(e: Emit, c: Call, operands: Sequence[Value], window: Mapping[str, Any]) -> Value:
    """In float32: the chip's depthwise unit makes no 16 bits that a mode of high precision could go on from.

    y = round(((x - zp_l) * (w - zp_r) + bias) * scale) + zp_o, saturated once, at the end (seed 003, conv).
    """
    p = c["param"]
    x, weight, *bias = (e.cast(each, "f32") for each in operands)
    centred = [
        e.op("sub", value, e.full(point, "f32", value)) if point else value
        for value, point in ((x, p.left_zero_point), (weight, p.right_zero_point))
    ]
    total = e.op("conv", *centred, *bias, **window)
    scaled = e.cast(e.op("mul", total, e.full(p.scale, "f32", total)), "i32")
    if p.output_zero_point:
        scaled = e.op("add", scaled, e.full(p.output_zero_point, "i32", scaled))
    return e.cast(scaled, c.out)


@meaning("matrix_mul", "batch_matmul")
def matrix_mul(e: Emit, c: Call) -> Value:
    """[left (M, K), right (K, N), bias (1, N)]; the batched one may have axes before these, and swaps."""
    inputs, p = c["matrix_input"], c["param"]
    left, right = inputs[:2]
    ranks, batched = (left.type.rank, right.type.rank), c.name == "batch_matmul"
    if min(ranks) < 2 or (ranks != (2, 2) and not batched):
        least = "2 or more axes" if batched else "2 axes"
        raise c.wrong(f"left and right need {least}, got {list(left.shape)} and {list(right.shape)}")
    swaps = {name: c[name] for name in ("transpose_left", "transpose_right") if batched}
    columns = right.shape[-2 if swaps.get("transpose_right") else -1]
    bias = _flat_bias(e, c, inputs, (1, columns))
    return e.op("matmul", left, right, *bias, **swaps, **_quantized(c, left, p), result=c.out)
