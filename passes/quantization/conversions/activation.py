"""Functions of one tensor as a table of 256 bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bmcompiler.ir import Block, TensorType, Value
from bmcompiler.ops import find_op
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import FloatUnary
from bmcompiler.passes.quantization.base import COMMON, Scaling
from bmcompiler.passes.quantization.forms import Forms


def by_table(op: TensorOp, low: Forms[Any], data: int = 0) -> Value:
    """The float op itself, evaluated on all 256 values that operand `data` can have; other operands are scalars."""
    x = low.request(op.operands[data])
    reals = low.meanings(low.format_of(x)).reshape(1, 1, 1, 256)
    arguments = [
        reals if i == data else low.need_constant(value, "second operand") for i, value in enumerate(op.operands)
    ]
    probe = find_op(op.opname)([_detached(a.shape) for a in arguments], op.attributes)
    with np.errstate(all="ignore"):
        values = np.asarray(probe.evaluate(*arguments)).reshape(256)
    most = low.top(low.wanted(op.result))
    finite = np.nan_to_num(values, nan=0.0, posinf=most, neginf=-most)
    wanted = low.table_format(op.result, finite)
    table = low.constant_in(low.table_integers(op, finite, wanted), None, wanted)
    return low.emit("lut", [x, table], {}, wanted)


COMMON.converts(FloatUnary, scaling=Scaling.FREE)(by_table)


def _detached(shape: Sequence[int]) -> Value:
    """A float value outside any function, to evaluate an op on."""
    return Value(TensorType(tuple(shape)), Block(), 0)
