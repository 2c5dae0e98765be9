"""Global (neuron) memory plan: an offset for every activation, reused after its last reader."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from math import prod
from typing import TypeVar

from bmcompiler.ir import Function, Operation, Value
from bmcompiler.ir.keys import is_weight

K = TypeVar("K", bound=Hashable)
_FEW = 6
"""Of so many lifetimes all orders are tried."""
_MOST_TRIES = 400
_MOST_WORK = 1_000_000
"""Bounds of the search for a better order: how many, and how many pairs of values are looked at."""
_IN_ITS_WAY = 0.7
"""Share of tries in which a value goes before one that is in its way, not before any."""


@dataclass
class MemoryPlan:
    """Where every activation lives.

    Attributes:
        offsets: bytes from the neuron base, by value; a view has that of its root (`root_of`).
        outputs: offset of each output of the function, in list order.
        copies: (value, offset) of outputs that live elsewhere (an input, or an output listed twice) and must be copied.
        size: bytes of neuron memory.
        lower_bound: the largest sum of values alive at once; inputs and outputs always are, for the host writes and
            reads them between runs.
    """

    offsets: dict[Value, int] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)
    copies: list[tuple[Value, int]] = field(default_factory=list)
    size: int = 0
    lower_bound: int = 0


@dataclass
class Lifetime:
    """`nbytes` in use from step `first` to `last`; `first_fit` gives the offset."""

    nbytes: int
    first: int
    last: int
    offset: int = -1


def is_view(op: Operation) -> bool:
    """True for ops whose result is the memory of their operand."""
    return op.short_name == "reshape"


def root_of(value: Value) -> Value:
    """The value whose memory `value` shares."""
    while value.op is not None and is_view(value.op):
        value = value.op.operands[0]
    return value


Hosts = Mapping[Value, tuple[Value, int]]
"""Values that are a part of another value's memory: (host, offset in bytes)."""


def parts_of_others(
    function: Function, ops: Iterable[Operation], *, borders: bool = False
) -> dict[Value, tuple[Value, int]]:
    """Where splits and concats among `ops` need no copies because their parts are runs of bytes of the whole.

    1. an operand of a concat is made in its place in the result, unless it is an input, an output, a constant,
       listed twice, or already a part of something else
    2. a result of a split, or of a slice with steps of 1, stays where it is in the operand, unless it is an output
    3. with `borders` a concat of an input and of outputs, as of a cache and the row that joins it, is where these are:
       the outputs lie behind the input
    """
    fixed = {root_of(value) for value in (*function.arguments, *function.returned)}
    hosts: dict[Value, tuple[Value, int]] = {}
    for op in ops:
        if borders and _is_longer_input(function, op, hosts):
            fixed.add(op.results[0])
            hosts.update(zip(map(root_of, op.operands), _places(op)))
            continue
        if op.short_name == "slice":
            part, start = op.results[0], _run_of(op)
            if start is not None and part not in fixed and part not in hosts and not is_weight(root_of(op.operands[0])):
                hosts[part] = root_of(op.operands[0]), start
        if op.short_name not in ("concat", "split"):
            continue
        joins = op.short_name == "concat"
        whole, parts = (op.results[0], op.operands) if joins else (root_of(op.operands[0]), op.results)
        shape = whole.shape if joins else op.operands[0].shape  # the operand may be a view of the whole
        if prod(shape[: op.attributes["axis"] % max(1, len(shape))]) != 1:
            continue
        offset = 0
        for part in parts:
            value = root_of(part)
            if value not in fixed and value not in hosts and not is_weight(value):
                hosts[value] = whole, offset
            offset += part.type.nbytes
    return hosts


def _is_longer_input(function: Function, op: Operation, hosts: Hosts) -> bool:
    """Whether an op puts outputs of the net, each returned once, behind an input, and its result is neither."""
    if op.short_name != "concat" or prod(op.results[0].shape[: op.attributes["axis"] % op.results[0].type.rank]) != 1:
        return False
    first, *others = parts = [root_of(part) for part in op.operands]
    returned = [root_of(value) for value in function.returned]
    return (
        first in function.arguments
        and first not in returned
        and all(returned.count(part) == 1 and part not in function.arguments for part in others)
        and not any(part in hosts or is_weight(part) for part in parts)
        and len(set(parts)) == len(parts)
        and op.results[0] not in returned
    )


def _places(op: Operation) -> list[tuple[Value, int]]:
    """The places of the operands of a concat in its result."""
    sizes = [part.type.nbytes for part in op.operands]
    return [(op.results[0], sum(sizes[:i])) for i in range(len(sizes))]


def _run_of(op: Operation) -> int | None:
    """Bytes before the first one of what a slice takes, None when that is no run of bytes."""
    source, part = op.operands[0].type, op.results[0].type
    cut = max((i for i, size in enumerate(part.shape) if size != source.shape[i]), default=0)
    if prod(part.shape[:cut]) != 1:
        return None
    if any(step != 1 for step, size in zip(op.attributes["steps"], part.shape) if size != 1):
        return None
    strides = [prod(source.shape[i + 1 :]) for i in range(source.rank)]
    return sum(start * stride for start, stride in zip(op.attributes["starts"], strides)) * source.numpy.itemsize


def plan_memory(
    function: Function,
    steps: Sequence[Sequence[Operation]],
    align: int,
    hosts: Hosts | None = None,
    hidden: Collection[Value] = (),
) -> MemoryPlan:
    """Inputs first from offset 0, then the outputs side by side in list order, then all others as `pack` says.

    Outputs that are parts of a longer input lie behind that.

    Args:
        steps: ops in execution order; the values that ops of one step read and write never share memory.
        align: alignment of intermediate values in bytes; inputs and outputs are aligned to their elements only.
        hosts: values that live inside others.
        hidden: values that need no memory.
    """
    plan, hosts = MemoryPlan(), hosts or {}
    position = {op: i for i, ops in enumerate(steps) for op in ops}
    cursor = 0
    for argument in function.arguments:
        cursor = _up(cursor, argument.type.numpy.itemsize)
        longer, _ = outermost(argument, hosts)
        plan.offsets[argument] = plan.offsets[longer] = cursor
        cursor += longer.type.nbytes
    cursor = _up(cursor, align)
    for value in function.returned:
        root = root_of(value)
        longer, before = outermost(root, hosts)
        if longer is not root:
            plan.outputs.append(plan.offsets[longer] + before)
            continue
        cursor = _up(cursor, value.type.numpy.itemsize)
        plan.outputs.append(cursor)
        if root in plan.offsets or is_weight(root):
            plan.copies.append((value, cursor))
        else:
            plan.offsets[root] = cursor
        cursor += value.type.nbytes
    fixed = _up(cursor, align)
    lifetimes = _lifetimes(position, hosts, {*plan.offsets, *hidden})
    pack(list(lifetimes.values()), fixed, align)
    plan.offsets.update((value, life.offset) for value, life in lifetimes.items())
    for value in hosts:
        host, offset = outermost(value, hosts)
        plan.offsets[value] = plan.offsets[host] + offset
    plan.size = max([fixed, *(life.offset + life.nbytes for life in lifetimes.values())])
    plan.lower_bound = fixed + _peak(list(lifetimes.values()), len(steps))
    return plan


def outermost(part: K, hosts: Mapping[K, tuple[K, int]]) -> tuple[K, int]:
    """What is around `part` and in nothing else, and the bytes before `part` in it; `hosts` as `Hosts`."""
    total = 0
    while part in hosts:
        part, offset = hosts[part]
        total += offset
    return part, total


def _up(value: int, align: int) -> int:
    return -(-value // align) * align


def _lifetimes(position: dict[Operation, int], hosts: Hosts, placed: Collection[Value]) -> dict[Value, Lifetime]:
    """First and last step of every value not `placed`; a host lives as long as any of its parts."""
    lives: dict[Value, Lifetime] = {}
    end = 1 + max(position.values(), default=0)
    for op, first in position.items():
        for result in op.results:
            value, _ = outermost(result, hosts)
            if value in placed:
                continue
            last = max(first, _last_use(result, position, end))
            life = lives.setdefault(value, Lifetime(value.type.nbytes, first, last))
            life.first, life.last = min(life.first, first), max(life.last, last)
    return lives


def _last_use(value: Value, position: dict[Operation, int], end: int) -> int:
    """Step of the last reader, also through views; the function's return reads at the end."""
    last = -1
    for user in value.users:
        last = max(last, _last_use(user.result, position, end) if is_view(user) else position.get(user, end))
    return last


def first_fit(lives: Sequence[Lifetime], base: int, align: int) -> None:
    """Largest first, each at the lowest offset that is free during its whole life."""
    _settle(lives, _Fit(lives, base, align).places(_largest_first(lives)))


def pack(lives: Sequence[Lifetime], base: int, align: int, enough: int | None = None, tries: int = _MOST_TRIES) -> int:
    """Offsets from `base` on that need little memory: first fit in an order that is searched for. Returns their end.

    Hill climbing from the better of two orders, largest first and first used first: what ends highest takes its turn
    before another, mostly one that is in its way, and the new order stays unless it needs more. The choice is random
    with a fixed seed and the work is bounded, so that a net is planned in the same way every time. Of a few lifetimes
    all orders are tried.

    Args:
        enough: an end with which the search is over; the least that is possible when None. tries: orders at most.
    """
    fit = _Fit(lives, base, align)
    if enough is None:
        enough = base + _peak(lives, max((life.last for life in lives), default=0))
    order = _largest_first(lives)
    found = fit.places(order)
    best = fit.end(found)
    if best > enough:
        used_first = sorted(range(len(lives)), key=lambda i: lives[i].first)
        places = fit.places(used_first)
        if fit.end(places) < best:
            best, order, found = fit.end(places), used_first, places
    if best > enough and len(lives) <= _FEW:
        found = min(map(fit.places, permutations(range(len(lives)))), key=fit.end)
        _settle(lives, found)
        return fit.end(found)
    generator = random.Random(0)
    highest = fit.turns(order, found, best)
    for _ in range(min(tries, _MOST_WORK // (1 + len(lives) + sum(map(len, fit.rivals))))):
        if best <= enough:
            break
        at = generator.choice(highest)
        rivals = fit.rivals[order[at]]
        in_its_way = [before for before in range(at) if order[before] in rivals]
        turns = in_its_way if in_its_way and generator.random() < _IN_ITS_WAY else range(max(1, at))
        turn = generator.choice(turns)
        moved = [*order[:turn], order[at], *order[turn:at], *order[at + 1 :]]
        again = fit.places_again(moved, turn, found, best)
        if again is not None:
            best, order, found = fit.end(again), moved, again
            highest = fit.turns(order, found, best)
    _settle(lives, found)
    return best


def _largest_first(lives: Sequence[Lifetime]) -> list[int]:
    return sorted(range(len(lives)), key=lambda i: (-lives[i].nbytes, lives[i].first))


def _rivals(lives: Sequence[Lifetime]) -> list[set[int]]:
    """For each of `lives`, which others are in use while it is."""
    order = sorted(range(len(lives)), key=lambda i: lives[i].first)
    firsts = [lives[i].first for i in order]
    found, open_ = [set[int]() for _ in lives], list[int]()
    for place, i in enumerate(order):
        open_ = [j for j in open_ if lives[j].last >= firsts[place]]
        found[i] = {*open_, *order[place + 1 : bisect_right(firsts, lives[i].last)]}
        open_.append(i)
    return found


_Places = list[tuple[int, int, int] | None]
"""Of each lifetime where it begins, where the next one can, and where it ends; None before its turn."""


class _Fit:
    """First fit of `lives` from `base` on, for one order after another."""

    def __init__(self, lives: Sequence[Lifetime], base: int, align: int) -> None:
        self.sizes, self.rivals = [life.nbytes for life in lives], _rivals(lives)
        self._base, self._align = base, align

    def places(self, order: Sequence[int]) -> _Places:
        """When each has its turn at the lowest place that is free."""
        found: _Places = [None] * len(self.sizes)
        for i in order:
            found[i] = self._lowest(i, found)
        return found

    def places_again(self, order: Sequence[int], turn: int, before: _Places, most: int) -> _Places | None:
        """The same where number `turn` has its turn sooner than in the order that led to the places `before`.

        What has no rival in another place stays where it was. None where one ends above `most`.
        """
        found, later = [*before], order[turn:]
        for i in later:
            found[i] = None
        moved = {order[turn]}
        for i in later:
            if i not in moved and moved.isdisjoint(self.rivals[i]):
                found[i] = before[i]
                continue
            found[i] = place = self._lowest(i, found)
            if place != before[i]:
                moved.add(i)
                if place[2] > most:
                    return None
        return found

    def _lowest(self, i: int, taken: _Places) -> tuple[int, int, int]:
        """The lowest place beside what its rivals have taken."""
        offset, size = self._base, self.sizes[i]
        for start, stop, _ in sorted(filter(None, map(taken.__getitem__, self.rivals[i]))):
            if stop > offset:
                if offset + size <= start:
                    break
                offset = stop
        return offset, _up(offset + size, self._align), offset + size

    def end(self, places: _Places) -> int:
        """Of all together."""
        return max((place[2] for place in places if place is not None), default=self._base)

    @staticmethod
    def turns(order: Sequence[int], places: _Places, end: int) -> list[int]:
        """Whose turns those are that end there."""
        return [at for at, i in enumerate(order) if (place := places[i]) is not None and place[2] == end]


def _settle(lives: Sequence[Lifetime], places: _Places) -> None:
    for life, place in zip(lives, places):
        if place is not None:
            life.offset = place[0]


def _peak(lives: Sequence[Lifetime], end: int) -> int:
    change = [0] * (end + 2)
    for life in lives:
        change[life.first] += life.nbytes
        change[life.last + 1] -= life.nbytes
    peak = total = 0
    for delta in change:
        total += delta
        peak = max(peak, total)
    return peak
