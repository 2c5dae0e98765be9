"""Ops that move or select values: the same op on integers."""

from __future__ import annotations

import math

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.base import Scaling
from bmcompiler.passes.quantization.scale.base import rule
from bmcompiler.passes.quantization.scale.formats import format_of
from bmcompiler.passes.quantization.scale.lowering import ScaleLowering
from bmcompiler.passes.quantization.shift.shape import declared


@rule("reshape", "permute", "slice", "split", "upsample", "tile", "max_pool", scaling=Scaling.KEEPS)
def same_op(op: TensorOp, low: ScaleLowering) -> list[Value]:
    x = low.request(op.operands[0])
    return low.emit_all(op.opname, [x], declared(op), format_of(x))


@rule("pad", scaling=Scaling.KEEPS)
def pad(op: TensorOp, low: ScaleLowering) -> Value:
    x = low.request(op.x)
    have = format_of(x)
    attributes = declared(op)
    if not math.isnan(op.value):
        limits = np.iinfo(x.type.numpy)
        value = op.value / have.scale + have.zero_point
        attributes["value"] = float(np.rint(np.clip(value, limits.min, limits.max)))
    return low.emit("pad", [x], attributes, have)


@rule("concat", scaling=Scaling.JOINS)
def concat(op: TensorOp, low: ScaleLowering) -> Value:
    common = low.wanted(op.result)
    return low.emit("concat", [low.request(value, common) for value in op.operands], declared(op), common)
