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
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator.bm168x.decoded import ENGINES, DecodedStage
from bmcompiler.runtime.simulator.bm1684x.gdma import gdma_step
from bmcompiler.runtime.simulator.bm1684x.gdma.transfer import Relocation, Transfer
from bmcompiler.runtime.simulator.bm1684x.machine import Machine
from bmcompiler.runtime.simulator.bm1684x.operands import Operands
from bmcompiler.runtime.simulator.bm1684x.plan import tiu_step
from bmcompiler.runtime.simulator.memory import UNSIGNED, GlobalMemory, Shape, Tensor
from bmcompiler.runtime.simulator.notes import LOCAL_SPACE, Anywhere, NotedLanes, Notes
from bmcompiler.runtime.simulator.races import Accesses

SPACES = (LOCAL_SPACE, "bytes {lo} to {hi} of static memory")
_STATIC = 1
_RESULTS = ("res0", "res1", "dst")


class _Outside(Anywhere):
    """Static memory is there; other tensors may be anywhere."""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self._notes = notes

    def tensor(self, address: int, shape: Shape, strides: Shape, dtype: np.dtype[Any] = UNSIGNED) -> Tensor:
        offset = address - CHIP.static_window
        if 0 <= offset < CHIP.static_size:
            self._notes.add(_STATIC, (0, offset), shape, strides, dtype.itemsize)
            return GlobalMemory.tensor(self, address, shape, strides, dtype)
        return super().tensor(address, shape, strides, dtype)


class _Chip(Machine):
    """A chip that takes notes."""

    def __init__(self) -> None:
        self.notes = Notes()
        super().__init__(_Outside(self.notes), local=NotedLanes(self.notes, CHIP.lanes, CHIP.lmem_size))


class _NotedOperands(Operands):
    def tensor(self, name: str, *args: Any, **kwargs: Any) -> Tensor:
        _take(self.machine, name)
        return super().tensor(name, *args, **kwargs)

    def static(self, name: str, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        chip, offset = self.machine, self.fields[f"{name}_addr"] - CHIP.static_window
        _take(chip, name)
        assert isinstance(chip, _Chip)
        chip.notes.add(_STATIC, (0, offset), (1, 1, 1, count), (0, 0, 0, dtype.itemsize), dtype.itemsize)
        return super().static(name, count, dtype)


class _NotedTransfer(Transfer):
    def tensor(self, side: str, *args: Any, **kwargs: Any) -> Tensor:
        _take(self.machine, side)
        return super().tensor(side, *args, **kwargs)


def _take(machine: Machine, name: str) -> None:
    """What is accumulated to is read, too, but a write meets everything a read does."""
    assert isinstance(machine, _Chip)
    machine.notes.write = name in _RESULTS


def accesses(decoded: DecodedStage) -> Accesses:
    """What the commands of a stage read and write in memory that both engines reach.

    Raises:
        SimulatorError: operands that leave their memory, forms of commands the simulator does not know.
    """
    chip, relocation = _Chip(), Relocation(decoded.stage.ctx_address)
    for engine, records in decoded.at.items():
        commands = (fields for group in decoded.stage.groups for fields in split(engine, group[engine]).fields())
        for record, fields in zip(records.tolist(), commands):
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
