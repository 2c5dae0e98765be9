"""BM1684 commands by their fields, with ids and waits (bm1684.md 3.1); end bits are the runtime's to set."""

from __future__ import annotations

from collections.abc import Iterable

from bmcompiler.backends.bm168x.builder import GroupBuilder, Ticket
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import FORMATS, OWN_ID, WAIT_ID, Engine
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.errors import EncodingError

__all__ = ["CommandBuilder", "CommandGroup", "Ticket"]

_ADDRESSES = ("src_addr", "dst_addr")


class CommandBuilder(GroupBuilder):
    """Collects commands and gives them their ids and waits.

    Args:
        max_id: largest id of a group; smaller than the chip's limit only in tests.
    """

    def __init__(self, max_id: int = CHIP.max_command_id) -> None:
        super().__init__(max_id)

    def tiu(self, *, after: Iterable[Ticket] | None = None, **fields: int) -> Ticket:
        """Add a TIU command; see `add`."""
        return self.add(Engine.TIU, after=after, **fields)

    def gdma(self, *, after: Iterable[Ticket] | None = None, **fields: int) -> Ticket:
        """Add a GDMA command; see `add`."""
        return self.add(Engine.GDMA, after=after, **fields)

    def add(self, engine: Engine, *, after: Iterable[Ticket] | None = None, **fields: int) -> Ticket:
        """Add a command with its reset values overridden by `fields`; see `issue`.

        `src_addr` and `dst_addr` of GDMA commands (40 bits) stand for their two halves.

        Raises:
            EncodingError: unknown field, value that does not fit, id or wait among the fields.
        """
        layout, own, wait = FORMATS[engine], OWN_ID[engine], WAIT_ID[engine]
        for name in (own, wait):
            if name in fields:
                raise EncodingError(f"{layout.name}: field '{name}' is the builder's to set")
        for name in _ADDRESSES if engine is Engine.GDMA else ():
            if name in fields:
                address = fields.pop(name)
                fields |= {f"{name}_lo": address & 0xFFFF_FFFF, f"{name}_hi": address >> 32}
        return self.issue(engine, lambda number, other: layout.pack({**fields, own: number, wait: other}), after)
