"""Ops that move or select values: the same op on i8."""

from __future__ import annotations

import math

from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.base import Scaling, rule
from bmcompiler.passes.quantization.shift.lowering import Lowering, threshold_of


@rule("reshape", "permute", "slice", "split", "upsample", "tile", "max_pool", "relu", scaling=Scaling.KEEPS)
def same_op(op: TensorOp, low: Lowering) -> list[Value]:
    return low.emit_all(op.opname, [low.request(op.operands[0])], declared(op))


@rule("pad", scaling=Scaling.KEEPS)
def pad(op: TensorOp, low: Lowering) -> Value:
    x = low.request(op.x)
    attributes = declared(op)
    if op.value and not math.isnan(op.value):
        value = op.value * 128 / threshold_of(x)
        attributes["value"] = float(math.floor(max(-128.0, min(127.0, value)) + 0.5))
    return low.emit("pad", [x], attributes)


@rule("concat", scaling=Scaling.JOINS)
def concat(op: TensorOp, low: Lowering) -> Value:
    common = low.plan.joined[op]
    return low.emit("concat", [low.request(value, common) for value in op.operands], declared(op), common)


def declared(op: TensorOp) -> dict[str, object]:
    """Attributes of an op without free notes."""
    return {name: value for name, value in op.attributes.items() if "." not in name}
