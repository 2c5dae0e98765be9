"""Pattern rewriting: patterns applied until none fires."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bmcompiler.ir.carrying import Need, carry_macs, need_of, stand_for
from bmcompiler.ir.core import Block, Function, Operation, Value
from bmcompiler.ir.keys import MACS, TENSOR_NAME, WEIGHT, is_return

Pattern = Callable[[Operation, "Rewriter"], bool]
"""Looks at one op; changes the IR through the rewriter and returns True, or returns False and changes nothing."""


class Rewriter:
    """The hands of a pattern. Keeps use lists right and tells the driver what to look at again."""

    def __init__(self) -> None:
        self.touched: list[Operation] = []
        self.erased: set[Operation] = set()
        self._made: list[Operation] = []
        self._gone: list[Need] = []
        self._freed: list[Operation] = []
        self._replaced: list[tuple[Operation, Operation | None]] = []
        self._said: set[Operation] = set()
        """What is said to stand for others, and these."""

    def insert_before(
        self, anchor: Operation, op: Operation, *stands_for: Operation, is_part: bool = False
    ) -> Operation:
        """Put an op before another one; returns it.

        stands_for: what it takes the place of, in source order, where it is not what their results are replaced by; it
        has their names then. is_part: as one of several ops, so that its result is none of theirs.
        """
        block = _block_of(anchor)
        if stands_for:
            stand_for(op, *stands_for)
            self._said.update((op,) if is_part else (op, *stands_for))
        if is_part:
            op.attributes.pop(TENSOR_NAME, None)
        self.touched.append(op)
        self._made.append(op)
        return block.insert_before(anchor, op)

    def replace(self, op: Operation, values: Sequence[Value]) -> None:
        """Let `values` stand for the results of `op`, and erase it. What makes them carries on its names."""
        for old, new in zip(op.results, values, strict=True):
            self.touched += old.users
            old.replace_all_uses_with(new)
        self._replaced.append((op, values[-1].op))
        self.erase(op)

    def replace_with(self, op: Operation, *new: Operation, absorbed: Sequence[Operation] = ()) -> None:
        """Insert `new` before `op`; the last one's results take its place.

        absorbed: ops before it, in source order, that this last one stands for, too, whoever else still reads them.
        """
        for each in new:
            each.location = each.location or op.location
            self.insert_before(op, each, *((*absorbed, op) if absorbed and each is new[-1] else ()))
        self.replace(op, new[-1].results)

    def erase(self, op: Operation) -> None:
        """Erase an op without uses; its producers are looked at again (they may be dead now)."""
        makers = [value.op for value in op.operands if value.op is not None]
        self.touched += makers
        self._freed += makers
        self._gone.append(need_of(op))
        op.erase()
        self.erased.add(op)

    def changed(self, op: Operation) -> None:
        """Say that operands or attributes of `op` were changed in place."""
        self.touched.append(op)
        for result in op.results:
            self.touched += result.users

    def settle(self) -> None:
        """After a rewrite: what was inserted carries what those carried that go (`bmcompiler.ir.carrying`)."""
        made = [op for op in self._made if op not in self.erased]
        dead: set[Operation] = set()
        while self._freed:
            op = self._freed.pop()
            if op in self.erased or op in dead or any(user not in dead for value in op.results for user in value.users):
                continue
            dead.add(op)
            self._freed += [value.op for value in op.operands if value.op is not None]
        self._carry_names([op for op in made if op.name != WEIGHT], dead)
        if self._gone and any(op.name != WEIGHT for op in made):
            carry_macs([*self._gone, *map(need_of, dead)], made)
            for op in dead.difference(made):
                if op.macs():
                    op.attributes[MACS] = 0
        self._made, self._gone = [], []

    def _carry_names(self, made: Sequence[Operation], dead: set[Operation]) -> None:
        """Rule 2 of `bmcompiler.ir.carrying`."""
        for op, new in self._replaced:
            if new is None or new not in made or not self._said.isdisjoint((op, new)):
                continue
            borne = {layer for each in made if each is not new for layer in each.location}
            going = [each for each in _block_of(new).ops if each in dead] if dead else []
            stand_for(new, *(each for each in going if each.name != WEIGHT and not borne.issuperset(each.location)), op)
        self._replaced, self._said = [], set()


def apply_patterns(function: Function, patterns: Iterable[Pattern], max_rewrites: int = 1_000_000) -> bool:
    """Apply `patterns` to all ops until none fires; True when something changed.

    Raises RuntimeError after `max_rewrites` rewrites: two patterns that undo each other are a bug of the compiler.
    """
    tried = list(patterns)
    work = list(reversed(list(function.walk())))
    queued = set(work)
    rewriter = Rewriter()
    count = 0
    while work:
        op = work.pop()
        queued.discard(op)
        if op in rewriter.erased:
            continue
        for pattern in tried:
            if not pattern(op, rewriter):
                continue
            count += 1
            if count > max_rewrites:
                raise RuntimeError(f"patterns do not settle in function {function.name} (last: {op.label})")
            rewriter.settle()
            again = [*rewriter.touched, op]
            rewriter.touched = []
            for each in again:
                if each not in rewriter.erased and each not in queued:
                    work.append(each)
                    queued.add(each)
            break
    return count > 0


def erase_dead(function: Function) -> bool:
    """Erase ops whose results nobody uses (every TensorOp is free of side effects). True when something went."""
    changed = False
    for op in reversed(list(function.ops)):
        if not is_return(op) and not any(result.uses for result in op.results):
            op.erase()
            changed = True
    return changed


def _block_of(op: Operation) -> Block:
    if op.parent is None:
        raise ValueError(f"{op.label} is in no block")
    return op.parent
