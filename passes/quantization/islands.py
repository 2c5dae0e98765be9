"""Int8 ops that are not worth the way to int8 and back."""

from __future__ import annotations

from collections.abc import Iterator

from bmcompiler.ir import Function, Operation, Value
from bmcompiler.ir.keys import is_return
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.custom import Customized
from bmcompiler.ops.places.shape import Pad
from bmcompiler.passes.quantization.base import is_constant


def pointless_islands(function: Function, accepted: set[Operation]) -> list[Operation]:
    """Ops to take back to float.

    They are connected groups of int8 ops without a convolution, product or custom layer, that

    1. get their data only from CPU layers, or
    2. only move data from inputs of the net to CPU layers.
    """
    return [op for group in _groups(function, accepted) if _pointless(group, accepted) for op in group]


def _pointless(group: list[Operation], accepted: set[Operation]) -> bool:
    if any(isinstance(op, Customized) or (isinstance(op, TensorOp) and op.affine) for op in group):
        return False
    if all(value.op is not None for op in group for value in _data(op)):
        return True
    moving = all(isinstance(op, Pad) or (isinstance(op, TensorOp) and op.moves_only) for op in group)
    return moving and any(
        user not in accepted and not is_return(user) for op in group for r in op.results for user in r.users
    )


def _data(op: Operation) -> Iterator[Value]:
    return (value for value in op.operands if not is_constant(value))


def _groups(function: Function, accepted: set[Operation]) -> list[list[Operation]]:
    """Int8 ops connected through their data, in order of the function."""
    group_of: dict[Operation, list[Operation]] = {}
    for op in function.ops:
        if op not in accepted:
            continue
        merged = [op]
        for producer in [value.op for value in _data(op) if value.op in accepted]:
            other = group_of[producer]
            if other is not merged:
                merged = other + merged if len(other) >= len(merged) else merged + other
                for member in merged:
                    group_of[member] = merged
        for member in merged:
            group_of[member] = merged
    unique = {id(group): group for group in group_of.values()}
    return list(unique.values())
