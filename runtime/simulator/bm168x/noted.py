"""A stage's commands bound to memories that take notes, for the race check: what the chips of the family share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.chip import LaneChip
from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.simulator.bm168x.commands import CommandSet, MemoriesT, stage_relocation
from bmcompiler.runtime.simulator.bm168x.decoded import ENGINES, DecodedStage
from bmcompiler.runtime.simulator.memory import UNSIGNED, GlobalMemory, Shape, Tensor
from bmcompiler.runtime.simulator.notes import LOCAL_SPACE, Anywhere, NotedLanes, Notes
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
    assert isinstance(memory, NotedOutside), "only memories that take notes are bound here"
    return memory


class OnChip(NamedTuple):
    """The memory besides local memory in which both engines meet: its window of addresses; messages call it `name`."""

    window: int
    size: int
    name: str


def stage_accesses(
    decoded: DecodedStage,
    chip: LaneChip,
    memory: OnChip,
    memories: Callable[[NotedOutside, NotedLanes], MemoriesT],
    commands: CommandSet[MemoriesT],
) -> Accesses:
    """What the commands of a stage read and write in memory that both engines reach.

    Args:
        memories: of a chip. commands: such as bind their operands to it and write them down.

    Raises:
        SimulatorError: operands that leave their memory, forms of commands the simulator does not know; names the
            command.
    """
    notes, relocation = Notes(), stage_relocation(decoded.stage)
    outside = NotedOutside(notes, memory.window, memory.size)
    noting = memories(outside, NotedLanes(notes, chip.lanes, chip.lmem_size))
    for engine, records in decoded.at.items():
        rows = (row for group in decoded.stage.groups for row in commands.decode(engine, group[engine]))
        for record, fields in zip(records.tolist(), rows):
            notes.record = record
            try:
                commands.step(noting, engine, fields, relocation)
            except SimulatorError as error:
                place = f"command {decoded.position[record]} ({ENGINES[engine]})"
                raise SimulatorError(f"{place}: {error.reason}") from error
    return outside.accesses(chip.lanes, chip.lmem_size, memory.name)
