"""Custom layers: int8 where the target has instructions for the sub type."""

from __future__ import annotations

from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.base import NoInt8Form, Scaling, rule
from bmcompiler.passes.quantization.shift.lowering import Lowering, i8


@rule("customized", scaling=Scaling.FREE)
def customized(op: TensorOp, low: Lowering) -> list[Value]:
    """The same op on int8 operands; results at their calibrated thresholds, which the plugin is told."""
    if low.target is None:
        raise NoInt8Form("its integer form depends on the chip, and no target is chosen")
    operands = [low.request(value) for value in op.operands]
    declared = {name: value for name, value in op.attributes.items() if "." not in name}
    results = low.emit_all(op.opname, operands, {**declared, "target": low.target.name}, low.wanted(op.results[0]))
    for old, new in zip(op.results, results):
        new.type = i8(new.shape, low.wanted(old))
    return results
