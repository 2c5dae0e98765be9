"""Which bytes BM1684 commands read and write: the tensors the simulator itself makes of them, written down.

Every command is bound to a chip whose memories note what they are asked for; nothing is executed. Both engines meet in
local memory and in L2; global memory is GDMA's alone, which runs its commands in order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import Engine
from bmcompiler.errors import SimulatorError
from bmcompiler.isa import Columns
from bmcompiler.runtime.simulator.bm1684.decoded import ENGINES, Decoded
from bmcompiler.runtime.simulator.bm1684.gdma import Relocation, Transfer, gdma_step
from bmcompiler.runtime.simulator.bm1684.memory import Machine
from bmcompiler.runtime.simulator.bm1684.operands import Fields, Operands
from bmcompiler.runtime.simulator.bm1684.plan import tiu_step
from bmcompiler.runtime.simulator.boxes import LOCAL, Boxes, Four, Use
from bmcompiler.runtime.simulator.memory import UNSIGNED, GlobalMemory, LaneMemory, Shape, Tensor
from bmcompiler.runtime.simulator.races import Accesses

SPACES = ("bytes {lo} to {hi} of lanes {row_lo} to {row_hi}", "bytes {lo} to {hi} of L2")
_L2 = 1
_WRITTEN = ("res0", "res1", "dst")


class _Note(NamedTuple):
    """One tensor: elements of `item` bytes at (lane, offset) of local memory or (0, offset) of L2; strides in bytes."""

    record: int
    write: bool
    space: int
    lane: int
    offset: int
    shape: Shape
    strides: Shape
    item: int

    def joined(self, other: _Note) -> _Note | None:
        """Both as one, when the elements of the other follow this one's: image slots of a word."""
        follows = other._replace(offset=self.offset, item=self.item) == self
        return (
            self._replace(item=self.item + other.item) if follows and other.offset == self.offset + self.item else None
        )


class _Notes:
    """What the command `record` touches; `write` says how it uses the operand at hand."""

    def __init__(self) -> None:
        self.record, self.write = 0, False
        self.found: list[_Note] = []

    def add(self, space: int, place: tuple[int, int], shape: Shape, strides: Shape, item: int) -> None:
        note = _Note(self.record, self.write, space, *place, shape, strides, item)
        joined = self.found[-1].joined(note) if self.found else None
        if joined is None:
            self.found.append(note)
        else:
            self.found[-1] = joined


class _Lanes(LaneMemory):
    def __init__(self, notes: _Notes) -> None:
        super().__init__(CHIP.lanes, CHIP.lmem_size)
        self._notes = notes

    def tensor(self, lane: int, offset: int, shape: Shape, strides: Shape, dtype: np.dtype[Any] = UNSIGNED) -> Tensor:
        self._notes.add(LOCAL, (lane, offset), shape, strides, dtype.itemsize)
        return super().tensor(lane, offset, shape, strides, dtype)


class _Outside(GlobalMemory):
    """L2 is there; other tensors may be anywhere."""

    def __init__(self, notes: _Notes) -> None:
        super().__init__()
        self._notes = notes

    def tensor(self, address: int, shape: Shape, strides: Shape, dtype: np.dtype[Any] = UNSIGNED) -> Tensor:
        offset = address - CHIP.l2_window
        if 0 <= offset < CHIP.l2_size:
            self._notes.add(_L2, (0, offset), shape, strides, dtype.itemsize)
            return super().tensor(address, shape, strides, dtype)
        return Tensor(shape, dtype, [(slice(0, shape[1]), np.broadcast_to(np.zeros((), dtype), shape))])


class _Chip(Machine):
    """A chip that takes notes."""

    def __init__(self) -> None:
        self.notes = _Notes()
        super().__init__(_Outside(self.notes), local=_Lanes(self.notes))

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


def accesses(decoded: Decoded) -> Accesses:
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
    return _boxes(chip.notes.found)


def _rows(columns: Columns) -> list[Fields]:
    return [dict(zip(columns, row)) for row in zip(*(column.tolist() for column in columns.values()))]


def _boxes(notes: list[_Note]) -> Accesses:
    found = Boxes(CHIP.lanes, CHIP.lmem_size, SPACES)
    if notes:
        record, write, space, lane, offset, shape, strides, item = zip(*notes)
        place = np.array(lane), np.array(offset)
        shapes, steps = (_four(table) for table in (shape, strides))
        local = np.array(space) == LOCAL
        use = np.array(record), np.array(write)
        found.local(Use(use[0], local, use[1]), place, shapes, steps, np.array(item))
        found.remote(Use(use[0], ~local, use[1]), _L2, place[1], shapes, steps, np.array(item))
    return found.result()


def _four(table: tuple[Shape, ...]) -> Four:
    n, c, h, w = np.array(table, np.int64).T
    return n, c, h, w
