"""Inputs of a step that are slower from the same bank of local memory, moved apart where there is room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmcompiler.codegen.groups.steps import LiveRange, Residency, Slot, Step
from bmcompiler.codegen.tiling import Tiler

Ints = NDArray[np.int64]
_ROUNDS = 2


class _Pair(NamedTuple):
    """How a slot of a live range meets one of another; cycles that sharing a bank costs."""

    own: Slot
    other: Slot
    cycles: int


def shared_cycles(step: Step, bank_bytes: int) -> float:
    """Cycles that a step takes longer because of what shares banks."""
    assert step.work is not None
    pairs = ((step.inputs[apart.first], step.inputs[apart.second], apart.cycles) for apart in step.work.apart)
    return sum(cycles * _shared(a.address, a, b.address, b, bank_bytes) for a, b, cycles in pairs)


def move_apart(plan: Residency, tiler: Tiler) -> None:
    """Give live ranges other free addresses where steps are faster with them; those that are second of a pair first."""
    pairs: dict[int, list[_Pair]] = defaultdict(list)
    ranges: dict[int, LiveRange] = {}
    for turn in (True, False):  # in this order
        for step in plan.steps:
            for apart in step.work.apart if step.work is not None else ():
                ends = step.inputs[apart.first], step.inputs[apart.second]
                own, other = reversed(ends) if turn else ends
                ranges[id(own.live_range)] = own.live_range
                if own.live_range is not other.live_range:
                    pairs[id(own.live_range)].append(_Pair(own, other, apart.cycles))
    if not pairs:
        return
    first, last, size, address = np.array(
        [(one.first, one.last, tiler.rounded(one.lane_bytes), one.address) for one in plan.live_ranges], np.int64
    ).T
    number = {id(one): i for i, one in enumerate(plan.live_ranges)}
    for _ in range(_ROUNDS):
        for key, moved in ranges.items():
            costs = pairs[key]
            if not _cost(moved.address, costs, tiler.bank_bytes):
                continue
            at = number[key]
            beside = (first <= moved.last) & (last >= moved.first)
            beside[at] = False
            taken = sorted(zip(address[beside].tolist(), (address + size)[beside].tolist()))
            places = _places(taken, int(size[at]), tiler)
            moved.address = _best([moved.address, *places], costs, tiler.bank_bytes)
            address[at] = moved.address


def _places(taken: list[tuple[int, int]], size: int, tiler: Tiler) -> Iterator[int]:
    """Free addresses: both ends of every gap, and the banks that begin in it."""
    begin = 0
    for start, end in (*taken, (tiler.lane_bytes, tiler.lane_bytes)):
        most = (start - size) // tiler.align * tiler.align
        if begin <= most:
            yield from (begin, most)
            yield from range(-(-begin // tiler.bank_bytes) * tiler.bank_bytes, most, tiler.bank_bytes)
        begin = max(begin, end)


def _best(places: list[int], pairs: list[_Pair], bank_bytes: int) -> int:
    """The first of the addresses that cost least."""
    return min(places, key=lambda place: _cost(place, pairs, bank_bytes))


def _cost(address: int, pairs: list[_Pair], bank_bytes: int) -> float:
    """Cycles that pairs cost with their own live range at `address`."""
    return sum(
        pair.cycles * _shared(address + pair.own.offset, pair.own, pair.other.address, pair.other, bank_bytes)
        for pair in pairs
    )


def _shared(a: int, first: Slot, b: int, second: Slot, bank_bytes: int) -> float:
    """The sum over the banks of the products of the parts of both buffers that lie there."""
    ends = a + first.buffer.lane_bytes, b + second.buffer.lane_bytes
    banks = range(max(a, b) // bank_bytes, (min(ends) - 1) // bank_bytes + 1)
    return sum(
        (min(ends[0], (bank + 1) * bank_bytes) - max(a, bank * bank_bytes))
        / first.buffer.lane_bytes
        * (min(ends[1], (bank + 1) * bank_bytes) - max(b, bank * bank_bytes))
        / second.buffer.lane_bytes
        for bank in banks
    )
