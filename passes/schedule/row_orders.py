"""What rows are: values of whose elements the last axis is one row, and ops that do the same with each of them."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.ir import Operation, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.elements.linear_quant import Dequantize, Quantize
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.layers.norm import LastAxesNorm
from bmcompiler.ops.places.index import Gather
from bmcompiler.ops.places.shape import Reshape
from bmcompiler.passes.rewriting import Patterns


class RowOrders(Patterns):
    """The orders that rows of one module are put into."""

    def order(self, op: Operation | None) -> np.ndarray | None:
        """The order that a gather puts rows into; None for other ops, and where rows are left out or repeated."""
        if not isinstance(op, Gather) or op.x.type.rank != 2 or op.axis or PLACE_CPU in op.attributes:
            return None
        found = self.constant(op.indices)
        if found is None or found.shape != op.x.shape[:1] or not np.array_equal(np.sort(found), np.arange(found.size)):
            return None
        return found

    def orders_of(self, value: Value) -> list[Operation]:
        """What puts the rows of a value into other orders, the last one first, up to what makes these rows."""
        found: list[Operation] = []
        while value.op is not None and self.order(value.op) is not None:
            found.append(value.op)
            value = value.op.operands[0]
        return found

    def moving(self, op: Operation) -> list[Value]:
        """Operands that are no constants."""
        return [value for value in op.operands if self.constant(value) is None]

    def by_rows(self, op: Operation) -> bool:
        """Whether an op does the same with each row of its operands, whatever other rows there are."""
        if not isinstance(op, TensorOp) or PLACE_CPU in op.attributes or len(op.results) != 1 or not op.type.rank:
            return False
        moving = self.moving(op)
        if not moving or any(x.type.rank < 1 or count_rows(x) != count_rows(op.result) for x in moving):
            return False
        if isinstance(op, Cast | Quantize | Dequantize):
            return not any(x.type.quant is not None and x.type.quant.scales for x in (*op.operands, op.result))
        if isinstance(op, Reshape):
            return op.x.shape[-1:] == op.type.shape[-1:]
        if isinstance(op, LastAxesNorm):
            return op.axis % op.type.rank == op.type.rank - 1 and moving == [op.operands[0]]
        if isinstance(op, Matmul):
            return moving == [op.left] and op.right.type.rank == 2 and not op.transpose_left
        if op.broadcasts:
            constants = (x for x in op.operands if x not in moving)
            return all(x.shape == op.type.shape for x in moving) and all(count_rows(x) == 1 for x in constants)
        return op.pointwise and len(op.operands) == 1

    def root(self, value: Value) -> Value:
        """Whose rows a value has, in the same order."""
        while isinstance(value.op, Reshape) and self.by_rows(value.op):
            value = value.op.operands[0]
        return value

    def is_order(self, op: Operation | None, order: np.ndarray) -> bool:
        """Whether an op puts rows into this order."""
        found = self.order(op)
        return found is not None and np.array_equal(found, order)

    def ordered_before(self, value: Value, order: np.ndarray) -> Operation | None:
        """What puts rows into an order already."""
        waiting = list(reversed(value.users))
        while waiting:
            user = waiting.pop()
            if self.is_order(user, order):
                return user
            if isinstance(user, Reshape) and self.by_rows(user):
                waiting += reversed(user.result.users)
        return None


def count_rows(value: Value) -> int:
    """Rows of a value."""
    return prod(value.shape[:-1])


def as_rows(value: Value) -> tuple[int, int]:
    """The shape of a value as one matrix of its rows."""
    return count_rows(value), value.shape[-1]


def restores(order: np.ndarray) -> bool:
    """Whether an order leaves all rows where they are."""
    return bool(np.array_equal(order, np.arange(order.size)))
