"""Which command must wait for which: conflicts between the two engines on local memory and L2."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from bmcompiler.backends.bm1684.builder import Ticket
from bmcompiler.backends.bm1684.isa import Engine

Range = tuple[int, int]
"""Half-open bytes: offsets in a lane of local memory, or addresses from `CHIP.l2_window` for L2."""


@dataclass(frozen=True)
class _Access:
    ticket: Ticket
    reads: tuple[Range, ...]
    writes: tuple[Range, ...]


class Hazards:
    """Remembers what the commands of each engine touch, and tells the newest one that a new command conflicts with.

    Engines run their own commands in order, so only commands of the other engine matter; whatever a command has waited
    for need not be looked at again by later ones.
    """

    def __init__(self) -> None:
        self._open: dict[Engine, deque[_Access]] = {engine: deque() for engine in Engine}

    def before(self, engine: Engine, reads: tuple[Range, ...], writes: tuple[Range, ...]) -> Ticket | None:
        """The command of the other engine that a new command of `engine` has to wait for."""
        pending = self._open[Engine.GDMA if engine is Engine.TIU else Engine.TIU]
        for access in reversed(pending):
            if _meet(writes, access.reads) or _meet(writes, access.writes) or _meet(reads, access.writes):
                while pending[0] is not access:
                    pending.popleft()
                pending.popleft()
                return access.ticket
        return None

    def note(self, ticket: Ticket, reads: tuple[Range, ...], writes: tuple[Range, ...]) -> None:
        """A command was added."""
        self._open[ticket.engine].append(_Access(ticket, reads, writes))


def _meet(a: tuple[Range, ...], b: tuple[Range, ...]) -> bool:
    return any(x[0] < y[1] and y[0] < x[1] for x in a for y in b)
