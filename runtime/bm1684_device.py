"""The bit-accurate BM1684 simulator as a device."""

from __future__ import annotations

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.runtime.bm168x_device import Bm168xDevice, Planner
from bmcompiler.runtime.simulator.bm1684.memory import Memories, local_memory
from bmcompiler.runtime.simulator.bm1684.plan import compile_plan
from bmcompiler.runtime.simulator.memory import GlobalMemory, LaneMemory
from bmcompiler.runtime.simulator.relocation import Relocation


class Bm1684Device(Bm168xDevice):
    """A simulated BM1684."""

    chip = CHIP.name
    first_address = CHIP.program_base + (1 << 28)

    def local_memory(self) -> LaneMemory:
        return local_memory(poisoned=True)

    def planner(self, memory: GlobalMemory, local: LaneMemory, relocation: Relocation) -> Planner:
        memories = Memories(memory, local=local)
        return lambda groups: compile_plan(groups, memories, relocation, fast=self.fast).run
