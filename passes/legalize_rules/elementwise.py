"""Element-wise ops by others."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.legalize_rules.base import Draft, legalizes

_SIX = 6.0


@legalizes("sub")
def sum_with_negative(op: TensorOp, draft: Draft) -> Value | None:
    """A difference of floats is the sum with the negative."""
    if not op.type.is_float or draft.constant(op.operands[1]) is not None:
        return None
    return draft.emit("add", [op.operands[0], draft.emit("neg", [op.operands[1]])])


@legalizes("hard_sigmoid")
def relu6_of_line(op: TensorOp, draft: Draft) -> Value | None:
    """A line between 0 and 1 is a sixth of six times the line between 0 and 6."""
    if op.type.rank < 2:
        return None
    channels = op.type.shape[1]
    factor, shift = (
        draft.weight(np.full(channels, _SIX * value, op.type.numpy), what)
        for value, what in ((op.alpha, "slope"), (op.beta, "offset"))
    )
    clipped = draft.emit("clip", [draft.emit("scale", [op.input, factor, shift])], min=0.0, max=_SIX)
    sixth = draft.weight(np.full(channels, 1 / _SIX, op.type.numpy), "sixth")
    return draft.emit("scale", [clipped, sixth])
