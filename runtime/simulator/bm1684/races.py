"""Which bytes BM1684 commands read and write: the tensors the simulator itself makes of them, written down.

Every command is bound to a chip whose memories note what they are asked for; nothing is executed. Both engines meet in
local memory and in L2; global memory is GDMA's alone, which runs its commands in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import Engine
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Columns
from bmcompiler.runtime.simulator.bm168x.decoded import ENGINES, DecodedStage
from bmcompiler.runtime.simulator.bm1684.gdma import Relocation, Transfer, gdma_step
from bmcompiler.runtime.simulator.bm1684.memory import Machine
from bmcompiler.runtime.simulator.bm1684.operands import Operands
from bmcompiler.runtime.simulator.bm1684.plan import tiu_step
from bmcompiler.runtime.simulator.machine import Fields
from bmcompiler.runtime.simulator.memory import UNSIGNED, GlobalMemory, Shape, Tensor
from bmcompiler.runtime.simulator.notes import LOCAL_SPACE, Anywhere, NotedLanes, Notes
from bmcompiler.runtime.simulator.races import Accesses

SPACES = (LOCAL_SPACE, "bytes {lo} to {hi} of L2")
_L2 = 1
_WRITTEN = ("res0", "res1", "dst")


class _Outside(Anywhere):
    """L2 is there; other tensors may be anywhere."""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self._notes = notes

    def tensor(self, address: int, shape: Shape, strides: Shape, dtype: np.dtype[Any] = UNSIGNED) -> Tensor:
        offset = address - CHIP.l2_window
        if 0 <= offset < CHIP.l2_size:
            self._notes.add(_L2, (0, offset), shape, strides, dtype.itemsize)
            return GlobalMemory.tensor(self, address, shape, strides, dtype)
        return super().tensor(address, shape, strides, dtype)


class _Chip(Machine):
    """A chip that takes notes."""

    def __init__(self) -> None:
        self.notes = Notes()
        super().__init__(_Outside(self.notes), local=NotedLanes(self.notes, CHIP.lanes, CHIP.lmem_size))

    def table(self, offset: int, entries: int) -> NDArray[np.float32]:
        self.notes.write = False
        self.notes.add(_L2, (0, offset), (1, 1, 1, entries), (0, 0, 0, 4), 4)
        return super().table(offset, entries)


class _NotedOperands(Operands):
    def tensor(self, name: str, shape: Shape, strides: Shape, dtype: np.dtype[Any], at: int = 0) -> Tensor:
        _take(self.machine, name)
        return super().tensor(name, shape, strides, dtype, at)


class _NotedTransfer(Transfer):
    def tensor(self, side: str, shape: Shape, strides: Shape | None = None, skip: int = 0) -> Tensor:
        _take(self.machine, side)
        return super().tensor(side, shape, strides, skip)


def _take(machine: Machine, name: str) -> None:
    """What is accumulated to is read, too, but a write meets everything a read does."""
    assert isinstance(machine, _Chip)
    machine.notes.write = name in _WRITTEN


def accesses(decoded: DecodedStage) -> Accesses:
    """What the commands of a stage read and write in memory that both engines reach.

    Raises:
        SimulatorError: operands that leave their memory, forms of commands the simulator does not know.
    """
    chip, relocation = _Chip(), Relocation(decoded.stage.ctx_address)
    for engine, columns in decoded.fields.items():
        for record, fields in zip(decoded.at[engine].tolist(), _rows(columns)):
            chip.notes.record = record
            try:
                if engine is Engine.TIU:
                    tiu_step(_NotedOperands(chip, fields))
                else:
                    gdma_step(_NotedTransfer(chip, fields, relocation))
            except SimulatorError as error:
                place = f"command {decoded.position[record]} ({ENGINES[engine]})"
                raise SimulatorError(f"{place}: {error.reason}") from error
    return chip.notes.accesses(CHIP.lanes, CHIP.lmem_size, SPACES)


def _rows(columns: Columns) -> list[Fields]:
    return [dict(zip(columns, row)) for row in zip(*(column.tolist() for column in columns.values()))]
