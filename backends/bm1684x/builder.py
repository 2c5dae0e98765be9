"""Programs of the BM1684X, one command at a time: ids, waits, groups with their end marks (bm1684x.md 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bmcompiler.backends.bm168x.build import NEURON_VIRTUAL
from bmcompiler.backends.bm168x.builder import GroupBuilder, Ticket
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.instructions.operands import Command
from bmcompiler.backends.bm1684x.stream import ended, split
from bmcompiler.instructions.order import Engine

_ENDS = ("src", "dst", "index")


class CommandBuilder(GroupBuilder):
    """Collects commands and gives them their ids and waits; the last id of a group is that of its end mark."""

    end_marks = 1

    def __init__(self, max_id: int = CHIP.max_command_id) -> None:
        super().__init__(max_id - 1)

    def add(self, command: Command, *, after: Iterable[Ticket] | None = None) -> Ticket:
        """Add a command; see `issue`."""
        return self.issue(command.engine, command.encode, after)

    def stream(self, engine: Engine, commands: Sequence[bytes]) -> bytes:
        return ended(engine, commands)


def place_neurons(commands: bytes, start: int) -> bytes:
    """A GDMA stream with its virtual neuron addresses moved to the real start of neuron memory.

    Addresses of indices and masks lie there like those of source and destination.
    """
    stream = split(Engine.GDMA, commands)
    raw = np.frombuffer(commands, np.uint8).copy()
    for numbers, layout, columns in stream.columns():
        for side in _ENDS:
            low, high = f"{side}_addr_lo", f"{side}_addr_hi"
            if low in columns:
                address = columns[low] | columns[high] << 32
                moved = np.where(address >= NEURON_VIRTUAL, address - NEURON_VIRTUAL + start, address)
                columns[low], columns[high] = moved & 0xFFFF_FFFF, moved >> 32
        at = np.array(stream.starts)[numbers][:, None] + np.arange(layout.size)
        raw[at] = layout.encode(columns).reshape(at.shape)
    return raw.tobytes()
