"""Ops that integers of 8 bits do not suit, whatever measurements on a few samples say."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bmcompiler.ir import Function, Operation, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.elementwise import Mul
from bmcompiler.ops.elements.logic import Where
from bmcompiler.passes.quantization.base import is_constant

_APART = 16.0
"""Parts of a concatenation whose ranges differ by more keep scales of their own."""
_MASK = 1e4
"""What is so many times larger than what it is added to is a mask."""
_ENDLESS = 1e30


def hostile(
    function: Function, thresholds: Mapping[Value, float], constant: Callable[[Value], Array], *, steep: bool
) -> dict[Operation, str]:
    """Reasons by op that should stay in float.

    1. concat of parts of very different range: one scale would leave the small ones a few steps. In float each part
       keeps its own until it is joined.
    2. add, sub or where of a mask (-1e9 where attention may not look), constant or computed: it would take all of the
       scale; and what computes numbers so large that they are infinite a step further.
    3. `steep`: exp, log, powers and roots, and x * x.
    """
    found: dict[Operation, str] = {}
    for op in function.ops[:-1]:
        data = [v for v in op.operands if v.type.is_float and not is_constant(v) and v in thresholds]
        if not data or not op.results[0].type.is_float:
            continue
        ranges = [thresholds[value] for value in data]
        if op.short_name == "concat" and max(ranges) > _APART * min(ranges):
            found[op] = (
                f"its parts range from {min(ranges):.3g} to {max(ranges):.3g}: one scale would ruin the small ones"
            )
        elif isinstance(op, TensorOp) and op.masks and max(*ranges, *_peaks(op, constant)) > _MASK * min(ranges):
            done = "puts in" if isinstance(op, Where) else "adds"
            found[op] = f"it {done} a mask, whose scale would leave nothing of the rest"
        elif thresholds.get(op.results[0], 0.0) > _ENDLESS:
            found[op] = "its results are as good as infinite"
        elif steep and isinstance(op, TensorOp) and (op.steep or _squares(op)):
            found[op] = f"8 bits do not hold the range of '{op.short_name}'"
    return found


def _squares(op: TensorOp) -> bool:
    return isinstance(op, Mul) and op.operands[0] is op.operands[1]


def _peaks(op: Operation, constant: Callable[[Value], Array]) -> list[float]:
    """The largest magnitude of each constant that an op reads, and 0."""
    return [0.0, *(float(np.abs(constant(value)).max(initial=0.0)) for value in op.operands if is_constant(value))]
