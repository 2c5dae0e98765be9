"""Local and global memory of the simulated BM1880, and its 16-bit tensors in two planes."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.numeric.arrays import IntArray
from bmcompiler.runtime.simulator.memory import MAX_ELEMENTS, SIGNED, UNSIGNED, GlobalMemory, LaneMemory, Shape, Tensor

__all__ = [
    "MAX_ELEMENTS", "SIGNED", "UNSIGNED", "GlobalMemory", "LocalMemory", "Memories", "Shape",
    "Tensor", "WideTensor",
]  # fmt: skip


class WideTensor:
    """A tensor of 16-bit elements in two planes: value = high * 256 + low, low always 0..255 (bm1880.md 8.1)."""

    def __init__(self, low: Tensor, high: Tensor) -> None:
        self.low, self.high, self.shape = low, high, low.shape

    def read(self) -> IntArray:
        """The elements as int32 (N, C, H, W)."""
        return np.asarray((self.high.read().astype(np.int32) << 8) | self.low.read())

    def write(self, values: IntArray) -> None:
        """Store the low 16 bits of each integer."""
        self.low.write(values.astype(np.uint8))
        self.high.write((values >> 8).astype(np.uint8))


class LocalMemory(LaneMemory):
    """32 lanes of 65536 bytes, zero at first. `bytes[lane, offset]` is one byte."""

    def __init__(self) -> None:
        super().__init__(CHIP.lanes, CHIP.lmem_size)


class Memories:
    """One chip: its local and global memory."""

    def __init__(self, global_memory: GlobalMemory | None = None, local: LaneMemory | None = None) -> None:
        self.local = local or LocalMemory()
        self.globals = global_memory or GlobalMemory()
