"""A stage's commands bound to memories that take notes, for the race check: what the chips of the family share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator.bm168x.decoded import ENGINES, DecodedStage
from bmcompiler.runtime.simulator.machine import Fields
from bmcompiler.runtime.simulator.memory import UNSIGNED, GlobalMemory, Shape, Tensor
from bmcompiler.runtime.simulator.notes import LOCAL_SPACE, Anywhere, Notes
from bmcompiler.runtime.simulator.races import Accesses

ON_CHIP = 1
"""Number of the memory besides local memory in which both engines meet."""
_WRITTEN = ("res0", "res1", "dst")


class NotedOutside(Anywhere):
    """The on-chip memory behind a window of addresses takes notes; other tensors may be anywhere."""

    def __init__(self, notes: Notes, window: int, size: int) -> None:
        super().__init__()
        self._notes, self._window, self._size = notes, window, size

    def tensor(self, address: int, shape: Shape, strides: Shape, dtype: np.dtype[Any] = UNSIGNED) -> Tensor:
        offset = address - self._window
        if 0 <= offset < self._size:
            self._notes.add(ON_CHIP, (0, offset), shape, strides, dtype.itemsize)
            return GlobalMemory.tensor(self, address, shape, strides, dtype)
        return super().tensor(address, shape, strides, dtype)

    def row(self, name: str, offset: int, count: int, item: int) -> None:
        """Note that operand `name` is `count` elements side by side in the on-chip memory."""
        self.operand(name)
        self._notes.add(ON_CHIP, (0, offset), (1, 1, 1, count), (0, 0, 0, item), item)

    def operand(self, name: str) -> None:
        """Operand `name` comes next. What is accumulated to is read, too, but a write meets everything a read does."""
        self._notes.write = name in _WRITTEN

    def accesses(self, lanes: int, lane_size: int, name: str) -> Accesses:
        """All that was noted; `name` is how messages call the on-chip memory."""
        return self._notes.accesses(lanes, lane_size, (LOCAL_SPACE, f"bytes {{lo}} to {{hi}} of {name}"))


def noted(memory: GlobalMemory) -> NotedOutside:
    """The global memory of a chip that takes notes."""
    assert isinstance(memory, NotedOutside)
    return memory


Bind = Callable[[Engine, Fields], object]
"""Binds the operands of one command; raises SimulatorError for those that leave their memory and for unknown forms."""


def note_commands(
    decoded: DecodedStage, notes: Notes, fields: Callable[[Engine], Iterable[Fields]], bind: Bind
) -> None:
    """Bind all commands of a stage. Raises SimulatorError naming the command."""
    for engine, records in decoded.at.items():
        for record, command in zip(records.tolist(), fields(engine)):
            notes.record = record
            try:
                bind(engine, command)
            except SimulatorError as error:
                place = f"command {decoded.position[record]} ({ENGINES[engine]})"
                raise SimulatorError(f"{place}: {error.reason}") from error
