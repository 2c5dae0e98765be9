"""Operands of different shapes."""

from __future__ import annotations

from math import prod

from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.elementwise import Div, Mul
from bmcompiler.passes.rewriting import rebuild
from bmcompiler.passes.support.decompositions.base import Draft, legalizes, legalizes_broadcasting


@legalizes(Mul, integers=True)
def factor_per_row(op: Mul, draft: Draft) -> Value | None:
    """A factor with one value per leading position, repeated along the axes after it: channels of (1, C, 1, W)."""
    for factor, x in ((op.b, op.a), (op.a, op.b)):
        shape = (1,) * (x.type.rank - factor.type.rank) + factor.shape
        split = next((i for i, (d, whole) in enumerate(zip(shape, x.shape)) if d != whole), 0)
        if x.shape != op.type.shape or not split or any(d != 1 for d in shape[split:]):
            continue
        rows = prod(shape[:split])
        wide = draft.reshape(x, (1, rows, 1, x.type.size // rows))
        narrow = draft.reshape(factor, (1, rows, 1, 1))
        return draft.reshape(draft.like([wide, narrow]), op.type.shape)
    return None


@legalizes(Div)
def times_reciprocals(op: Div, draft: Draft) -> Value | None:
    """Division of floats by a constant tensor without zeros: multiplication by its reciprocals."""
    divisor = draft.constant(op.b)
    if divisor is None or divisor.dtype.kind != "f" or not divisor.all():
        return None
    return draft.emit("mul", [op.a, draft.weight((1.0 / divisor).astype(divisor.dtype), "reciprocals")])


@legalizes_broadcasting
def spread(op: TensorOp, draft: Draft) -> Value | None:
    """Operands that broadcast are repeated to the shape of the result."""
    if all(value.shape == op.type.shape for value in op.operands):
        return None
    return draft.add(rebuild(op, [_spread(value, op.type.shape, draft) for value in op.operands])).result


def _spread(value: Value, shape: tuple[int, ...], draft: Draft) -> Value:
    array = draft.constant(value)
    if value.shape == shape:
        return value
    if array is not None:
        import numpy as np

        return draft.weight(np.broadcast_to(array, shape).copy(), "spread")
    full = (1,) * (len(shape) - value.type.rank) + value.shape
    reps = tuple(whole // part for whole, part in zip(shape, full))
    x = draft.reshape(value, full)
    return x if x.shape == shape else draft.emit("tile", [x], reps=reps)
