"""What an op means on bf16, a type that numpy does not compute with: its f32 form, results rounded once."""

from __future__ import annotations

from typing import Any

from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp

BF16 = "bf16"


def meaning(op: TensorOp, *arrays: Array) -> Array | tuple[Array, ...]:
    """`op.evaluate`; operands of bf16 count as f32, and results of that type are rounded to the nearest, ties to even.

    Ops on the bits of elements (`reads_bits`) and ops without bf16 are evaluated as they are.
    """
    values = (*op.operands, *op.results)
    if op.reads_bits or not any(value.dtype == BF16 for value in values):
        return op.evaluate(*arrays)
    out = op.evaluate(*(a.astype("float32") if v.dtype == BF16 else a for v, a in zip(op.operands, arrays)))
    if isinstance(out, tuple):
        return tuple(map(_declared, op.results, out))
    return _declared(op.results[0], out)


def _declared(value: Any, array: Array) -> Any:
    return array.astype(value.type.numpy) if value.dtype == BF16 else array
