"""Pooling, and means over whole feature maps."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.layers.pool import AvgPool
from bmcompiler.ops.layers.reduce import Reduce
from bmcompiler.passes.quantization.base import COMMON, NoInt8Form, Scaling
from bmcompiler.passes.quantization.forms import Forms


@COMMON.converts(AvgPool, scaling=Scaling.FREE)
def avg_pool(op: AvgPool, low: Forms[Any]) -> Value:
    """The sum of each window over one number of positions."""
    counts = np.multiply.outer(op.counts(0), op.counts(1))
    if counts.min() != counts.max():
        raise NoInt8Form("its windows average different numbers of positions (padding does not count)")
    kept = ("strides", "pads", "ceil_mode")
    attributes: dict[str, Any] = {name: value for name, value in op.attributes.items() if name in kept}
    attributes["count_include_pad"] = any(op.pads)
    attributes["kernel"] = op.kernel
    return low.average(op, low.request(op.operands[0]), int(counts.flat[0]), attributes)


@COMMON.converts(Reduce, scaling=Scaling.FREE)
def reduce(op: Reduce, low: Forms[Any]) -> Value:
    """Mean or sum over height and width is a global pooling."""
    shape = op.x.shape
    if op.method not in ("mean", "sum") or len(shape) != 4 or sorted(op.axes) != [2, 3]:
        raise NoInt8Form("only mean and sum over height and width have an int8 form")
    divisor = prod(shape[2:]) if op.method == "mean" else 1
    out = low.average(op, low.request(op.operands[0]), divisor, {"kernel": shape[2:]})
    return out if op.keepdims else low.emit("reshape", [out], {"shape": op.type.shape}, low.format_of(out))
