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
from bmcompiler.instructions.isa import Columns
from bmcompiler.runtime.simulator.bm168x.decoded import DecodedStage
from bmcompiler.runtime.simulator.bm168x.noted import NotedOutside, note_commands, noted
from bmcompiler.runtime.simulator.bm1684.gdma import Relocation, Transfer, gdma_step
from bmcompiler.runtime.simulator.bm1684.memory import Machine
from bmcompiler.runtime.simulator.bm1684.operands import Operands
from bmcompiler.runtime.simulator.bm1684.plan import tiu_step
from bmcompiler.runtime.simulator.machine import Fields
from bmcompiler.runtime.simulator.memory import Shape, Tensor
from bmcompiler.runtime.simulator.notes import NotedLanes, Notes
from bmcompiler.runtime.simulator.races import Accesses


class _Chip(Machine):
    """A chip that takes notes of its tables in L2."""

    def table(self, offset: int, entries: int) -> NDArray[np.float32]:
        noted(self.globals).row("table", offset, entries, 4)
        return super().table(offset, entries)


class _NotedOperands(Operands):
    def tensor(self, name: str, shape: Shape, strides: Shape, dtype: np.dtype[Any], at: int = 0) -> Tensor:
        noted(self.machine.globals).operand(name)
        return super().tensor(name, shape, strides, dtype, at)


class _NotedTransfer(Transfer):
    def tensor(self, side: str, shape: Shape, strides: Shape | None = None, skip: int = 0) -> Tensor:
        noted(self.machine.globals).operand(side)
        return super().tensor(side, shape, strides, skip)


def accesses(decoded: DecodedStage) -> Accesses:
    """What the commands of a stage read and write in memory that both engines reach.

    Raises:
        SimulatorError: operands that leave their memory, forms of commands the simulator does not know.
    """
    notes, relocation = Notes(), Relocation(decoded.stage.ctx_address)
    outside = NotedOutside(notes, CHIP.l2_window, CHIP.l2_size)
    chip = _Chip(outside, local=NotedLanes(notes, CHIP.lanes, CHIP.lmem_size))

    def bind(engine: Engine, fields: Fields) -> object:
        if engine is Engine.TIU:
            return tiu_step(_NotedOperands(chip, fields))
        return gdma_step(_NotedTransfer(chip, fields, relocation))

    note_commands(decoded, notes, lambda engine: _rows(decoded.fields[engine]), bind)
    return outside.accesses(CHIP.lanes, CHIP.lmem_size, "L2")


def _rows(columns: Columns) -> list[Fields]:
    return [dict(zip(columns, row)) for row in zip(*(column.tolist() for column in columns.values()))]
