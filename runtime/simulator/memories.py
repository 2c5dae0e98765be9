"""A simulated chip as the steps of its commands see it: maps in local memory, and what is mapped outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.chip import Dims, LaneChip
from bmcompiler.instructions.isa import Fields
from bmcompiler.runtime.simulator.memory import SIGNED, GlobalMemory, LaneMemory, Tensor
from bmcompiler.runtime.simulator.notes import Anywhere, NotedLanes, Notes


class Memories:
    """Local and global memory. `neuron` and `constants` are the addresses of the two areas of a program."""

    def __init__(
        self, chip: LaneChip, local: LaneMemory, outside: GlobalMemory, neuron: int = 0, constants: int = 0
    ) -> None:
        self.chip, self.local, self.outside, self.neuron, self.constants = chip, local, outside, neuron, constants

    def map(self, address: int, shape: Dims, write: bool = False, dtype: np.dtype[Any] = SIGNED) -> Tensor:
        """A feature map at `address` in every lane; `write` says what is done to it. Raises SimulatorError outside."""
        return self.local.tensor(0, address, shape, self.chip.strides(shape, dtype.itemsize), dtype)

    def area(
        self, address: int, shape: Dims, strides: Dims, constant: bool = False, dtype: np.dtype[Any] = SIGNED
    ) -> Tensor:
        """A strided tensor `address` bytes from the start of neuron memory, or of the constants; strides in bytes."""
        base = self.constants if constant else self.neuron
        return self.outside.tensor(base + address, shape, strides, dtype)


class NotingMemories(Memories):
    """Executes nothing: it notes what is done in local memory, where alone the engines meet."""

    def __init__(self, chip: LaneChip) -> None:
        self.notes = Notes()
        super().__init__(chip, NotedLanes(self.notes, chip.lanes, chip.lmem_size), Anywhere())

    def map(self, address: int, shape: Dims, write: bool = False, dtype: np.dtype[Any] = SIGNED) -> Tensor:
        self.notes.write = write
        return super().map(address, shape, write, dtype)


StepMaker = Callable[[Memories, int, Fields], Callable[[], None]]
"""(memories, engine, fields of a command) -> what it does, bound to the memories. Raises SimulatorError."""
