"""What only moves elements moves them behind the cast that makes them narrower: fewer bytes are stored and read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from bmcompiler.codegen.memory import root_of
from bmcompiler.conditions import NO_GROUPS
from bmcompiler.ir import Operation, Rewriter, Value
from bmcompiler.ir.keys import PLACE_CPU, TENSOR_NAME
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.places.shape import Concat, Interleave, Permute, Reshape, Tile, Upsample
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, declared, forward, make, on, rebuild, sole
from bmcompiler.target import unsupported_reason


@dataclass(frozen=True)
class NarrowMoves(TargetPatternPass):
    """Elements are cast to fewer bytes before they are moved. Each is rounded once, as before.

    1. cast to fewer bytes of a permute, concat, interleave, upsample or tile, reshapes between them, that nobody else
       reads : the same of what its operands are cast to
    2. other casts to that type of what rule 1 casts, or of a reshape of it : that cast, or the reshape of it
    Rule 1 is done where the target moves the narrow elements in no more time: in local memory where it moves the wide
    ones there.
    """

    name = "narrow-moves"
    requires = (NO_GROUPS,)
    loses_bits = False

    def table(self) -> PatternTable:
        return on(Cast, self.before_move)

    def before_move(self, op: Cast, rewriter: Rewriter) -> bool:
        """Rule 1, and rule 2 for what it makes."""
        value = op.operands[0]
        while (shaped := sole(value, Reshape)) is not None:
            value = shaped.operands[0]
        move = sole(value, Permute, Concat) or sole(value, Interleave, Upsample) or sole(value, Tile)
        if move is None or not self._can_move(op, move):
            return False
        casts = {x: _like(op, x) for x in move.operands}
        narrow = _of(move, [casts[x].result for x in move.operands])
        if not self._is_no_slower(narrow, move, casts.values()):
            for each in (narrow, *casts.values()):
                each.drop_operands()
            return False
        for x, cast in casts.items():
            rewriter.insert_before(_behind(x, move), cast, is_part=True)
        rewriter.insert_before(op, narrow, move)
        rewriter.replace_with(op, _shaped(op, narrow.result))
        for x, cast in casts.items():
            _share(x, cast, rewriter)
        return True

    def _can_move(self, op: Cast, move: TensorOp) -> bool:
        """Whether a move of all that it reads, and of no more elements, can be one of what that is cast to."""
        narrower = op.type.numpy.itemsize < move.type.numpy.itemsize
        placed = any(PLACE_CPU in each.attributes for each in (op, move))
        fixed = any(self.constant(x) is not None for x in move.operands)
        return narrower and not placed and not fixed and sum(x.type.size for x in move.operands) <= move.type.size

    def _is_no_slower(self, narrow: TensorOp, move: TensorOp, casts: Iterable[TensorOp]) -> bool:
        """Whether the target takes the narrow move, in local memory if it took the wide one there, in no more time."""
        if any(unsupported_reason(self.target, each) is not None for each in (narrow, *casts)):
            return False
        if self.target.local_cycles(narrow) is None and any(root_of(x).op is None for x in move.operands):
            return False  # an input would be stored once more
        ask = self.target.moving_cycles if self.target.local_cycles(move) is None else self.target.local_cycles
        before, after = ask(move), ask(narrow)
        return before is None or (after is not None and after <= before)


def _like(op: Cast, x: Value) -> Cast:
    """The same cast of another value."""
    cast = rebuild(op, [x])
    cast.attributes.pop(TENSOR_NAME, None)
    return cast


def _of(move: TensorOp, operands: Sequence[Value]) -> TensorOp:
    """The same move of values of another type."""
    return make(move.opname, operands, declared(move), None, move.location)


def _shaped(op: TensorOp, value: Value) -> TensorOp:
    """What has the elements of a value, in place of an op."""
    return make("reshape", [value], {"shape": op.type.shape}, None, op.location)


def _behind(x: Value, reader: Operation) -> Operation:
    """The op before which a cast of `x` stands: right behind what makes it, as others need not wait for more bytes."""
    block = reader.parent
    assert block is not None, "what is rewritten is in a block"
    if x.op is None or x.op.parent is not block:
        return reader
    return block.ops[block.ops.index(x.op) + 1]


def _share(x: Value, cast: Cast, rewriter: Rewriter) -> None:
    """Rule 2, for all that reads `x` behind its cast, and for equal casts of it."""
    if x.op is None or x.op.parent is not cast.parent:
        return
    for user in [user for user in x.users if user is not cast and user not in rewriter.erased]:
        if _is_like(user, cast):
            forward(user, cast.result, rewriter)
        elif isinstance(user, Reshape):
            for reader in [reader for reader in user.result.users if _is_like(reader, cast)]:
                rewriter.replace_with(reader, _shaped(reader, cast.result))


def _is_like(op: Operation, cast: Cast) -> TypeGuard[Cast]:
    """Whether an op casts as `cast` does."""
    return isinstance(op, Cast) and PLACE_CPU not in op.attributes and declared(op) == declared(cast)
