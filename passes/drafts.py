"""Ops that are drafted to ask a target what they would save: cycles in local memory, functions behind an op."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from bmcompiler.ir import Block, Operation, TensorType, Value
from bmcompiler.ir.keys import PLACE_CPU, is_weight
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Convolution
from bmcompiler.ops.places.shape import Interleave, Reshape
from bmcompiler.passes.rewriting import declared, make
from bmcompiler.target import Target, unsupported_reason

_PARTS = (1, 2, 4, 8, 16, 32)
"""Parts of its rows in which a map may be computed, for an estimate."""


def cycles_saved(target: Target, old: Sequence[TensorOp], new: Sequence[TensorOp]) -> int:
    """Cycles that the draft `new`, which is forgotten, saves over `old`; 0 where the target has no estimate."""
    return next(savings(target, old, [new]))


def savings(target: Target, old: Sequence[TensorOp], drafts: Iterable[Sequence[TensorOp]]) -> Iterator[int]:
    """`cycles_saved` of each draft; `old` is estimated once."""
    before: dict[int, int | None] = {}
    for new in drafts:
        found = 0
        if all(unsupported_reason(target, op) is None for op in new):
            for parts in _PARTS:
                if parts not in before:
                    before[parts] = _cycles(target, old, parts)
                was = before[parts]
                after = None if was is None else _cycles(target, new, parts)
                if was is not None and after is not None:
                    found = was - after
                    break
        for op in reversed(new):
            op.drop_operands()
        yield found


def cycles_in_lanes(target: Target, ops: Sequence[TensorOp]) -> int | None:
    """Cycles of ops whose data is in local memory, in as few parts as can be; None where the target has no estimate."""
    if any(unsupported_reason(target, op) is not None for op in ops):
        return None
    return next((found for parts in _PARTS if (found := _cycles(target, ops, parts)) is not None), None)


def cycles_in_memory(target: Target, ops: Sequence[TensorOp]) -> int | None:
    """Cycles of ops from global memory to there; None where the target has no estimate."""
    if any(unsupported_reason(target, op) is not None for op in ops):
        return None
    found = [target.cycles(op) for op in ops]
    return None if None in found else sum(each or 0 for each in found)


def _cycles(target: Target, ops: Sequence[TensorOp], parts: int) -> int | None:
    total = 0
    for op in ops:
        cycles = target.local_cycles(op, parts)
        if cycles is not None and parts == 1 and op is not ops[0]:
            cycles += target.relayout_cycles(op)
        if cycles is None:
            cycles = _cycles_of_images(target, op, parts, behind=op is not ops[0])
        if cycles is None:
            return None
        total += cycles
    return total


def _cycles_of_images(target: Target, op: TensorOp, parts: int, behind: bool) -> int | None:
    """Of a layer whose maps lie otherwise than their rows can be cut, computed in parts of its batch."""
    images = op.results[0].shape[:1]
    of_images = isinstance(op, (Convolution, Interleave)) or (op.pointwise and not any(map(is_weight, op.operands)))
    if parts == 1 or not of_images or not images or images[0] % parts:
        return None

    def part(value: Value) -> TensorType:
        return value.type.with_shape((images[0] // parts, *value.shape[1:]))

    operands = [Block([part(op.operands[0])]).arguments[0], *op.operands[1:]]
    draft = make(op.opname, operands, declared(op), [part(value) for value in op.results])
    cycles = None if unsupported_reason(target, draft) is not None else target.local_cycles(draft)
    if cycles is not None and behind:
        cycles += target.relayout_cycles(draft)
    draft.drop_operands()
    return None if cycles is None else cycles * parts


def functions_behind(op: TensorOp) -> Iterator[TensorOp]:
    """The functions of one element that nobody but each next one reads, from the result of `op` on."""
    value = op.result
    while len(value.uses) == 1:
        (user,) = value.users
        if not isinstance(user, TensorOp) or not user.pointwise or user.operands[0] is not value:
            return
        if user.type.shape != value.type.shape or PLACE_CPU in user.attributes:
            return
        yield user
        value = user.result


def without_numbers(like: Value, shape: tuple[int, ...]) -> Value:
    """A constant of which only the element type is asked: scales along an axis would not fit another shape."""
    return make("weight", (), {"key": ""}, [TensorType(shape, like.dtype)]).result


def kind_of(op: Operation) -> Hashable:
    """What the cycles of an op depend on: all but factors."""
    attributes = ((name, value) for name, value in declared(op).items() if not isinstance(value, float))
    return op.name, repr(tuple(attributes)), tuple((value.shape, value.dtype) for value in (*op.operands, *op.results))


def origin_of(value: Value) -> Hashable:
    """What they depend on of an operand: the shapes that reshapes gave it since it was made, and what made it."""
    shapes = [value.shape]
    while isinstance(value.op, Reshape):
        value = value.op.operands[0]
        shapes.append(value.shape)
    return tuple(shapes), value.dtype, value.op and kind_of(value.op)
