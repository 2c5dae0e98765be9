"""Which command must wait for which, on chips with two engines that each run their own commands in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
"""What a chip's builder knows a command by."""
Range = tuple[int, int]
"""Half-open bytes of a memory that both engines reach: offsets in a lane, or any other addresses apart from them."""


@dataclass(frozen=True)
class _Access(Generic[T]):
    ticket: T
    reads: tuple[Range, ...]
    writes: tuple[Range, ...]


class Hazards(Generic[T]):
    """Remembers what the commands of engines 0 and 1 touch, and tells the newest one a new command conflicts with.

    Only commands of the other engine matter; whatever a command has waited for need not be looked at again by later
    ones.
    """

    def __init__(self) -> None:
        self._open: tuple[deque[_Access[T]], deque[_Access[T]]] = deque(), deque()

    def before(self, engine: int, reads: Sequence[Range], writes: Sequence[Range]) -> T | None:
        """The command of the other engine that a new command of `engine` has to wait for."""
        pending = self._open[1 - engine]
        for access in reversed(pending):
            if _meet(writes, access.reads) or _meet(writes, access.writes) or _meet(reads, access.writes):
                while pending[0] is not access:
                    pending.popleft()
                pending.popleft()
                return access.ticket
        return None

    def note(self, engine: int, ticket: T, reads: Sequence[Range], writes: Sequence[Range]) -> None:
        """A command was added."""
        self._open[engine].append(_Access(ticket, tuple(reads), tuple(writes)))


class WaitIds:
    """Own ids (1, 2, ... per engine) and the id of the other engine that each command waits for, 0 = none.

    `serial` makes every command wait for all before it.
    """

    def __init__(self, serial: bool = False) -> None:
        self.serial = serial
        self._hazards: Hazards[int] = Hazards()
        self._issued = [0, 0]

    def issue(self, engine: int, reads: Sequence[Range], writes: Sequence[Range]) -> tuple[int, int]:
        """(own id, wait id) of the next command of `engine`, and what it touches."""
        self._issued[engine] += 1
        own = self._issued[engine]
        wait = self._issued[1 - engine] if self.serial else self._hazards.before(engine, reads, writes) or 0
        self._hazards.note(engine, own, reads, writes)
        return own, wait


def _meet(a: Sequence[Range], b: Sequence[Range]) -> bool:
    return any(x[0] < y[1] and y[0] < x[1] for x in a for y in b)
