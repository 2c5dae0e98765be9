"""The bit-accurate BM1684X simulator as a device."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.static_tables import static_memory
from bmcompiler.runtime.bm168x_device import Bm168xDevice, Planner
from bmcompiler.runtime.simulator.bm1684x import Memories, compile_plan
from bmcompiler.runtime.simulator.bm1684x.memories import local_memory
from bmcompiler.runtime.simulator.memory import GlobalMemory, LaneMemory
from bmcompiler.runtime.simulator.relocation import Relocation


class Bm1684xDevice(Bm168xDevice):
    """A simulated BM1684X; its runtime fills static memory with tables (bm1684x.md 1.2)."""

    chip = CHIP.name
    first_address = CHIP.global_base + (1 << 28)

    def local_memory(self) -> LaneMemory:
        return local_memory(poisoned=True)

    def planner(self, memory: GlobalMemory, local: LaneMemory, relocation: Relocation) -> Planner:
        memories = Memories(memory, local=local)
        memories.static[...] = static_memory()
        return lambda groups: compile_plan(groups, memories, relocation, fast=self.fast).run
