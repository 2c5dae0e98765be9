"""Element-wise ops by others."""

from __future__ import annotations

from bmcompiler.ir import Value
from bmcompiler.ops.elements.elementwise import Sub
from bmcompiler.passes.support.decompositions.base import Draft, legalizes


@legalizes(Sub)
def sum_with_negative(op: Sub, draft: Draft) -> Value | None:
    """A difference of floats is the sum with the negative."""
    if not op.type.is_float or draft.constant(op.operands[1]) is not None:
        return None
    return draft.emit("add", [op.operands[0], draft.emit("neg", [op.operands[1]])])
