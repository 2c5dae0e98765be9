"""Pooling, and means over whole feature maps."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.base import NoInt8Form, Scaling, rule
from bmcompiler.passes.quantization.formulas import rescaling
from bmcompiler.passes.quantization.shift.lowering import Lowering, threshold_of


@rule("avg_pool", scaling=Scaling.FREE)
def avg_pool(op: TensorOp, low: Lowering) -> Value:
    """Sum of the window times m >> s, m / 2**s ~ tx / ty / positions (bm1880.md 11.2)."""
    counts = np.multiply.outer(op.counts(0), op.counts(1))
    if counts.min() != counts.max():
        raise NoInt8Form("its windows average different numbers of positions (padding does not count)")
    kept = ("strides", "pads", "ceil_mode")
    attributes: dict[str, object] = {name: value for name, value in op.attributes.items() if name in kept}
    attributes["count_include_pad"] = any(op.pads)
    attributes["kernel"] = op.kernel
    return _average(op, low, int(counts.flat[0]), attributes)


@rule("reduce", scaling=Scaling.FREE)
def reduce(op: TensorOp, low: Lowering) -> Value:
    """Mean or sum over height and width is a global pooling."""
    shape = op.x.shape
    if op.method not in ("mean", "sum") or len(shape) != 4 or sorted(op.axes) != [2, 3]:
        raise NoInt8Form("only mean and sum over height and width have an int8 form")
    out = _average(op, low, prod(shape[2:]) if op.method == "mean" else 1, {"kernel": shape[2:]})
    return out if op.keepdims else low.emit("reshape", [out], {"shape": op.type.shape})


def _average(op: TensorOp, low: Lowering, divisor: int, attributes: dict[str, object]) -> Value:
    x = low.request(op.operands[0])
    wanted = low.wanted(op.result)
    multiplier, shift = rescaling(threshold_of(x) / wanted / divisor)
    attributes = {**attributes, "multiplier": multiplier, "rshift": shift}
    return low.emit("avg_pool", [x], attributes, wanted)
