"""Simulated chips of the BM168x family as devices: relocation, subnets in order, inputs, outputs (bm1684.md 10.5)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bmcompiler.bmodel import BModel
from bmcompiler.bmodel.bm168x import (
    IMAGES_PER_WORD,
    Bm168xModel,
    Bm168xStage,
    Bm168xTensor,
    CommandGroup,
    CpuSubnet,
    TpuSubnet,
    tensor_info,
)
from bmcompiler.codegen.cpu_segment import bind_segment
from bmcompiler.errors import SimulatorError, UnsupportedError
from bmcompiler.runtime.devices import Array, Device, LoadedProgram
from bmcompiler.runtime.simulated import Bytes, SharedChip, SimulatedProgram, Step
from bmcompiler.runtime.simulator.memory import GlobalMemory, LaneMemory

Planner = Callable[[Sequence[CommandGroup]], Step]
"""Makes of the groups of a subnet what runs them."""


@dataclass(frozen=True)
class ProgramPlace:
    """Where a program lies in simulated memory.

    Attributes:
        neuron_start: compiled address of the neuron memory.
        coefficients, neuron: what is added to compiled addresses of both areas.
    """

    neuron_start: int
    coefficients: int
    neuron: int


class Bm168xDevice(Device):
    """Runs static models of a chip; `fast` sums floats in the order of BLAS instead of the chip's.

    A chip's own class says its name in model files and where its simulated runtime puts coefficients: elsewhere than
    compilers do, so that relocation is at work.
    """

    fast_mode = "sums in BLAS order: not bit-exact"
    chip: str
    first_address: int

    def __init__(self, index: int = 0, *, fast: bool = False) -> None:
        super().__init__(index)
        self.fast = fast

    @abstractmethod
    def local_memory(self) -> LaneMemory:
        """Local memory of a chip just switched on: programs of the vendor's compiler may read it unwritten."""

    @abstractmethod
    def planner(self, memory: GlobalMemory, local: LaneMemory, place: ProgramPlace) -> Planner:
        """These memories, as what decodes groups for it."""

    def load(self, model: BModel) -> list[LoadedProgram]:
        if not isinstance(model, Bm168xModel) or model.target != self.chip:
            raise UnsupportedError(f"a {self.chip} device cannot run models for {model.target}")
        chip = SharedChip(self.local_memory())
        return [Bm168xProgram(self, stage, chip) for _, stage in model.all_stages()]


class Bm168xProgram(SimulatedProgram[LaneMemory]):
    """One stage of a net, bound to the memories of its chip."""

    def __init__(self, device: Bm168xDevice, stage: Bm168xStage, chip: SharedChip[LaneMemory]) -> None:
        inputs, outputs = ([tensor_info(one, stage) for one in each] for each in (stage.inputs, stage.outputs))
        super().__init__(chip, inputs, outputs, stage.ctx_size, stage.coefficients)
        self._device, self._stage = device, stage

    def packed(self, index: int, value: Array) -> Array:
        return _packed(self._stage.inputs[index], value)

    def unpacked(self, index: int, data: Bytes) -> Array:
        return _unpacked(self._stage.outputs[index], data)

    def output_bytes(self, index: int) -> int:
        return self._stage.outputs[index].size

    def prepare(self, neuron: Bytes) -> list[Step]:
        stage = self._stage
        memory, first, base = self.mapped(neuron, self._device.first_address)
        place = ProgramPlace(stage.ctx_address, first - stage.coeff_address, base - stage.ctx_address)
        plan = self._device.planner(memory, self.chip.local, place)
        steps: list[Step] = []
        for subnet in stage.subnets:
            if isinstance(subnet, CpuSubnet) and not subnet.custom:
                raise UnsupportedError(
                    f"subnet {subnet.id} is layer {subnet.op_type} of the vendor's host library, which is missing",
                    remedy="compile the network with bmnet-compile",
                )
            if not isinstance(subnet, TpuSubnet):
                steps.append(bind_segment(bytes(subnet.parameters), neuron, self.coefficients))
            elif subnet.dynamic:
                raise SimulatorError(
                    "a subnet is dynamic: its commands are made by the firmware, which is not simulated",
                    remedy="compile the network without dynamic subnets",
                )
            else:
                steps.append(plan(subnet.groups))
        return steps


def _packed(tensor: Bm168xTensor, value: Array) -> Bytes:
    """Bytes of a tensor in device memory: images side by side in words when its store mode says so."""
    images = IMAGES_PER_WORD[tensor.store_mode]
    if images == 1:
        return np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    count, size = value.shape[0], int(np.prod(value.shape[1:]))
    words = np.zeros((-(-count // images), size, images), value.dtype)
    for k in range(min(images, count)):
        words[: -(-(count - k) // images), :, k] = value[k::images].reshape(-1, size)
    return words.reshape(-1).view(np.uint8)


def _unpacked(tensor: Bm168xTensor, data: Bytes) -> Array:
    """The way back of `_packed`, as a new array."""
    images = IMAGES_PER_WORD[tensor.store_mode]
    values = data.view(tensor.dtype)
    if images == 1:
        return values.copy().reshape(tensor.shape)
    words = values.reshape(-1, int(np.prod(tensor.shape[1:])), images)
    return words.swapaxes(1, 2).reshape(-1, words.shape[1])[: tensor.shape[0]].reshape(tensor.shape)
