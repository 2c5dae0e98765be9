"""Global (neuron) memory plan: an offset for every activation, reused after its last reader."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from bmcompiler.ir import Function, Operation, Value


@dataclass
class MemoryPlan:
    """Where every activation lives.

    Attributes:
        offsets: bytes from the neuron base, by value; a view has that of its root (`root_of`).
        outputs: offset of each output of the function, in list order.
        copies: (value, offset) of outputs that live elsewhere (an input, or an output listed twice) and must be copied.
        size: bytes of neuron memory; lower_bound: the largest sum of values alive at once.
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
    return op.name == "tensorop.reshape"


def is_weight(value: Value) -> bool:
    """True for results of weight ops."""
    return value.op is not None and value.op.name == "tensorop.weight"


def root_of(value: Value) -> Value:
    """The value whose memory `value` shares."""
    while value.op is not None and is_view(value.op):
        value = value.op.operands[0]
    return value


Hosts = Mapping[Value, tuple[Value, int]]
"""Values that are a part of another value's memory: (host, offset in bytes)."""


def parts_of_others(function: Function, ops: Iterable[Operation]) -> dict[Value, tuple[Value, int]]:
    """Where splits and concats among `ops` need no copies because their parts are runs of bytes of the whole.

    1. an operand of a concat is made in its place in the result, unless it is an input, an output, a constant,
       listed twice, or already a part of something else
    2. a result of a split stays where it is in the operand, unless it is an output
    """
    fixed = {root_of(value) for value in (*function.arguments, *function.returned)}
    hosts: dict[Value, tuple[Value, int]] = {}
    for op in ops:
        if op.name not in ("tensorop.concat", "tensorop.split"):
            continue
        joins = op.name == "tensorop.concat"
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


def plan_memory(
    function: Function,
    steps: Sequence[Sequence[Operation]],
    align: int,
    hosts: Hosts | None = None,
    hidden: Collection[Value] = (),
) -> MemoryPlan:
    """Inputs first from offset 0, then the outputs side by side in list order, then all others by first fit.

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
        plan.offsets[argument] = cursor
        cursor += argument.type.nbytes
    cursor = _up(cursor, align)
    for value in function.returned:
        root = root_of(value)
        cursor = _up(cursor, value.type.numpy.itemsize)
        plan.outputs.append(cursor)
        if root in plan.offsets or is_weight(root):
            plan.copies.append((value, cursor))
        else:
            plan.offsets[root] = cursor
        cursor += value.type.nbytes
    fixed = _up(cursor, align)
    lifetimes = _lifetimes(position, hosts, {*plan.offsets, *hidden})
    first_fit(list(lifetimes.values()), fixed, align)
    plan.offsets.update((value, life.offset) for value, life in lifetimes.items())
    for value in hosts:
        host, offset = _host(value, hosts)
        plan.offsets[value] = plan.offsets[host] + offset
    plan.size = max([fixed, *(life.offset + life.nbytes for life in lifetimes.values())])
    plan.lower_bound = fixed + _peak(list(lifetimes.values()), len(steps))
    return plan


def _host(value: Value, hosts: Hosts) -> tuple[Value, int]:
    """The outermost value around `value`, and the offset in it."""
    total = 0
    while value in hosts:
        value, offset = hosts[value]
        total += offset
    return value, total


def _up(value: int, align: int) -> int:
    return -(-value // align) * align


def _lifetimes(position: dict[Operation, int], hosts: Hosts, placed: Collection[Value]) -> dict[Value, Lifetime]:
    """First and last step of every value not `placed`; a host lives as long as any of its parts."""
    lives: dict[Value, Lifetime] = {}
    end = 1 + max(position.values(), default=0)
    for op, first in position.items():
        for result in op.results:
            value, _ = _host(result, hosts)
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


def first_fit(lives: list[Lifetime], base: int, align: int) -> None:
    """Largest first, each at the lowest offset that is free during its whole life."""
    placed: list[Lifetime] = []
    for life in sorted(lives, key=lambda x: (-x.nbytes, x.first)):
        offset = base
        rivals = (p for p in placed if p.first <= life.last and life.first <= p.last)
        for other in sorted(rivals, key=lambda x: x.offset):
            if offset + life.nbytes <= other.offset:
                break
            offset = max(offset, _up(other.offset + other.nbytes, align))
        life.offset = offset
        placed.append(life)


def _peak(lives: list[Lifetime], end: int) -> int:
    change = [0] * (end + 2)
    for life in lives:
        change[life.first] += life.nbytes
        change[life.last + 1] -= life.nbytes
    peak = total = 0
    for delta in change:
        total += delta
        peak = max(peak, total)
    return peak
