"""Which command must wait for which, on chips with two engines that each run their own commands in order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import inf
from typing import Generic, TypeVar

T = TypeVar("T")
"""What a chip's builder knows a command by."""
Range = tuple[int, int]
"""Half-open bytes of a memory that both engines reach: offsets in a lane, or any other addresses apart from them."""


class _Newest:
    """The number of the newest command that touched each byte, 0 for none: runs of bytes with one number, in order."""

    def __init__(self) -> None:
        self._starts: list[float] = [-inf]
        self._numbers = [0]

    def put(self, run: Range, number: int) -> None:
        """A command, newer than all before, touches some bytes."""
        low, high = run
        first, last = bisect_left(self._starts, low), bisect_left(self._starts, high)
        rest = [] if last < len(self._starts) and self._starts[last] == high else [self._numbers[last - 1]]
        self._starts[first:last] = [low, high] if rest else [low]
        self._numbers[first:last] = [number, *rest]

    def over(self, run: Range) -> int:
        """The newest that touched any of these bytes."""
        low, high = run
        inside = self._numbers[bisect_right(self._starts, low) - 1 : bisect_left(self._starts, high)]
        return max(inside, default=0)


class Hazards(Generic[T]):
    """Remembers what the commands of engines 0 and 1 touch, and tells the newest one a new command conflicts with.

    Only commands of the other engine matter; whatever a command has waited for need not be looked at again by later
    ones.
    """

    def __init__(self) -> None:
        self._tickets: tuple[list[T], list[T]] = [], []
        self._waited_for = [0, 0]
        self._written, self._touched = (_Newest(), _Newest()), (_Newest(), _Newest())

    def before(self, engine: int, reads: Sequence[Range], writes: Sequence[Range]) -> T | None:
        """The command of the other engine that a new command of `engine` has to wait for."""
        other = 1 - engine
        conflicts = [*map(self._touched[other].over, writes), *map(self._written[other].over, reads)]
        newest = max(conflicts, default=0)
        if newest <= self._waited_for[other]:
            return None
        self._waited_for[other] = newest
        return self._tickets[other][newest - 1]

    def note(self, engine: int, ticket: T, reads: Sequence[Range], writes: Sequence[Range]) -> None:
        """A command was added."""
        self._tickets[engine].append(ticket)
        number = len(self._tickets[engine])
        for run in reads:
            self._touched[engine].put(run, number)
        for run in writes:
            self._touched[engine].put(run, number)
            self._written[engine].put(run, number)


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
