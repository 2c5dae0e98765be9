"""Running recorded recipes on the simulated chip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.build import CommandBuilder, LaneInstructions
from bmcompiler.backends.bm1684.chip import CHIP, aligned_strides, local_address
from bmcompiler.backends.bm1684.machine import machine_for
from bmcompiler.backends.lanes.recipes import Plane, Steps
from bmcompiler.backends.lanes.tables import OwnTable
from bmcompiler.runtime.simulator.bm1684 import Memories, compile_plan

Range = tuple[int, int]
record = machine_for().recorded


class Tiu(LaneInstructions):
    """What recipes emit through; it keeps the byte ranges for inspection."""

    def __init__(self) -> None:
        self.builder = CommandBuilder()
        self.commands: list[tuple[list[Range], list[Range]]] = []
        self.tables: dict[bytes, int] = {}

    def own_table(self, table: OwnTable) -> int:
        """In L2, where `run_on_chip` puts it."""
        start = CHIP.l2_free[0] + sum(map(len, self.tables))
        return self.tables.setdefault(table.data, start) + table.first

    def tiu(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> Any:
        """Add a command."""
        self.commands.append((list(reads), list(writes)))
        return self.builder.tiu(**fields)

    def gdma(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> Any:
        """Add a transfer."""
        self.commands.append((list(reads), list(writes)))
        return self.builder.gdma(**fields)


def plane_bytes(shape: tuple[int, int, int, int]) -> int:
    """Bytes in a lane of an aligned tile."""
    return 4 * shape[0] * aligned_strides(shape)[0]


def tensor(memories: Memories, plane: Plane, shape: tuple[int, int, int, int]) -> Any:
    """The words of a tile."""
    steps = tuple(4 * s for s in plane.strides or aligned_strides(shape))
    return memories.local_tensor(local_address(plane.address), shape, steps, np.dtype(np.float32))


def run_on_chip(steps: Steps, *arrays: NDArray[Any], shape: tuple[int, int, int, int]) -> NDArray[np.float32]:
    """The result of the commands on tiles of `shape`; axes of size 1 of an operand are broadcast, except channels."""
    memories, build, at = Memories(poisoned=True), Tiu(), 0
    inputs = []
    for array in arrays:
        words = np.ascontiguousarray(array).view(np.float32)
        strides = aligned_strides(words.shape)
        kept = tuple(0 if a == 1 and s != 1 else t for a, s, t in zip(words.shape, shape, strides))
        tensor(memories, Plane(at), words.shape).write(words)
        inputs.append(Plane(at, None if words.shape == shape else kept))
        at += plane_bytes(words.shape)
    size = plane_bytes(shape)
    output, scratch = at, [at + (i + 1) * size for i in range(steps.registers)]
    assert at + (steps.registers + 1) * size <= CHIP.lmem_size
    steps.emit(build, shape, inputs, output, scratch)
    for data, start in build.tables.items():
        memories.l2[start : start + len(data)] = np.frombuffer(data, np.uint8)
    for reads, writes in build.commands:
        lanes = [(lo, hi) for lo, hi in (*reads, *writes) if lo < CHIP.l2_window]
        assert all(0 <= lo < hi <= CHIP.lmem_size for lo, hi in lanes)
    compile_plan(build.builder.groups(), memories).run()
    return tensor(memories, Plane(output), shape).read().copy()
