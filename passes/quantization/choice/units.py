"""Units: the parts of a net that a choice is made for, each as a whole."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from bmcompiler.ir import Function, Operation, Value
from bmcompiler.ir.keys import is_return
from bmcompiler.ops.modes import Products
from bmcompiler.passes.quantization.base import is_constant


@dataclass(frozen=True, eq=False)
class Unit:
    """An op, and the ops of one operand behind it that alone read what came before.

    ops: in order; only the first reads several computed values, only the last has several results or readers.
    """

    ops: tuple[Operation, ...]

    @property
    def head(self) -> Operation:
        """The first op, which decides."""
        return self.ops[0]

    @property
    def operands(self) -> list[Value]:
        """Computed values that the unit reads."""
        return [value for value in dict.fromkeys(self.head.operands) if not is_constant(value)]

    @property
    def results(self) -> Sequence[Value]:
        """What others read of it."""
        return self.ops[-1].results


def is_layer(op: Operation) -> bool:
    """Whether an op is one of those that cost most: each begins a unit."""
    return isinstance(op, Products)


def units(function: Function, integer: Container[Operation]) -> list[Unit]:
    """All computing ops of a function, in order; those of a unit are all in `integer`, or none is."""
    found, taken = [], set[Operation]()
    for op in function.ops[:-1]:
        if op in taken or not op.operands or not op.results:
            continue
        ops = [op]
        while (after := _behind(ops[-1])) is not None and (after in integer) == (op in integer):
            ops.append(after)
        taken.update(ops)
        found.append(Unit(tuple(ops)))
    return found


def _behind(op: Operation) -> Operation | None:
    """The op that alone reads the one result of `op`, if it reads nothing else that is computed."""
    if len(op.results) != 1 or len(op.result.uses) != 1:
        return None
    (user,) = op.result.users
    if is_return(user) or is_layer(user) or sum(not is_constant(v) for v in user.operands) != 1:
        return None
    return user
