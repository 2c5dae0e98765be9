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

    They are connected int8 ops without a convolution, product or custom layer, that

    1. get their data only from CPU layers, or
    2. only move data from inputs of the net to CPU layers.
    """
    return [op for island in _connected(function, accepted) if _pointless(island, accepted) for op in island]


def _pointless(island: list[Operation], accepted: set[Operation]) -> bool:
    if any(isinstance(op, Customized) or (isinstance(op, TensorOp) and op.affine) for op in island):
        return False
    if all(value.op is not None for op in island for value in _data(op)):
        return True
    moving = all(isinstance(op, Pad) or (isinstance(op, TensorOp) and op.moves_only) for op in island)
    return moving and any(
        user not in accepted and not is_return(user) for op in island for r in op.results for user in r.users
    )


def _data(op: Operation) -> Iterator[Value]:
    return (value for value in op.operands if not is_constant(value))


def _connected(function: Function, accepted: set[Operation]) -> list[list[Operation]]:
    """Int8 ops connected through their data, in order of the function."""
    root: dict[Operation, Operation] = {}

    def leader(op: Operation) -> Operation:
        while root[op] is not op:
            root[op] = op = root[root[op]]
        return op

    found = [op for op in function.ops if op in accepted]
    for op in found:
        root[op] = op
        for value in _data(op):
            if value.op in root:
                root[leader(value.op)] = op
    islands: dict[Operation, list[Operation]] = {}
    for op in found:
        islands.setdefault(leader(op), []).append(op)
    return list(islands.values())
