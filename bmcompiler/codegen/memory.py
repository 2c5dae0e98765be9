"""Global (neuron) memory plan: an offset for every activation, reused after its last reader."""

from __future__ import annotations

from dataclasses import dataclass, field

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
class _Lifetime:
    nbytes: int
    first: int
    last: int
    offset: int = -1


def root_of(value: Value) -> Value:
    """The value whose memory `value` shares: reshapes are views."""
    while value.op is not None and value.op.name == "tensorop.reshape":
        value = value.op.operands[0]
    return value


def plan_memory(
    function: Function,
    order: list[Operation],
    align: int,
    input_align: int = 1,
    slack: int = 0,
) -> MemoryPlan:
    """Inputs first from offset 0, then the outputs side by side in list order, then all others by first fit.

    Args:
        order: ops in execution order.
        align: alignment of intermediate values in bytes.
        input_align: alignment of inputs and outputs (1 keeps them contiguous).
        slack: bytes after the last value that may be read (never written).
    """
    plan = MemoryPlan()
    position = {op: i for i, op in enumerate(order)}
    end = len(order)
    cursor = 0
    for argument in function.arguments:
        cursor = _up(cursor, _item_align(argument, input_align))
        plan.offsets[argument] = cursor
        cursor += argument.type.nbytes
    cursor = _up(cursor, align)
    for value in function.returned:
        root = root_of(value)
        cursor = _up(cursor, _item_align(value, input_align))
        plan.outputs.append(cursor)
        if root in plan.offsets or root.op is None or root.op.name == "tensorop.weight":
            plan.copies.append((value, cursor))
        else:
            plan.offsets[root] = cursor
        cursor += value.type.nbytes
    fixed = _up(cursor, align)
    lifetimes = _lifetimes(order, position, end, plan.offsets)
    _first_fit(list(lifetimes.values()), fixed, align)
    for value, life in lifetimes.items():
        plan.offsets[value] = life.offset
    plan.size = max([fixed, *(life.offset + life.nbytes for life in lifetimes.values())]) + slack
    plan.lower_bound = fixed + _peak(list(lifetimes.values()), end)
    return plan


def _item_align(value: Value, least: int) -> int:
    return max(least, value.type.numpy.itemsize)


def _up(value: int, align: int) -> int:
    return -(-value // align) * align


def _lifetimes(
    order: list[Operation], position: dict[Operation, int], end: int, placed: dict[Value, int]
) -> dict[Value, _Lifetime]:
    lives: dict[Value, _Lifetime] = {}
    for op in order:
        for result in op.results:
            root = root_of(result)
            if root.op is None or root.op.name == "tensorop.weight" or root in placed:
                continue
            last = max(position[op], _last_use(result, position, end))
            if root in lives:
                lives[root].last = max(lives[root].last, last)
            else:
                lives[root] = _Lifetime(root.type.nbytes, position[op], last)
    return lives


def _last_use(value: Value, position: dict[Operation, int], end: int) -> int:
    """Position of the last reader, also through views; the function's return reads at the end."""
    last = -1
    for user in value.users:
        view = user.name == "tensorop.reshape"
        last = max(last, _last_use(user.result, position, end) if view else position.get(user, end))
    return last


def _first_fit(lives: list[_Lifetime], base: int, align: int) -> None:
    """Largest first, each at the lowest offset that is free during its whole life."""
    placed: list[_Lifetime] = []
    for life in sorted(lives, key=lambda x: (-x.nbytes, x.first)):
        offset = base
        rivals = (p for p in placed if p.first <= life.last and life.first <= p.last)
        for other in sorted(rivals, key=lambda x: x.offset):
            if offset + life.nbytes <= other.offset:
                break
            offset = max(offset, _up(other.offset + other.nbytes, align))
        life.offset = offset
        placed.append(life)


def _peak(lives: list[_Lifetime], end: int) -> int:
    change = [0] * (end + 2)
    for life in lives:
        change[life.first] += life.nbytes
        change[life.last + 1] -= life.nbytes
    peak = total = 0
    for delta in change:
        total += delta
        peak = max(peak, total)
    return peak
