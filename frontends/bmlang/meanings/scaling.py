"""Upsampling and reductions; integer means are exact, halves rounded away from zero (bmlang.md 4.9)."""

from __future__ import annotations

import math

from bmcompiler.frontends.bmlang.emit import Emit
from bmcompiler.frontends.bmlang.fields import shown
from bmcompiler.frontends.bmlang.meanings.arrange import axis_of
from bmcompiler.frontends.bmlang.meanings.pool import FEW
from bmcompiler.frontends.bmlang.meanings.registry import Call, meaning
from bmcompiler.frontends.bmlang.types import ReduceMethodType
from bmcompiler.ir import Value

_EXACT = 1 << 24
"""Integers up to here are float32 numbers."""
_FACTORS = 16
"""Bytes whose product is a finite float32 number; beyond it, 0 must not meet infinity."""
_METHODS = {
    ReduceMethodType.REDUCE_MEAN: "mean",
    ReduceMethodType.REDUCE_SUM: "sum",
    ReduceMethodType.REDUCE_MAX: "max",
    ReduceMethodType.REDUCE_MIN: "min",
    ReduceMethodType.REDUCE_PROD: "prod",
}


@meaning("upsample")
def upsample(e: Emit, c: Call) -> Value:
    """Each pixel repeated down and across."""
    x = c["tensor_i"]
    if x.type.rank != 4 or c["scale"] < 1:
        raise c.wrong(f"tensor_i needs 4 axes and scale must be 1 or more, got {list(x.shape)} and {c['scale']}")
    return e.op("upsample", x, scale=(c["scale"], c["scale"]))


@meaning("reduce")
def reduce(e: Emit, c: Call) -> Value:
    """Along axes; integers exact, then saturated."""
    x, p = c["tensor_i"], c["reduce_param"]
    count = len(p.axis_list) if p.axis_num is None else p.axis_num
    axes = tuple(axis_of(c, "axis", axis, x.type.rank) for axis in p.axis_list[:count])
    if not axes or len(set(axes)) < len(axes) or count > len(p.axis_list):
        raise c.wrong(f"axis_list must name one or more different axes, got {shown(list(p.axis_list))}")
    options = {"axes": axes, "keepdims": p.keep_dims}
    method = _METHODS[p.method]
    if x.type.is_float:
        return e.op("reduce", x, method=method, **options)
    size = math.prod(x.shape[axis] for axis in axes)
    exact = size * 255 <= _EXACT and (method != "mean" or size <= FEW)
    wide = e.cast(x, "f32" if exact or method == "prod" else "f64")
    total = e.op("reduce", wide, method="sum" if method == "mean" else method, **options)
    if method == "mean":
        total = e.op("div", total, e.full(size, wide.dtype, total))
    if method == "prod" and size > _FACTORS:
        zeros = e.cast(e.op("compare", wide, e.full(0, wide.dtype, wide), method="equal"), wide.dtype)
        any_zero = e.op(
            "compare", e.op("reduce", zeros, method="max", **options), e.full(0, "f32", total), method="greater"
        )
        total = e.op("where", any_zero, e.full(0, "f32", total), total)
    return e.cast(total, c.out)
