"""A stage's commands bound to memories that take notes, for the race check: what the chips of the family share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bmcompiler.chip import LaneChip
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator.bm168x.commands import CommandSet, MemoriesT, stage_relocation
from bmcompiler.runtime.simulator.bm168x.decoded import ENGINES, DecodedStage
from bmcompiler.runtime.simulator.notes import NotedLanes, NotedOutside, Notes
from bmcompiler.runtime.simulator.races import Accesses


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
    outside = NotedOutside(notes, memory.window, memory.size, far=Engine.HAU in decoded.at)
    noting = memories(outside, NotedLanes(notes, chip.lanes, chip.lmem_size))
    for engine, records in decoded.at.items():
        rows = (row for data in decoded.streams(engine) for row in commands.decode(engine, data))
        for record, fields in zip(records.tolist(), rows):
            notes.record = record
            try:
                commands.step(noting, engine, fields, relocation)
            except SimulatorError as error:
                place = f"command {decoded.position[record]} ({ENGINES[engine]})"
                raise SimulatorError(f"{place}: {error.reason}") from error
    return outside.accesses(chip.lanes, chip.lmem_size, memory.name)
