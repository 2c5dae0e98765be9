"""Which ops between two gathers do the same with each row, so that the order of these matters to none of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bmcompiler.ir import Operation, Value
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.elements.linear_quant import Dequantize, Quantize
from bmcompiler.ops.places.index import Gather
from bmcompiler.ops.places.shape import Reshape
from bmcompiler.passes.schedule.row_orders import RowOrders


@dataclass
class RowBlock:
    """Ops that do the same with each row, as they stand behind one gather.

    Attributes:
        ops: in source order.
        read: values of others that they read in the order of that gather.
        given: rows of theirs that others read, and the values that these read of them.
    """

    ops: dict[Operation, None] = field(default_factory=dict)
    read: dict[Value, None] = field(default_factory=dict)
    given: dict[Value, list[Value]] = field(default_factory=dict)

    def outside(self, value: Value) -> list[Operation]:
        """Others that read a value."""
        return [user for user in value.users if user not in self.ops]


class RowBlocks:
    """Finds the block behind each gather of a module."""

    def __init__(self, rows: RowOrders) -> None:
        self.rows = rows

    def behind(self, gather: Gather, back: np.ndarray) -> RowBlock:
        """The block of a gather; back: the order that takes its order back."""
        block, at = RowBlock(), _positions(gather)
        self._follow(gather, _behind(gather), block)
        for op in _before(gather):
            if self.rows.is_order(op, back):
                self._precede(op, block)
        self._take_makers(block)
        for op in sorted(block.ops, key=at.__getitem__, reverse=True):
            if self._only_widens(op, block):
                del block.ops[op]
        for op in block.ops:
            block.read |= {x: None for x in self.rows.moving(op) if x.op not in block.ops}
            if block.outside(op.results[0]):
                block.given.setdefault(self.rows.root(op.results[0]), []).append(op.results[0])
        return block

    def _follow(self, gather: Gather, behind: set[Operation], block: RowBlock) -> None:
        """Ops behind the gather, but those before the next one, and those that read what that one gives."""
        leading: dict[Operation, bool] = {}
        found = list(gather.result.users)
        while found:
            op = found.pop()
            if op in block.ops or not self.rows.by_rows(op) or self._leads_to_gather(op, leading):
                continue
            makers = [self.rows.root(x).op for x in self.rows.moving(op)]
            if any(x is not gather and x in behind and self.rows.order(x) is not None for x in makers):
                continue
            block.ops[op] = None
            found += op.results[0].users

    def _leads_to_gather(self, op: Operation, known: dict[Operation, bool]) -> bool:
        """Whether an op is of one operand, and all that reads it puts its rows into another order, or is like it.

        `known` tells it of some ops, and is told of more. Chains may be longer than Python's stack.
        """
        waiting = [op]
        while waiting:
            each = waiting[-1]
            if not self.rows.by_rows(each) or not each.results[0].uses or len(self.rows.moving(each)) > 1:
                known[each] = False
            readers = [] if each in known else each.results[0].users
            users = [user for user in readers if self.rows.order(user) is None]
            unknown = [user for user in users if user not in known]
            if unknown:
                waiting += unknown
                continue
            known.setdefault(each, all(known[user] for user in users))
            waiting.pop()
        return known[op]

    def _precede(self, gather: Operation, block: RowBlock) -> None:
        """Ops of one operand before a gather into the order of the block, for it and the block alone."""
        op = gather.operands[0].op
        while op is not None and self.rows.by_rows(op) and len(moving := self.rows.moving(op)) == 1:
            if not all(user in block.ops or user is gather for user in op.results[0].users):
                return
            block.ops[op] = None
            op = moving[0].op

    def _only_widens(self, op: Operation, block: RowBlock) -> bool:
        """Whether an op at the end of a block has a result of no fewer bytes than the one operand it reads there."""
        (value, *others), users = self.rows.moving(op), op.results[0].users
        narrow = not others and value.type.nbytes <= op.results[0].type.nbytes
        return narrow and isinstance(op, Cast | Quantize | Dequantize | Reshape) and block.ops.keys().isdisjoint(users)

    def _take_makers(self, block: RowBlock) -> None:
        """Ops of one operand whose result is read in the block alone."""
        found = list(block.ops)
        while found:
            for op in [value.op for value in self.rows.moving(found.pop())]:
                if op is None or op in block.ops or not self.rows.by_rows(op) or len(self.rows.moving(op)) != 1:
                    continue
                if all(user in block.ops for user in op.results[0].users):
                    block.ops[op] = None
                    found.append(op)


def _behind(op: Operation) -> set[Operation]:
    """Ops that depend on an op."""
    found, known = list(op.results), set[Operation]()
    while found:
        for user in found.pop().users:
            if user not in known:
                known.add(user)
                found += user.results
    return known


def _before(op: Operation) -> dict[Operation, None]:
    """Ops that an op depends on, nearest first."""
    found, known = [op], dict[Operation, None]()
    for each in found:
        makers = [value.op for value in each.operands if value.op is not None and value.op not in known]
        known |= dict.fromkeys(makers)
        found += makers
    return known


def _positions(op: Operation) -> dict[Operation, int]:
    """The places of all ops that stand with an op, in source order."""
    assert op.parent is not None, "what is looked at is in a block"
    return {each: place for place, each in enumerate(op.parent.ops)}
