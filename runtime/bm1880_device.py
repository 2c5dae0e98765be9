"""The bit-accurate BM1880 simulator as a device."""

from __future__ import annotations

from bmcompiler.bmodel import BModel, Buffer
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.errors import UnsupportedError
from bmcompiler.numeric.arrays import Bytes
from bmcompiler.runtime.devices import Device, LoadedProgram
from bmcompiler.runtime.simulated import SharedChip, SimulatedProgram, mapped
from bmcompiler.runtime.simulator.bm1880.memory import LocalMemory, Memories
from bmcompiler.runtime.simulator.bm1880.plan import compile_plan
from bmcompiler.runtime.simulator.plan import Step

FIRST_ADDRESS = 0x2800000
"""First allocation in device memory (bm1880.md 13)."""


class Bm1880Device(Device):
    """Runs models of the chip."""

    def load(self, model: BModel) -> list[LoadedProgram]:
        if not isinstance(model, Bm1880Model):
            raise UnsupportedError(f"a bm1880 device cannot run models for {model.target}")
        chip = SharedChip(LocalMemory())
        return [
            Bm1880Program(chip, command, model.weights[command.weight_index] if model.weights else b"")
            for command in model.commands
        ]


class Bm1880Program(SimulatedProgram[LocalMemory]):
    """One command buffer."""

    def __init__(self, chip: SharedChip[LocalMemory], command: Command, weights: Buffer) -> None:
        super().__init__(chip, command.inputs, command.outputs, command.neuron_size, weights)
        self._cmdbuf = command.cmdbuf

    def prepare(self, neuron: Bytes) -> list[Step]:
        memory, (weight_base, neuron_base) = mapped(FIRST_ADDRESS, self.coefficients, neuron)
        plan = compile_plan(self._cmdbuf, Memories(memory, self.chip.local), neuron_base, weight_base)
        return [plan.run]
