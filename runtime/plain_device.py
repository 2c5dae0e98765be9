"""A device for chips whose programs stand in plain model files (`bmcompiler.bmodel.plain`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import ClassVar

from bmcompiler.bmodel import BModel, Buffer
from bmcompiler.bmodel.plain import PlainModel, PlainProgram
from bmcompiler.chip import LaneChip
from bmcompiler.codegen.cpu_segment import bind_segment
from bmcompiler.errors import UnsupportedError
from bmcompiler.instructions.isa import Fields, Format
from bmcompiler.numeric.arrays import Bytes
from bmcompiler.plugins.registry import plugin_code
from bmcompiler.runtime.devices import Device, LoadedProgram
from bmcompiler.runtime.simulated import PAGE, SharedChip, SimulatedProgram, mapped
from bmcompiler.runtime.simulator.memories import Memories
from bmcompiler.runtime.simulator.memory import LaneMemory
from bmcompiler.runtime.simulator.plain import command_errors, decoded
from bmcompiler.runtime.simulator.plan import Step


class PlainDevice(Device):
    """Runs models of `kind`; `step` says what the chip's commands do."""

    kind: ClassVar[type[PlainModel]]
    chip: ClassVar[LaneChip]
    formats: ClassVar[Mapping[int, Format]]

    @staticmethod
    @abstractmethod
    def step(memories: Memories, engine: int, fields: Fields) -> Step:
        """What a command does, bound to `memories`. Raises SimulatorError."""

    def load(self, model: BModel) -> list[LoadedProgram]:
        if not isinstance(model, self.kind):
            raise UnsupportedError(f"a {self.kind.container} device cannot run models for {model.target}")
        chip = SharedChip(LaneMemory(self.chip.lanes, self.chip.lmem_size))
        return [_Run(self, chip, one, model.coefficients(one)) for one in model.programs]


class _Run(SimulatedProgram[LaneMemory]):
    """One program; its commands run in the order of the stream, always a legal schedule."""

    def __init__(
        self, device: PlainDevice, chip: SharedChip[LaneMemory], program: PlainProgram, coefficients: Buffer
    ) -> None:
        super().__init__(chip, program.inputs, program.outputs, program.neuron_size, coefficients)
        self._device, self._parts = device, program.parts

    def prepare(self, neuron: Bytes) -> list[Step]:
        device = self._device
        memory, (constants, base) = mapped(PAGE, self.coefficients, neuron)
        memories = Memories(device.chip, self.chip.local, memory, base, constants)
        steps: list[Step] = []
        for part in self._parts:
            if not part.device:
                steps.append(bind_segment(bytes(part.data), neuron, self.coefficients))
                continue
            for engine, fields in decoded(part.data, device.formats):
                with self._named(len(steps)), command_errors(len(steps), device.formats[engine].name):
                    steps.append(device.step(memories, engine, fields))

        def run() -> None:
            for number, step in enumerate(steps):
                with self._named(number):
                    step()

        return [run]

    def _named(self, number: int) -> AbstractContextManager[None]:
        """What a chip's own code raises for a malformed command names the command."""
        return plugin_code(f"{self._device.kind.container} simulator, command {number}")
