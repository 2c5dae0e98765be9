"""Which bytes BM1684X commands read and write: the tensors the simulator itself makes of them, written down.

Every command is bound to a chip whose memories note what they are asked for; nothing is executed. Both engines meet in
local and in static memory; L2 and global memory are GDMA's alone, which runs its commands in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator.bm168x.decoded import DecodedStage
from bmcompiler.runtime.simulator.bm168x.noted import NotedOutside, note_commands, noted
from bmcompiler.runtime.simulator.bm1684x.gdma import gdma_step
from bmcompiler.runtime.simulator.bm1684x.gdma.transfer import Relocation, Transfer
from bmcompiler.runtime.simulator.bm1684x.machine import Machine
from bmcompiler.runtime.simulator.bm1684x.operands import Operands
from bmcompiler.runtime.simulator.bm1684x.plan import tiu_step
from bmcompiler.runtime.simulator.machine import Fields
from bmcompiler.runtime.simulator.memory import Tensor
from bmcompiler.runtime.simulator.notes import NotedLanes, Notes
from bmcompiler.runtime.simulator.races import Accesses


class _NotedOperands(Operands):
    def tensor(self, name: str, *args: Any, **kwargs: Any) -> Tensor:
        noted(self.machine.globals).operand(name)
        return super().tensor(name, *args, **kwargs)

    def static(self, name: str, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        offset = self.fields[f"{name}_addr"] - CHIP.static_window
        noted(self.machine.globals).row(name, offset, count, dtype.itemsize)
        return super().static(name, count, dtype)


class _NotedTransfer(Transfer):
    def tensor(self, side: str, *args: Any, **kwargs: Any) -> Tensor:
        noted(self.machine.globals).operand(side)
        return super().tensor(side, *args, **kwargs)


def accesses(decoded: DecodedStage) -> Accesses:
    """What the commands of a stage read and write in memory that both engines reach.

    Raises:
        SimulatorError: operands that leave their memory, forms of commands the simulator does not know.
    """
    notes, relocation = Notes(), Relocation(decoded.stage.ctx_address)
    outside = NotedOutside(notes, CHIP.static_window, CHIP.static_size)
    chip = Machine(outside, local=NotedLanes(notes, CHIP.lanes, CHIP.lmem_size))

    def bind(engine: Engine, fields: Fields) -> object:
        if engine is Engine.TIU:
            return tiu_step(_NotedOperands(chip, fields))
        return gdma_step(_NotedTransfer(chip, fields, relocation))

    groups = decoded.stage.groups
    note_commands(
        decoded, notes, lambda engine: (row for one in groups for row in split(engine, one[engine]).fields()), bind
    )
    return outside.accesses(CHIP.lanes, CHIP.lmem_size, "static memory")
