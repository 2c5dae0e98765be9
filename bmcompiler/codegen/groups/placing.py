"""Addresses in local memory: first fit, and hill climbing over its order where that needs too much room."""

from __future__ import annotations

import random
from collections.abc import Sequence
from operator import attrgetter

from bmcompiler.codegen.memory import Lifetime

_SEED = 1
_STEPS, _WORK = 60, 20_000
"""Orders that are tried, and placements of single areas in all of them."""


def place(lives: Sequence[Lifetime], align: int, room: int) -> int:
    """Give all lifetimes their offsets; returns the bytes they need together, at most `room` where that was found.

    Largest first. While that is too much, two of the order change places: those that stick out come earlier
    (hill climbing with a fixed seed). Orders that are better or as good are kept.
    """
    chance = random.Random(_SEED)
    order = sorted(range(len(lives)), key=lambda i: (-lives[i].nbytes, lives[i].first))
    place_in_order([lives[i] for i in order], align)
    need = _end(lives)
    if need <= room:
        return need
    best, offsets = need, [life.offset for life in lives]
    for _ in range(min(_STEPS, _WORK // len(lives))):
        out = max(range(len(order)), key=lambda p: lives[order[p]].offset + lives[order[p]].nbytes)
        changed = list(order)
        changed.insert(chance.randrange(out + 1), changed.pop(out))
        place_in_order([lives[i] for i in changed], align)
        need = _end(lives)
        if need <= best:
            best, order, offsets = need, changed, [life.offset for life in lives]
        if best <= room:
            break
    for life, offset in zip(lives, offsets):
        life.offset = offset
    return best


def place_in_order(lives: Sequence[Lifetime], align: int) -> None:
    """Each at the lowest offset that is free during its whole life, in the order given."""
    placed: list[Lifetime] = []
    for life in lives:
        offset, first, last = 0, life.first, life.last
        rivals = [p for p in placed if p.first <= last and first <= p.last]
        for other in sorted(rivals, key=_offset):
            if offset + life.nbytes <= other.offset:
                break
            offset = max(offset, -(-(other.offset + other.nbytes) // align) * align)
        life.offset = offset
        placed.append(life)


_offset = attrgetter("offset")


def _end(lives: Sequence[Lifetime]) -> int:
    return max((life.offset + life.nbytes for life in lives), default=0)
