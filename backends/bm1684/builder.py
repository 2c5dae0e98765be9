"""Programs for both engines, one command at a time: ids, waits and command groups (bm1684.md 3.1).

By default every command waits for the newest command of the other engine, so that the program runs serially and no
two commands ever meet in memory. A caller that knows better names the commands it depends on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import FORMATS, OWN_ID, WAIT_ID, Engine
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.errors import EncodingError

__all__ = ["CommandBuilder", "CommandGroup", "Ticket"]

_OTHER = {Engine.TIU: Engine.GDMA, Engine.GDMA: Engine.TIU}


@dataclass(frozen=True)
class Ticket:
    """A command that was added: what later commands can wait for."""

    group: int
    engine: Engine
    number: int


class CommandBuilder:
    """Collects commands and gives them their ids and waits.

    A group is closed before an id would leave its 16 bits. The runtime ends a group only when both engines are done, so
    commands never have to wait for commands of an earlier group.

    Args:
        max_id: largest id of a group; smaller than the chip's limit only in tests.
    """

    def __init__(self, max_id: int = CHIP.max_command_id) -> None:
        self._max_id = max_id
        self._closed: list[CommandGroup] = []
        self._commands: dict[Engine, list[bytes]] = {engine: [] for engine in Engine}

    def tiu(self, *, after: Iterable[Ticket] | None = None, **fields: int) -> Ticket:
        """Add a TIU command; see `add`."""
        return self.add(Engine.TIU, after=after, **fields)

    def gdma(self, *, after: Iterable[Ticket] | None = None, **fields: int) -> Ticket:
        """Add a GDMA command; `src_addr` and `dst_addr` (40 bits) stand for their two halves; see `add`."""
        for name in ("src_addr", "dst_addr"):
            if name in fields:
                address = fields.pop(name)
                fields |= {f"{name}_lo": address & 0xFFFF_FFFF, f"{name}_hi": address >> 32}
        return self.add(Engine.GDMA, after=after, **fields)

    def add(self, engine: Engine, *, after: Iterable[Ticket] | None = None, **fields: int) -> Ticket:
        """Add a command with its reset values overridden by `fields`.

        Args:
            after: the commands it depends on; by default all so far. Those of its own engine finish before it anyway.

        Raises:
            EncodingError: unknown field, value that does not fit, id or wait among the fields.
        """
        for name in (OWN_ID[engine], WAIT_ID[engine]):
            if name in fields:
                raise EncodingError(f"{FORMATS[engine].name}: field '{name}' is the builder's to set")
        if len(self._commands[engine]) >= self._max_id:
            self._close()
        number = len(self._commands[engine]) + 1
        wait = self._wait(engine, after)
        command = FORMATS[engine].pack({**fields, OWN_ID[engine]: number, WAIT_ID[engine]: wait})
        self._commands[engine].append(command)
        return Ticket(len(self._closed), engine, number)

    def _wait(self, engine: Engine, after: Iterable[Ticket] | None) -> int:
        """Id of the newest command of the other engine that must be done; 0 = none."""
        other = _OTHER[engine]
        if after is None:
            return len(self._commands[other])
        group = len(self._closed)
        return max((t.number for t in after if t.engine is other and t.group == group), default=0)

    def _close(self) -> None:
        if any(self._commands.values()):
            self._closed.append(self._open_group())
            self._commands = {engine: [] for engine in Engine}

    def _open_group(self) -> CommandGroup:
        return CommandGroup(*(b"".join(self._commands[engine]) for engine in (Engine.TIU, Engine.GDMA)))

    def groups(self) -> list[CommandGroup]:
        """The program so far; end bits are the runtime's to set."""
        return [*self._closed, self._open_group()] if any(self._commands.values()) else list(self._closed)
