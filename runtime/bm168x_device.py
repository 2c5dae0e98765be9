"""Simulated chips of the BM168x family as devices: relocation, subnets in order, inputs, outputs (bm1684.md 10.5)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from bmcompiler.bmodel import BModel, TensorInfo
from bmcompiler.bmodel.bm168x import (
    BASIC,
    IMAGES_PER_WORD,
    IO_ALONE,
    Bm168xModel,
    Bm168xNet,
    Bm168xStage,
    Bm168xTensor,
    CommandGroup,
    CpuSubnet,
    TpuSubnet,
    mode_name,
    tensor_info,
)
from bmcompiler.errors import SimulatorError, UnsupportedError
from bmcompiler.numeric.arrays import Array, Bytes
from bmcompiler.runtime.bm168x_memory import Bm168xMemory, DeviceBlock, LoadedNet, host_block
from bmcompiler.runtime.devices import Device, LoadedProgram
from bmcompiler.runtime.simulated import Areas, SimulatedProgram, mapped
from bmcompiler.runtime.simulator.bm168x.commands import stage_relocation
from bmcompiler.runtime.simulator.memory import GlobalMemory, LaneMemory
from bmcompiler.runtime.simulator.plan import Step
from bmcompiler.runtime.simulator.relocation import Relocation

Planner = Callable[[Sequence[CommandGroup]], Step]
"""Makes of the groups of a subnet what runs them."""


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
    def planner(self, memory: GlobalMemory, local: LaneMemory, relocation: Relocation) -> Planner:
        """These memories, as what decodes groups for them."""

    def memory(self, allocate: Callable[[int], DeviceBlock] = host_block) -> Bm168xMemory:
        """Memory that models may be loaded into; `allocate` gives zeroed bytes of it."""
        return Bm168xMemory(self.local_memory(), allocate)

    def load(self, model: BModel) -> list[LoadedProgram]:
        return [*self.load_into(model, self.memory())]

    def load_into(self, model: BModel, memory: Bm168xMemory) -> list[Bm168xProgram]:
        """As `load`, with memory that other models may share."""
        if not isinstance(model, Bm168xModel) or model.target != self.chip:
            raise UnsupportedError(f"a {self.chip} device cannot run models for {model.target}")
        neuron_size = max(stage.ctx_size for _, stage in model.all_stages())
        programs: list[Bm168xProgram] = []
        for net in model.nets:
            own = LoadedNet(memory, neuron_size, max(stage.io_size for stage in net.stages))
            programs += (Bm168xProgram(self, net, stage, own) for stage in net.stages)
        return programs


class Bm168xProgram(SimulatedProgram[LaneMemory]):
    """One stage of a net, bound to the memories of its chip."""

    def __init__(self, device: Bm168xDevice, net: Bm168xNet, stage: Bm168xStage, memory: LoadedNet) -> None:
        inputs, outputs = ([tensor_info(one, stage) for one in each] for each in (stage.inputs, stage.outputs))
        super().__init__(memory.shared, inputs, outputs, stage.ctx_size, stage.coefficients)
        self._device, self._net, self._stage, self._memory = device, net, stage, memory

    def allocated(self) -> Areas:
        # A program reaches no further than its own stage says.
        return Areas(self._memory.neuron.data[: self._stage.ctx_size], self._memory.io.data[: self._stage.io_size])

    def address(self, info: TensorInfo) -> int:
        """Address in device memory of one of `inputs` or `outputs`."""
        return (self._memory.io if info.kept else self._memory.neuron).address + info.offset

    @property
    def neuron(self) -> DeviceBlock:
        """Neuron memory, which the programs of its model share."""
        return self._memory.neuron

    def packed(self, index: int, value: Array) -> Array:
        return _packed(self._stage.inputs[index], value)

    def unpacked(self, index: int, data: Bytes) -> Array:
        return _unpacked(self._stage.outputs[index], data.view(self.outputs[index].stored))

    def output_bytes(self, index: int) -> int:
        return self._stage.outputs[index].size

    def prepare(self, neuron: Bytes) -> list[Step]:
        stage = self._stage
        self._refuse_unknown_addresses()
        memory, places = mapped(self._device.first_address, self.coefficients, self.areas.io, neuron)
        plan = self._device.planner(memory, self.chip.local, stage_relocation(stage, *places))
        steps: list[Step] = []
        for subnet in stage.subnets:
            if isinstance(subnet, CpuSubnet) and not subnet.custom:
                raise UnsupportedError(
                    f"subnet {subnet.id} is layer {subnet.op_type} of the vendor's host library, which is missing",
                    remedy="compile the network with bmnet-compile",
                )
            if not isinstance(subnet, TpuSubnet):
                from bmcompiler.codegen.cpu_segment import bind_segment  # it needs all ops, other models none

                steps.append(bind_segment(bytes(subnet.parameters), neuron, self.coefficients))
            elif subnet.dynamic:
                raise SimulatorError(
                    f"subnet {subnet.id} of net '{self._net.name}' is dynamic: its commands are made by the firmware, "
                    "which is not simulated",
                    remedy="compile it without dynamic subnets, or run what comes before them: bmnet-tool static",
                )
            else:
                steps.append(plan(subnet.groups))
        return steps

    def _refuse_unknown_addresses(self) -> None:
        stage = self._stage
        for info, tensor in zip((*self.inputs, *self.outputs), (*stage.inputs, *stage.outputs)):
            start = tensor.address - stage.ctx_address
            inside = info.kept or 0 <= start <= stage.ctx_size - tensor.size
            if self._net.address_mode not in (BASIC, IO_ALONE) and not inside:
                raise UnsupportedError(
                    f"tensor '{info.name}' of net '{self._net.name}' lies outside neuron and io memory: addresses of "
                    f"the mode {mode_name(self._net.address_mode)} are not known",
                    remedy="compile it with the address mode basic or io_alone",
                )


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


def _unpacked(tensor: Bm168xTensor, values: Array) -> Array:
    """The way back of `_packed`, as a new array."""
    images = IMAGES_PER_WORD[tensor.store_mode]
    if images == 1:
        return values.copy().reshape(tensor.shape)
    words = values.reshape(-1, int(np.prod(tensor.shape[1:])), images)
    return words.swapaxes(1, 2).reshape(-1, words.shape[1])[: tensor.shape[0]].reshape(tensor.shape)
