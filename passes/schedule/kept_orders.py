"""Rows stay in the order that an attention left them in, where what follows does the same with each row."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Module, Operation, Rewriter, Value, apply_patterns, copy_module, erase_dead
from bmcompiler.ir.keys import TENSOR_NAME
from bmcompiler.ops.places.index import Gather
from bmcompiler.passes.layout.image_parts import least_cycles
from bmcompiler.passes.rewriting import make
from bmcompiler.passes.schedule.row_blocks import RowBlock, RowBlocks
from bmcompiler.passes.schedule.row_moves import moved_bytes
from bmcompiler.passes.schedule.row_orders import RowOrders, as_rows, restores
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.target import Target, unsupported_reason

_LEVEL = 1
"""Of the groups whose cycles decide: they are found in a third of the time of the best ones, and differ alike."""


@dataclass(frozen=True)
class KeptOrders(Pass):
    """Layers of windows (Swin) order rows before their attention and back behind it: one gather for both.

    1. ops that treat each row alike, behind a gather that puts rows into another order, up to the next one that does :
       the same of rows in the order before that gather, between a gather of what they read and one of what they give
    2. gather of a gather, both of whole rows : one; none where it restores the order
    It is done where no more bytes go through global memory, and where the plan of all layers takes no longer: rows that
    do not stay in local memory are stored and loaded anyway. If it takes longer for all, those of the most rows are
    asked for first. Bits stay.
    """

    name = "kept-orders"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        if ctx.target is None or not any(isinstance(op, Gather) for op in module.walk()):
            return PassResult(False)
        draft = copy_module(module)
        found = _kept(draft, ctx.target)
        chosen = _quicker(module, draft, found, ctx.target) if found else found
        return PassResult(bool(chosen and _kept(module, ctx.target, chosen)))


def _kept(module: Module, target: Target, counts: Collection[int] | None = None) -> list[int]:
    """Keep orders in a module, of so many rows or (None) of any; returns the numbers of rows that were kept."""
    work = _Orders(module, target, counts)
    for function in module.functions:
        apply_patterns(function, [lambda op, rewriter: isinstance(op, Gather) and work.kept(op, rewriter)])
        if work.found:
            erase_dead(function)
    return list(work.found)


def _quicker(module: Module, draft: Module, found: list[int], target: Target) -> list[int]:
    """The numbers of rows that are kept in their order with fewer cycles than without; all, if the target is silent."""

    def cycles(each: Module) -> float | None:
        taken = [least_cycles(function, target, _LEVEL) for function in each.functions]
        return sum(one or 0 for one in taken) if any(one is not None for one in taken) else None

    plain = copy_module(module)
    for function in plain.functions:
        erase_dead(function)
    before, after = cycles(plain), cycles(draft)
    if before is None or after is None or after <= before:
        return found
    chosen: list[int] = []
    for count in sorted(found, reverse=True) if len(found) > 1 else ():
        each = copy_module(module)
        _kept(each, target, [*chosen, count])
        after = cycles(each)
        if after is not None and after <= before:
            chosen, before = [*chosen, count], after
    return chosen


class _Orders:
    """The rewriting of one module; `found`: numbers of rows that are kept in their order."""

    def __init__(self, module: Module, target: Target, counts: Collection[int] | None) -> None:
        self.rows, self.target, self.counts = RowOrders(module), target, counts
        self.blocks, self.found = RowBlocks(self.rows), dict[int, None]()

    def kept(self, op: Gather, rewriter: Rewriter) -> bool:
        """Rules 1 and 2."""
        order = self.rows.order(op)
        if order is None or (self.counts is not None and order.size not in self.counts):
            return False
        back = np.argsort(order)
        block = self.blocks.behind(op, back)
        if not any(len(self.rows.moving(each)) > 1 for each in block.ops):
            return False
        if moved_bytes(self.rows, block, back) > moved_bytes(self.rows, block, None) or not self._takes(op, block):
            return False
        for value in block.read:
            self._enter(value, block, back, rewriter)
        for rows, values in block.given.items():
            self._leave(rows, values, block, order, rewriter)
        for value in block.read:  # at once: blocks that are looked at next count who reads a value
            _erase_unread(value.op, rewriter)
        self.found[order.size] = None
        return True

    def _takes(self, op: Gather, block: RowBlock) -> bool:
        """Whether the target takes gathers of all that the block reads and gives."""
        for value in (*map(self.rows.root, block.read), *block.given):
            flat = make("reshape", [value], {"shape": as_rows(value)})
            picked = make("gather", [flat.result, op.indices], {"axis": 0})
            reason = unsupported_reason(self.target, picked)
            picked.drop_operands()
            flat.drop_operands()
            if reason is not None:
                return False
        return True

    # -- rewriting ----------------------------------------------------------------------------------------------------
    def _enter(self, value: Value, block: RowBlock, back: np.ndarray, rewriter: Rewriter) -> None:
        """Let the block read a value in the order before the gather."""
        readers = [op for op in value.users if op in block.ops]
        anchor = min(readers, key=_position)
        _read(readers, value, self._ordered(self.rows.root(value), back, value.shape, anchor, rewriter), rewriter)

    def _leave(
        self, rows: Value, values: Iterable[Value], block: RowBlock, order: np.ndarray, rewriter: Rewriter
    ) -> None:
        """Let others read rows of the block in the order behind the gather."""
        readers = {value: block.outside(value) for value in values}
        for value, ops in readers.items():
            for op in ops[:]:
                found = self.rows.order(op)
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
        before = self.rows.order(value.op)
        if before is not None and value.op is not None:
            value, order = value.op.operands[0], before[order]
        location = value.op.location if value.op is not None else anchor.location
        known = self.rows.ordered_before(value, order)
        if known is not None and known.parent is anchor.parent and _position(known) < _position(anchor):
            value = known.results[0]
        elif not restores(order):
            flat = make("reshape", [value], {"shape": as_rows(value)}, None, location)
            rewriter.insert_before(anchor, flat)
            index = self.rows.weight(order.astype(np.int32), None, anchor, rewriter, f"{'+'.join(location[:1])}.order")
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
    waiting = [op]
    while waiting:
        each = waiting.pop()
        if each is None or each in rewriter.erased or any(result.uses for result in each.results):
            continue
        waiting += [value.op for value in each.operands]
        rewriter.erase(each)


def _position(op: Operation) -> int:
    assert op.parent is not None, "what is rewritten is in a block"
    return op.parent.ops.index(op)
