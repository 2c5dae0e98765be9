"""Areas of a step that are slower from the same bank of local memory, moved apart where there is room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set
from typing import NamedTuple

import numpy as np

from bmcompiler.codegen.groups.steps import LiveRange, Residency, Step
from bmcompiler.codegen.tiling import Tiler

_ROUNDS = 2


class _Area(NamedTuple):
    """What a step has in local memory: so many bytes from byte `offset` of a live range on."""

    live_range: LiveRange
    offset: int
    size: int

    @property
    def address(self) -> int:
        return self.live_range.address + self.offset


class _Pair(NamedTuple):
    """How an area of a live range meets one of another; cycles that sharing a bank costs."""

    own: _Area
    other: _Area
    cycles: int


def _pairs(step: Step) -> Iterator[_Pair]:
    """The areas of a step that should lie apart."""
    apart = step.work.apart if step.work is not None else ()
    if apart:
        areas = [_Area(binding.live_range, binding.offset, binding.buffer.lane_bytes) for binding in step.inputs]
        areas += [_Area(live_range, 0, live_range.lane_bytes) for live_range in step.scratch]
        yield from (_Pair(areas[one.first], areas[one.second], one.cycles) for one in apart)


def shared_cycles(step: Step, bank_bytes: int) -> float:
    """Cycles that a step takes longer because of what shares banks."""
    if step.work is None or not step.work.apart:
        return 0
    return sum(pair.cycles * _shared(pair.own.address, pair, bank_bytes) for pair in _pairs(step))


def move_apart(plan: Residency, tiler: Tiler, absent: Set[int] = frozenset()) -> None:
    """Give live ranges other free addresses where steps are faster with them; those that are second of a pair first.

    Args: absent: by their `id`, those that have no address yet.
    """
    pairs: dict[int, list[_Pair]] = defaultdict(list)
    ranges: dict[int, LiveRange] = {}
    for turn in (True, False):  # in this order
        for step in plan.steps:
            for pair in _pairs(step):
                own, other = reversed(pair[:2]) if turn else pair[:2]
                if not absent.isdisjoint((id(own.live_range), id(other.live_range))):
                    continue
                ranges[id(own.live_range)] = own.live_range
                if own.live_range is not other.live_range:
                    pairs[id(own.live_range)].append(_Pair(own, other, pair.cycles))
    if not pairs:
        return
    placed = [one for one in plan.live_ranges if id(one) not in absent]
    first, last, size, address = np.array(
        [(one.first, one.last, tiler.rounded(one.lane_bytes), one.address) for one in placed], np.int64
    ).T
    number = {id(one): i for i, one in enumerate(placed)}
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
            moved.address = min([moved.address, *places], key=lambda place: _cost(place, costs, tiler.bank_bytes))
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


def _cost(address: int, pairs: list[_Pair], bank_bytes: int) -> float:
    """Cycles that pairs cost with their own live range at `address`."""
    return sum(pair.cycles * _shared(address + pair.own.offset, pair, bank_bytes) for pair in pairs)


def _shared(a: int, pair: _Pair, bank_bytes: int) -> float:
    """The sum over the banks of the products of the parts of both areas that lie there, with its own at `a`."""
    b, first, second = pair.other.address, pair.own.size, pair.other.size
    ends = a + first, b + second
    banks = range(max(a, b) // bank_bytes, (min(ends) - 1) // bank_bytes + 1)
    return sum(
        (min(ends[0], (bank + 1) * bank_bytes) - max(a, bank * bank_bytes))
        / first
        * (min(ends[1], (bank + 1) * bank_bytes) - max(b, bank * bank_bytes))
        / second
        for bank in banks
    )
