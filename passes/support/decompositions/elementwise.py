"""Element-wise ops by others, and activations inside of other ops."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.elements.elementwise import Add, Sub
from bmcompiler.ops.layers.nn import Conv, Deconv, Matmul
from bmcompiler.ops.places.index import OneHot
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


@legalizes(OneHot, integers=True)
def compared_with_places(op: OneHot, draft: Draft) -> Value | None:
    """One of two constants for each place: whether an i32 index is its number, from the front or from the end."""
    values, axis = draft.constant(op.values), op.axis % op.type.rank
    if values is None or op.indices.dtype != "i32":
        return None
    numbers = np.arange(op.depth, dtype=np.int32).reshape([-1 if i == axis else 1 for i in range(op.type.rank)])
    index = draft.reshape(op.indices, (*op.type.shape[:axis], 1, *op.type.shape[axis + 1 :]))
    front, back = (
        draft.emit("compare", [index, draft.weight(counted, what)], method="equal")
        for counted, what in ((numbers, "places"), (numbers - np.int32(op.depth), "from_end"))
    )
    off, on = (
        draft.weight(values[i : i + 1].reshape((1,) * op.type.rank), what) for i, what in ((0, "off"), (1, "on"))
    )
    return draft.emit("where", [draft.emit("bit_or", [front, back]), on, off])
