"""Moves of single elements as several moves of long runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, prod
from typing import get_args

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ir.keys import PLACE_CPU, TENSOR_NAME
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.places.index import Gather
from bmcompiler.ops.places.shape import Concat, Permute, Reshape, Slice, Split, Tile
from bmcompiler.passes.drafts import origin_of
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on, rebuild
from bmcompiler.passes.support.pixel_shuffles import composed
from bmcompiler.target import Target, unsupported_reason

_Picking = Gather | Concat | Slice | Split | Tile
Order = tuple[int, ...]
Shape = tuple[int, ...]

_GAIN = 1.5
"""How many times less several moves must take: in between, values lie in global memory."""
_RUN = 64
"""Elements of a run that takes about as long as its bytes."""
_LEAST = 1 << 7
"""Elements below which the starts of commands, which targets may leave out, count more."""
_SHORT = 8
"""Elements of a run that other ops do not leave in local memory, nor read there: units of lanes would have no work."""
_MOST_AXES, _MOST_ASKED = 6, 12
"""Axes of a permute that is looked at, and ways that the target is asked about."""


@dataclass(frozen=True)
class LongRuns(TargetPatternPass):
    """Memory moves runs: a single element takes as long as many neighbours.

    1. permute that parts elements from their neighbours : two or three permutes, each of which transposes matrices or
       moves longer runs
    2. gather by constants, concat, split, or slice or tile of one axis, with few elements behind each index of it :
       operands with that axis in front, the op along axis 0, and a permute back
    3. permute, a reshape that parts or joins axes, permute : one permute of the pieces of axes that both leave whole
    4. tile of several axes : a tile of the last of them, then one of the others, which repeats its runs
    It is done where the target says that they take less time (`Target.moving_cycles`). Values only move.
    """

    name = "long-runs"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return {
            **on(Permute, self.joined, self.steps),
            **on(Gather, self.in_front),
            **on(Concat, self.in_front),
            **on(Slice, self.in_front),
            **on(Split, self.in_front),
            **on(Tile, self.last_first, self.in_front),
        }

    def steps(self, op: Permute, rewriter: Rewriter) -> bool:
        """Rule 1."""
        shape, order = merged(op.operands[0].shape, tuple(op.order))
        short = min(shape[-1], shape[order[-1]]) < _SHORT
        if (
            PLACE_CPU in op.attributes
            or op.type.size < _LEAST
            or not 3 <= len(order) <= _MOST_AXES
            or (_transposes(order) and not short)
        ):
            return False
        lanes = None if short else self.target.local_cycles(op)
        known = [cycles for cycles in (self.target.moving_cycles(op), lanes) if cycles]
        if not known:
            return False
        fewest, best = _quickest(self.target, op, shape, order)
        if fewest * _GAIN >= min(known):
            return False
        made = _ops(op, shape, best)
        for each in made[:-1]:
            rewriter.insert_before(op, each)
        rewriter.replace_with(op, made[-1])
        return True

    def joined(self, op: Permute, rewriter: Rewriter) -> bool:
        """Rule 3, from the first permute on: steps of its own would hide it."""
        value, between = op.result, list[Reshape]()
        while len(value.uses) == 1 and isinstance(user := next(iter(value.users)), Reshape):
            value = user.result
            between.append(user)
        second = next(iter(value.users), None)
        if len(value.uses) != 1 or not isinstance(second, Permute) or op.type.size < _LEAST:
            return False
        whole = composed(op, second)
        if whole is None or any(PLACE_CPU in each.attributes for each in (op, second)):
            return False
        cells = make("reshape", [op.operands[0]], {"shape": whole[0]}, None, op.location)
        one = Permute([cells.result], {"order": whole[1]}, None, op.location)
        shaped = make("reshape", [one.result], {"shape": second.type.shape}, None, second.location)
        if moving_time(self.target, one) >= sum(_least_time(self.target, each) for each in (op, second)):
            for each in (shaped, one, cells):
                each.drop_operands()
            return False
        rewriter.insert_before(second, cells)
        rewriter.insert_before(second, one)
        rewriter.replace_with(second, shaped, absorbed=[op])
        return True

    def last_first(self, op: Tile, rewriter: Rewriter) -> bool:
        """Rule 4."""
        repeated = [axis for axis, count in enumerate(op.reps) if count != 1]
        direct = self.target.moving_cycles(op)
        if PLACE_CPU in op.attributes or len(repeated) < 2 or direct is None or op.type.size < _LEAST:
            return False
        last = [count if axis == repeated[-1] else 1 for axis, count in enumerate(op.reps)]
        inner = make("tile", [op.x], {"reps": tuple(last)}, None, op.location)
        outer = rebuild(op, [inner.result], reps=tuple(a // b for a, b in zip(op.reps, last)))
        if _total(self.target, [inner, outer]) * _GAIN >= direct:
            outer.drop_operands()
            inner.drop_operands()
            return False
        rewriter.insert_before(op, inner)
        rewriter.insert_before(op, outer)
        rewriter.replace(op, outer.results)
        return True

    def in_front(self, op: _Picking, rewriter: Rewriter) -> bool:
        """Rule 2."""
        axis = _axis_of(op)
        if axis is None:
            return False
        result = op.results[0].type
        before, behind = prod(result.shape[:axis]), prod(op.operands[0].shape[axis + 1 :])
        moved = op.operands if isinstance(op, Concat) else op.operands[:1]
        constant = any(self.constant(value) is not None for value in moved)
        flat = not isinstance(op, Gather) or op.indices.type.rank == 1
        if PLACE_CPU in op.attributes or constant or not flat or before < _RUN or behind >= _RUN:
            return False
        lanes = self.target.local_cycles(op) if isinstance(op, Concat) and any(map(_computed, moved)) else None
        known = [cycles for cycles in (self.target.moving_cycles(op), lanes) if cycles]
        if not known or result.size < _LEAST:
            return False
        sharing = _sharing(op, axis, (before, op.x.shape[axis], behind)) if isinstance(op, Slice) else 1
        made, values = _along_front(op, axis, len(moved), (before, behind))
        shared = _total(self.target, made[:2]) * (1 - 1 / sharing)
        if (_total(self.target, made) - shared) * _GAIN >= min(known):
            for each in reversed(made):
                each.drop_operands()
            return False
        for each in made:
            rewriter.insert_before(op, each)
        rewriter.replace(op, values)
        return True


def moving_time(target: Target, op: Permute) -> float:
    """Cycles of a permute between places in global memory, as it is or in the steps that the pass makes of it."""
    shape, order = merged(op.operands[0].shape, tuple(op.order))
    direct = target.moving_cycles(op) if unsupported_reason(target, op) is None else None
    found = inf if direct is None else direct
    return min(found, _quickest(target, op, shape, order)[0]) if 3 <= len(order) <= _MOST_AXES else found


def _least_time(target: Target, op: Permute) -> float:
    """Cycles of a permute in local memory, where that has it, or between places in global memory."""
    lanes = target.local_cycles(op)
    return moving_time(target, op) if lanes is None else min(lanes, moving_time(target, op))


def _quickest(target: Target, op: Permute, shape: Shape, order: Order) -> tuple[float, tuple[Order, ...]]:
    """(cycles, orders) of the best way to take several permutes for one; found once for values that are alike."""

    def asked() -> tuple[float, tuple[Order, ...]]:
        ways = sorted(set(ways_to(order)), key=lambda way: (_parted(shape, way), way))[:_MOST_ASKED]
        return min((_cycles(target, op, shape, way), way) for way in ways)

    return target.once((_quickest, origin_of(op.operands[0]), shape, order), asked)


def _cycles(target: Target, op: Permute, shape: Shape, way: Sequence[Order]) -> float:
    """Of all permutes of a way."""
    made = _ops(op, shape, way)
    total = _total(target, made)
    for each in reversed(made):
        each.drop_operands()
    return total


def _total(target: Target, made: Sequence[TensorOp]) -> float:
    """Cycles of ops, reshapes for nothing; infinite where the target does not say or take one of them."""
    total = 0.0
    for each in made:
        if not isinstance(each, Reshape):
            known = None if unsupported_reason(target, each) is not None else target.moving_cycles(each)
            total += inf if known is None else known
    return total


def _computed(value: Value) -> bool:
    """Whether an op that computes makes a value, in local memory perhaps: what is moved lies in global memory."""
    maker = value.owner
    while isinstance(maker, Reshape):
        maker = maker.operands[0].owner
    return isinstance(maker, TensorOp) and not isinstance(maker, (*get_args(_Picking), Permute))


def _sharing(op: Slice, axis: int, cells: Shape) -> float:
    """How many slices share the permute of their operand, which is seen as `cells`; infinite where there is one."""
    reshapes = [user for user in op.x.users if isinstance(user, Reshape) and user.type.shape == cells]
    if any(isinstance(user, Permute) and user.order == (1, 2, 0) for one in reshapes for user in one.result.users):
        return inf
    return sum(isinstance(user, Slice) and _axis_of(user) == axis for user in op.x.users)


def _axis_of(op: _Picking) -> int | None:
    """The axis along which an op joins, picks or repeats; None for a slice or tile of several."""
    if isinstance(op, Tile):
        repeated = [axis for axis, count in enumerate(op.reps) if count != 1]
        return repeated[0] if len(repeated) == 1 else None
    if not isinstance(op, Slice):
        return int(op.axis % op.operands[0].type.rank)
    cut = [axis for axis, size in enumerate(op.x.shape) if (size, 1) != (op.type.shape[axis], op.steps[axis])]
    return cut[0] if len(cut) == 1 else None


def _along_front(op: _Picking, axis: int, count: int, around: tuple[int, int]) -> tuple[list[TensorOp], list[Value]]:
    """`op` on its first `count` operands with its axis in front, and its results.

    Args: around: elements before and behind the axis.
    """
    (before, behind), made = around, list[TensorOp]()

    def add(name: str, x: Value, **attributes: Shape) -> Value:
        made.append(make(name, [x], attributes, location=op.location))
        return made[-1].results[0]

    fronts = []
    for value in op.operands[:count]:
        size = value.type.size // (before * behind)
        if size * behind == 1:  # a column is a row of them
            fronts.append(add("reshape", value, shape=(1, 1, before)))
            continue
        cells = add("reshape", value, shape=(before, size, behind))
        fronts.append(add("permute", cells, order=(1, 2, 0)))
    changes: dict[str, Shape | int] = {"axis": 0}
    if isinstance(op, Slice):
        changes = {"starts": (op.starts[axis], 0, 0), "ends": (op.ends[axis], behind, before)}
        changes["steps"] = (op.steps[axis], 1, 1)
    elif isinstance(op, Tile):
        changes = {"reps": (op.reps[axis], 1, 1)}
    made.append(rebuild(op, [*fronts, *op.operands[count:]], **changes))
    made[-1].attributes.pop(TENSOR_NAME, None)
    values = []
    for x, old in zip(made[-1].results, op.results):
        back = add("permute", x, order=(2, 0, 1)) if x.shape[0] * behind > 1 else x
        values.append(add("reshape", back, shape=old.shape))
    return made, values


def _ops(op: Permute, shape: Shape, way: Sequence[Order]) -> list[TensorOp]:
    """A reshape, permutes and a reshape back for `op`."""
    made: list[TensorOp] = []

    def add(name: str, x: Value, **attributes: Shape) -> Value:
        made.append(make(name, [x], attributes, location=op.location))
        return made[-1].results[0]

    x = add("reshape", op.operands[0], shape=shape)
    for order in way:
        x = add("permute", x, order=order)
    add("reshape", x, shape=op.type.shape)
    return made


def merged(shape: Shape, order: Order) -> tuple[Shape, Order]:
    """(shape, order) without axes of one element, and with axes that stay neighbours as one."""
    kept = [axis for axis in order if shape[axis] != 1]
    left, groups = sorted(kept), list[list[int]]()
    for axis in kept:
        if groups and left.index(axis) == left.index(groups[-1][-1]) + 1:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    before = sorted(groups)
    return tuple(prod(shape[axis] for axis in group) for group in before), tuple(map(before.index, groups))


def ways_to(order: Order) -> Iterator[tuple[Order, ...]]:
    """Orders to take one after the other: two of which one swaps groups of axes, or three that all do so."""
    swaps = set(_swaps(len(order)))
    for swap in swaps:
        yield tuple(order[axis] for axis in _inverse(swap)), swap
        rest = _behind(order, swap)
        yield swap, rest
        for second in swaps:
            if (last := _behind(rest, second)) in swaps:
                yield swap, second, last


def _swaps(count: int) -> Iterator[Order]:
    """Orders in which two neighbouring groups of axes change places."""
    for first, middle, end in combinations(range(count + 1), 3):
        yield *range(first), *range(middle, end), *range(first, middle), *range(end, count)


def _behind(order: Order, first: Order) -> Order:
    """What is left to do of an order behind `first`."""
    return tuple(first.index(axis) for axis in order)


def _inverse(order: Order) -> Order:
    return tuple(order.index(axis) for axis in range(len(order)))


def _transposes(order: Order) -> bool:
    """Whether a group of axes that stay is followed by two that change places: matrices."""
    return any(swap == order and swap[-1] != len(order) - 1 for swap in _swaps(len(order)))


def _parted(shape: Shape, way: Sequence[Order]) -> float:
    """About how long a way takes, in times of the bytes alone."""
    total = 0.0
    for order in way:
        kept = next((count for count, axis in enumerate(reversed(order)) if axis != len(order) - 1 - count), len(order))
        run = prod(shape[len(order) - kept :])
        total += 1 if _transposes(order) else max(1, _RUN / run)
        shape = tuple(shape[axis] for axis in order)
    return total
