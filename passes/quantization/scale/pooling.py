"""Pooling, and means over whole feature maps."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.base import NoInt8Form, Scaling
from bmcompiler.passes.quantization.scale.base import rule
from bmcompiler.passes.quantization.scale.formats import format_of, single
from bmcompiler.passes.quantization.scale.lowering import ScaleLowering


@rule("avg_pool", scaling=Scaling.FREE)
def avg_pool(op: TensorOp, low: ScaleLowering) -> Value:
    """The exact sum of the window times one real factor, scale of x / scale of y / positions (bm1684.md 6.2)."""
    counts = np.multiply.outer(op.counts(0), op.counts(1))
    if counts.min() != counts.max():
        raise NoInt8Form("its windows average different numbers of positions (padding does not count)")
    kept = ("strides", "pads", "ceil_mode")
    attributes: dict[str, Any] = {name: value for name, value in op.attributes.items() if name in kept}
    attributes["count_include_pad"] = any(op.pads)
    attributes["kernel"] = op.kernel
    return _average(op, low, int(counts.flat[0]), attributes)


@rule("reduce", scaling=Scaling.FREE)
def reduce(op: TensorOp, low: ScaleLowering) -> Value:
    """Mean or sum over height and width is a global pooling."""
    shape = op.x.shape
    if op.method not in ("mean", "sum") or len(shape) != 4 or sorted(op.axes) != [2, 3]:
        raise NoInt8Form("only mean and sum over height and width have an int8 form")
    out = _average(op, low, prod(shape[2:]) if op.method == "mean" else 1, {"kernel": shape[2:]})
    return out if op.keepdims else low.emit("reshape", [out], {"shape": op.type.shape}, format_of(out))


def _average(op: TensorOp, low: ScaleLowering, divisor: int, attributes: dict[str, Any]) -> Value:
    x = low.request(op.operands[0])
    wanted = low.wanted(op.result)
    factor = single(format_of(x).scale / wanted.scale / divisor)
    return low.emit("avg_pool", [x], {**attributes, "scale": factor}, wanted)
