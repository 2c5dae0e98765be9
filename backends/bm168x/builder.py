"""Programs for both engines, one command at a time: ids, waits and command groups (bm1684.md 3.1, bm1684x.md 2.2).

By default every command waits for the newest command of the other engine, so that the program runs serially and no
two commands ever meet in memory. A caller that knows better names the commands it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.instructions.order import STREAMS, Engine

OTHER = {Engine.TIU: Engine.GDMA, Engine.GDMA: Engine.TIU}
Encode = Callable[[int, int], bytes]
"""A command from its own id and the id it waits for."""


@dataclass(frozen=True)
class Ticket:
    """A command that was added: what later commands can wait for."""

    group: int
    engine: Engine
    number: int


class GroupBuilder:
    """Collects commands and gives them their ids and waits.

    A group is closed before an id would leave its bits. The runtime ends a group only when both engines are done, so
    commands never have to wait for commands of an earlier group.

    Args:
        most: commands of an engine in a group; fewer than the chip's limit only in tests.

    Attributes:
        counts: commands so far as streams have them, those that end the streams of closed groups among them.
    """

    end_marks: ClassVar[int] = 0
    """Commands that end a stream: the chip's `stream` adds them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._closed: list[CommandGroup] = []
        self._commands: dict[Engine, list[bytes]] = {engine: [] for engine in STREAMS}
        self._restarts = 0
        self.counts = dict.fromkeys(STREAMS, 0)

    def stream(self, engine: Engine, commands: Sequence[bytes]) -> bytes:
        """The commands of a group as files have them."""
        return b"".join(commands)

    def issue(self, engine: Engine, encode: Encode, after: Iterable[Ticket] | None = None) -> Ticket:
        """Add a command.

        Args:
            encode: gives its bytes.
            after: the commands it depends on; by default all so far. Those of its own engine finish before it anyway.

        Raises:
            EncodingError: a value that does not fit its field.
        """
        if len(self._commands[engine]) >= self._most:
            self._close()
        number = len(self._commands[engine]) + 1
        self._commands[engine].append(encode(number, self._wait(engine, after)))
        self.counts[engine] += 1
        return Ticket(self._number, engine, number)

    def newest(self, engine: Engine) -> Ticket:
        """The last command of an engine in the open group; number 0, for which nobody waits, where it has none."""
        return Ticket(self._number, engine, len(self._commands[engine]))

    @property
    def _number(self) -> int:
        """Of the open group, which no earlier group had."""
        return self._restarts + len(self._closed)

    def _wait(self, engine: Engine, after: Iterable[Ticket] | None) -> int:
        """Id of the newest command of the other engine that must be done; 0 = none."""
        other = OTHER[engine]
        if after is None:
            return len(self._commands[other])
        group = self._number
        return max((t.number for t in after if t.engine is other and t.group == group), default=0)

    def _close(self) -> None:
        if any(self._commands.values()):
            self._closed.append(self._open_group())
            self._commands = {engine: [] for engine in STREAMS}
            for engine in STREAMS:
                self.counts[engine] += self.end_marks

    def _open_group(self) -> CommandGroup:
        return CommandGroup(*(self.stream(engine, self._commands[engine]) for engine in (Engine.TIU, Engine.GDMA)))

    def groups(self) -> list[CommandGroup]:
        """The program so far."""
        return [*self._closed, self._open_group()] if any(self._commands.values()) else list(self._closed)

    def finish(self) -> list[CommandGroup]:
        """The groups since the last call; the next command begins a new one."""
        self._close()
        groups, self._closed = self._closed, []
        self._restarts += len(groups)
        return groups
