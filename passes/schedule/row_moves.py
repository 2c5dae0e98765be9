"""What moves of rows into other orders cost: bytes that gathers store and load."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bmcompiler.ir import Operation, Value
from bmcompiler.ir.keys import is_return
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.elements.linear_quant import Dequantize, Quantize
from bmcompiler.ops.places.shape import Reshape
from bmcompiler.passes.schedule.row_blocks import RowBlock
from bmcompiler.passes.schedule.row_orders import RowOrders, restores

_TWICE = 2
"""What leaves the net is stored in its own order, read in the other one and stored: so much more than a load."""


def moved_bytes(rows: RowOrders, block: RowBlock, back: np.ndarray | None) -> int:
    """Bytes that gathers around a block store and load, as it is or (back) with rows in their order before."""
    total, seen = 0, set[Value]()
    for root in map(rows.root, block.read):
        if root in seen:
            continue
        seen.add(root)
        order = rows.order(root.op)
        if back is None:
            total += root.type.nbytes if order is not None else 0
        elif order is not None:
            total += root.type.nbytes * (not restores(order[back]))
        elif root.op is not None and rows.ordered_before(root, back) is None:  # inputs are loaded anyway
            total += root.type.nbytes
    for given, values in block.given.items():
        total += given.type.nbytes * _gathers(rows, values, block, back)
    return total


def _gathers(rows: RowOrders, values: Iterable[Value], block: RowBlock, back: np.ndarray | None) -> int:
    """Gathers of rows of the block, those before an output of the net twice."""
    orders = [(user, rows.order(user)) for value in values for user in block.outside(value)]
    if back is None:
        return sum(order is not None for _, order in orders)
    others = [user for user, order in orders if order is None]
    front = np.argsort(back)
    own = sum(order is not None and not restores(front[order]) for _, order in orders)
    return own + (_TWICE if any(map(_leaves, others)) else bool(others))


def _leaves(op: Operation) -> bool:
    """Whether an op is the net's return, or changes the type or shape of what is returned."""
    waiting = [op]
    while waiting:
        each = waiting.pop()
        if is_return(each):
            return True
        if isinstance(each, Cast | Reshape | Quantize | Dequantize):
            waiting += each.results[0].users
    return False
