"""What integers of an output cut off of other samples: those that judge may all be within them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bmcompiler.evaluation.decisions import maker_of
from bmcompiler.evaluation.tails import tail_of
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp

_ERRORS = 1.0
"""Standard errors by which tails are taken to be longer than they seem."""


def cut_energy(real: Value, compiled: Value, wanted: Sequence[Array]) -> float:
    """Energy that the ends of an output's integers cut off of a step of others, on average; 0 where none is expected.

    Args:
        real, compiled: the output of the float network, and of the quantized one. wanted: of float, by step.
    """
    ends, (made, _) = _ends(compiled), maker_of(real)
    if ends is None or (isinstance(made, TensorOp) and np.isfinite(made.result_bounds()).all()):
        return 0.0
    found = 0.0
    for end, values in ((ends[1], wanted), (-ends[0], [-each for each in wanted])):
        tail = tail_of(values)
        if tail is not None and end > tail.start:  # what is cut off below that is among the errors that are seen
            found += tail.beyond(end, _ERRORS)
    return found


def _ends(value: Value) -> tuple[float, float] | None:
    """The lowest and highest number of the integers that an output is, or is made of; None of floats."""
    while value.type.quant is None or value.type.is_float:
        op = value.op
        if not isinstance(op, TensorOp) or not (op.moves_only or op.short_name == "dequantize"):
            return None
        value = op.operands[0]
    quant, limits = value.type.quant, np.iinfo(value.type.numpy)
    return (limits.min - quant.zero_point) * quant.scale, (limits.max - quant.zero_point) * quant.scale
