"""Rows stay in the order that an attention left them in, where what follows does the same with each row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

import numpy as np

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Operation, Rewriter, Value
from bmcompiler.ir.keys import PLACE_CPU, TENSOR_NAME, is_return
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.elements.linear_quant import Dequantize, Quantize
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.layers.norm import LastAxesNorm
from bmcompiler.ops.places.index import Gather
from bmcompiler.ops.places.shape import Reshape
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on
from bmcompiler.target import unsupported_reason

_TWICE = 2
"""What leaves the net is stored in its own order, read in the other one and stored: so much more than a load."""


@dataclass
class _Block:
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


@dataclass(frozen=True)
class KeptOrders(TargetPatternPass):
    """Layers of windows (Swin) order rows before their attention and back behind it: one gather for both.

    1. ops that treat each row alike, behind a gather that puts rows into another order, up to the next one that does :
       the same of rows in the order before that gather, between a gather of what they read and one of what they give
    2. gather of a gather, both of whole rows : one; none where it restores the order
    It is done where no more bytes go through global memory. Bits stay.
    """

    name = "kept-orders"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return {**on(Gather, self.kept)}

    def kept(self, op: Gather, rewriter: Rewriter) -> bool:
        """Rules 1 and 2."""
        order = self._order(op)
        if order is None:
            return False
        back = np.argsort(order)
        block = self._block(op, back)
        if not any(len(self._moving(each)) > 1 for each in block.ops):
            return False
        if self._bytes(block, back) > self._bytes(block, None) or not self._takes(op, block):
            return False
        for value in block.read:
            self._enter(value, block, back, rewriter)
        for rows, values in block.given.items():
            self._leave(rows, values, block, order, rewriter)
        for value in block.read:  # at once: blocks that are looked at next count who reads a value
            _erase_unread(value.op, rewriter)
        return True

    # -- what rows are ------------------------------------------------------------------------------------------------
    def _order(self, op: Operation | None) -> np.ndarray | None:
        """The order that a gather puts rows into; None for other ops, and where rows are left out or repeated."""
        if not isinstance(op, Gather) or op.x.type.rank != 2 or op.axis or PLACE_CPU in op.attributes:
            return None
        found = self.constant(op.indices)
        if found is None or found.shape != op.x.shape[:1] or not np.array_equal(np.sort(found), np.arange(found.size)):
            return None
        return found

    def _moving(self, op: Operation) -> list[Value]:
        """Operands that are no constants."""
        return [value for value in op.operands if self.constant(value) is None]

    def _by_rows(self, op: Operation) -> bool:
        """Whether an op does the same with each row of its operands, whatever other rows there are."""
        if not isinstance(op, TensorOp) or PLACE_CPU in op.attributes or len(op.results) != 1 or not op.type.rank:
            return False
        moving = self._moving(op)
        if not moving or any(x.type.rank < 1 or _count(x) != _count(op.result) for x in moving):
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
            return all(x.shape == op.type.shape for x in moving) and all(_count(x) == 1 for x in constants)
        return op.pointwise and len(op.operands) == 1

    def _root(self, value: Value) -> Value:
        """Whose rows a value has, in the same order."""
        while isinstance(value.op, Reshape) and self._by_rows(value.op):
            value = value.op.operands[0]
        return value

    # -- blocks -------------------------------------------------------------------------------------------------------
    def _block(self, gather: Gather, back: np.ndarray) -> _Block:
        block = _Block()
        behind = _behind(gather)
        self._follow(gather, behind, block)
        for op in _before(gather):
            if self._is_order(op, back):
                self._precede(op, block)
        while self._take_makers(block):
            pass
        for op in sorted(block.ops, key=_position, reverse=True):
            if self._only_widens(op, block):
                del block.ops[op]
        for op in block.ops:
            block.read |= {x: None for x in self._moving(op) if x.op not in block.ops}
            if block.outside(op.results[0]):
                block.given.setdefault(self._root(op.results[0]), []).append(op.results[0])
        return block

    def _is_order(self, op: Operation, order: np.ndarray) -> bool:
        found = self._order(op)
        return found is not None and np.array_equal(found, order)

    def _follow(self, gather: Gather, behind: set[Operation], block: _Block) -> None:
        """Ops behind the gather, but those before the next one, and those that read what that one gives."""
        leading: dict[Operation, bool] = {}
        found = list(gather.result.users)
        while found:
            op = found.pop()
            if op in block.ops or not self._by_rows(op) or self._leads_to_gather(op, leading):
                continue
            makers = (self._root(x).op for x in self._moving(op))
            if any(x is not gather and x in behind and self._order(x) is not None for x in makers):
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
            if not self._by_rows(each) or not each.results[0].uses or len(self._moving(each)) > 1:
                known[each] = False
            users = [user for user in each.results[0].users if self._order(user) is None] if each not in known else []
            unknown = [user for user in users if user not in known]
            if unknown:
                waiting += unknown
                continue
            known.setdefault(each, all(known[user] for user in users))
            waiting.pop()
        return known[op]

    def _precede(self, gather: Operation, block: _Block) -> None:
        """Ops of one operand before a gather into the order of the block, for it and the block alone."""
        op = gather.operands[0].op
        while op is not None and self._by_rows(op) and len(moving := self._moving(op)) == 1:
            if not all(user in block.ops or user is gather for user in op.results[0].users):
                return
            block.ops[op] = None
            op = moving[0].op

    def _only_widens(self, op: Operation, block: _Block) -> bool:
        """Whether an op at the end of a block has a result of no fewer bytes than the one operand it reads there."""
        (value, *others), users = self._moving(op), op.results[0].users
        narrow = not others and value.type.nbytes <= op.results[0].type.nbytes
        return narrow and isinstance(op, Cast | Quantize | Dequantize | Reshape) and block.ops.keys().isdisjoint(users)

    def _take_makers(self, block: _Block) -> bool:
        """Ops of one operand whose result is read in the block alone."""
        for op in [value.op for each in block.ops for value in self._moving(each)]:
            if op is None or op in block.ops or not self._by_rows(op) or len(self._moving(op)) != 1:
                continue
            if all(user in block.ops for user in op.results[0].users):
                block.ops[op] = None
                return True
        return False

    # -- what it costs ------------------------------------------------------------------------------------------------
    def _bytes(self, block: _Block, back: np.ndarray | None) -> int:
        """Bytes that gathers around a block store and load, as it is or (back) with rows in their order before."""
        total, seen = 0, set[Value]()
        for root in map(self._root, block.read):
            if root in seen:
                continue
            seen.add(root)
            order = self._order(root.op)
            if back is None:
                total += root.type.nbytes if order is not None else 0
            elif order is not None:
                total += root.type.nbytes * (not _restores(order[back]))
            elif root.op is not None and self._ordered_before(root, back) is None:  # inputs are loaded anyway
                total += root.type.nbytes
        for rows, values in block.given.items():
            total += rows.type.nbytes * self._gathers(values, block, back)
        return total

    def _ordered_before(self, value: Value, order: np.ndarray) -> Operation | None:
        """What puts rows into an order already."""
        for user in value.users:
            if self._is_order(user, order):
                return user
            if isinstance(user, Reshape) and self._by_rows(user):
                found = self._ordered_before(user.result, order)
                if found is not None:
                    return found
        return None

    def _gathers(self, values: Iterable[Value], block: _Block, back: np.ndarray | None) -> int:
        """Gathers of rows of the block, those before an output of the net twice."""
        orders = [(user, self._order(user)) for value in values for user in block.outside(value)]
        if back is None:
            return sum(order is not None for _, order in orders)
        others = [user for user, order in orders if order is None]
        front = np.argsort(back)
        own = sum(order is not None and not _restores(front[order]) for _, order in orders)
        return own + (_TWICE if any(map(_leaves, others)) else bool(others))

    def _takes(self, op: Gather, block: _Block) -> bool:
        """Whether the target takes gathers of all that the block reads and gives."""
        for value in (*map(self._root, block.read), *block.given):
            flat = make("reshape", [value], {"shape": _rows(value)})
            picked = make("gather", [flat.result, op.indices], {"axis": 0})
            reason = unsupported_reason(self.target, picked)
            picked.drop_operands()
            flat.drop_operands()
            if reason is not None:
                return False
        return True

    # -- rewriting ----------------------------------------------------------------------------------------------------
    def _enter(self, value: Value, block: _Block, back: np.ndarray, rewriter: Rewriter) -> None:
        """Let the block read a value in the order before the gather."""
        readers = [op for op in value.users if op in block.ops]
        anchor = min(readers, key=_position)
        _read(readers, value, self._ordered(self._root(value), back, value.shape, anchor, rewriter), rewriter)

    def _leave(
        self, rows: Value, values: Iterable[Value], block: _Block, order: np.ndarray, rewriter: Rewriter
    ) -> None:
        """Let others read rows of the block in the order behind the gather."""
        readers = {value: block.outside(value) for value in values}
        for value, ops in readers.items():
            for op in ops[:]:
                found = self._order(op)
                if found is not None:
                    made = self._ordered(value, order[found], op.results[0].shape, op, rewriter)
                    rewriter.replace(op, [made])
                    ops.remove(op)
        anchors = [op for ops in readers.values() for op in ops]
        if not anchors:
            return
        anchor = min(anchors, key=_position)
        picked = self._ordered(rows, order, rows.shape, anchor, rewriter)
        for value, ops in readers.items():
            shaped = make("reshape", [picked], {"shape": value.shape}, None, picked.op.location if picked.op else ())
            rewriter.insert_before(anchor, shaped)
            assert value.op is not None, "the block made it"
            name = value.op.attributes.pop(TENSOR_NAME, None)
            if name is not None:
                shaped.attributes[TENSOR_NAME] = name
            _read(ops, value, shaped.result, rewriter)

    def _ordered(
        self, value: Value, order: np.ndarray, shape: tuple[int, ...], anchor: Operation, rewriter: Rewriter
    ) -> Value:
        """The rows of a value in an order, as `shape`; of a gather's result those of what that reads."""
        before = self._order(value.op)
        if before is not None and value.op is not None:
            value, order = value.op.operands[0], before[order]
        location = value.op.location if value.op is not None else anchor.location
        known = self._ordered_before(value, order)
        if known is not None and known.parent is anchor.parent and _position(known) < _position(anchor):
            value = known.results[0]
        elif not _restores(order):
            flat = make("reshape", [value], {"shape": _rows(value)}, None, location)
            rewriter.insert_before(anchor, flat)
            index = self.weight(order.astype(np.int32), None, anchor, rewriter, f"{'+'.join(location[:1])}.order")
            picked = make("gather", [flat.result, index], {"axis": 0}, None, location)
            rewriter.insert_before(anchor, picked)
            value = picked.result
        shaped = make("reshape", [value], {"shape": shape}, None, location)
        rewriter.insert_before(anchor, shaped)
        return shaped.result


def _read(readers: Iterable[Operation], value: Value, other: Value, rewriter: Rewriter) -> None:
    """Let ops read another value in place of one."""
    for op in readers:
        for index, operand in enumerate(op.operands):
            if operand is value:
                op.set_operand(index, other)
        rewriter.changed(op)


def _erase_unread(op: Operation | None, rewriter: Rewriter) -> None:
    """Erase an op whose results nobody reads, and what it alone read."""
    if op is None or op in rewriter.erased or any(result.uses for result in op.results):
        return
    makers = [value.op for value in op.operands]
    rewriter.erase(op)
    for maker in makers:
        _erase_unread(maker, rewriter)


def _count(value: Value) -> int:
    """Rows of a value."""
    return prod(value.shape[:-1])


def _rows(value: Value) -> tuple[int, int]:
    return _count(value), value.shape[-1]


def _restores(order: np.ndarray) -> bool:
    return bool(np.array_equal(order, np.arange(order.size)))


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


def _leaves(op: Operation) -> bool:
    """Whether an op is the net's return, or changes the type or shape of what is returned."""
    if is_return(op):
        return True
    return isinstance(op, Cast | Reshape | Quantize | Dequantize) and any(map(_leaves, op.results[0].users))


def _position(op: Operation) -> int:
    assert op.parent is not None, "what is rewritten is in a block"
    return op.parent.ops.index(op)
