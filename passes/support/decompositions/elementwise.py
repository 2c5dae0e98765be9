"""Element-wise ops by others, and activations inside of other ops."""

from __future__ import annotations

from bmcompiler.ir import Value
from bmcompiler.ops.elements.elementwise import Add, Sub
from bmcompiler.ops.layers.nn import Conv, Deconv, Matmul
from bmcompiler.ops.shared import Activated
from bmcompiler.passes.rewriting import activates
from bmcompiler.passes.support.decompositions.base import Draft, legalizes


@legalizes(Sub)
def sum_with_negative(op: Sub, draft: Draft) -> Value | None:
    """A difference of floats is the sum with the negative."""
    if not op.type.is_float or draft.constant(op.operands[1]) is not None:
        return None
    return draft.emit("add", [op.operands[0], draft.emit("neg", [op.operands[1]])])


@legalizes(Conv, Deconv, Matmul, Add, integers=True)
def activation_after(op: Activated, draft: Draft) -> Value | None:
    """The activation inside an op becomes an op after it."""
    if not activates(op):
        return None
    kept = {name: value for name, value in op.attributes.items() if "." not in name and name != "activation"}
    plain = draft.emit(op.opname, op.operands, **kept)
    plain.type = op.type
    if op.activation == "relu":
        return draft.emit("relu", [plain])
    return draft.emit("clip", [plain], min=0.0, max=6.0)
