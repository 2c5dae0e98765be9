"""The bit-accurate BM1684 simulator as a device: relocation, subnets in order, inputs and outputs (bm1684.md 10.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.chip import CHIP, align_up
from bmcompiler.bmodel import BModel
from bmcompiler.bmodel.bm1684 import (
    IMAGES_PER_WORD,
    Bm1684Model,
    Bm1684Stage,
    Bm1684Tensor,
    CpuSubnet,
    TpuSubnet,
    tensor_info,
)
from bmcompiler.codegen.cpu_segment import bind_segment
from bmcompiler.errors import RuntimeUseError, SimulatorError, UnsupportedError
from bmcompiler.runtime.devices import PAGE, Array, Device, Program
from bmcompiler.runtime.simulator.bm1684.gdma import Relocation
from bmcompiler.runtime.simulator.bm1684.memory import Machine, local_memory
from bmcompiler.runtime.simulator.bm1684.plan import compile_plan
from bmcompiler.runtime.simulator.memory import GlobalMemory

Bytes = NDArray[np.uint8]
FIRST_ADDRESS = CHIP.program_base + (1 << 28)
"""Where the simulated runtime puts coefficients: elsewhere than compilers do, so that relocation is at work."""


class Bm1684Device(Device):
    """Runs static models of the chip; `fast` sums floats in the order of BLAS instead of the chip's."""

    fast_mode = "sums in BLAS order: not bit-exact"

    def __init__(self, index: int = 0, *, fast: bool = False) -> None:
        super().__init__(index)
        self.fast = fast

    def load(self, model: BModel) -> list[Program]:
        if not isinstance(model, Bm1684Model) or model.target != "bm1684":
            raise UnsupportedError(f"a bm1684 device cannot run models for {model.target}")
        chip = _SharedChip()
        return [Bm1684Program(stage, chip, self.fast) for _, stage in model.all_stages()]


class _SharedChip:
    """Local memory that the programs of a model share; only the holder of the lock may run.

    It starts as that of the vendor's model does, because programs of the vendor's compiler may read it unwritten.
    """

    def __init__(self) -> None:
        self.local, self.lock = local_memory(poisoned=True), Lock()


class Bm1684Program(Program):
    """A stage with memory of its own. It is allocated, and the plans compiled, at the first run."""

    def __init__(self, stage: Bm1684Stage, chip: _SharedChip, fast: bool) -> None:
        self.inputs = tuple(tensor_info(tensor, stage) for tensor in stage.inputs)
        self.outputs = tuple(tensor_info(tensor, stage) for tensor in stage.outputs)
        self._stage, self._chip, self._fast = stage, chip, fast
        self._ready: tuple[list[Callable[[], None]], Bytes] | None = None

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        with self._chip.lock:
            self._ready = self._ready or self._prepare()
            steps, neuron = self._ready
            for tensor, value in zip(self._stage.inputs, inputs):
                data = _packed(tensor, value)
                start = tensor.address - self._stage.ctx_address
                neuron[start : start + data.size] = data
            for step in steps:
                step()
            return [self._read(tensor, neuron) for tensor in self._stage.outputs]

    def _read(self, tensor: Bm1684Tensor, neuron: Bytes) -> Array:
        start = tensor.address - self._stage.ctx_address
        return _unpacked(tensor, neuron[start : start + tensor.size])

    def _prepare(self) -> tuple[list[Callable[[], None]], Bytes]:
        stage = self._stage
        try:
            neuron = np.zeros(stage.ctx_size, np.uint8)
        except MemoryError as error:
            reason = f"the program needs {stage.ctx_size} bytes of activation memory, more than this host has"
            raise RuntimeUseError(reason) from error
        coefficients = np.frombuffer(stage.coefficients, np.uint8)
        base = FIRST_ADDRESS + align_up(coefficients.size, PAGE)
        memory = GlobalMemory()
        memory.map(FIRST_ADDRESS, coefficients)
        memory.map(base, neuron)
        machine = Machine(memory, local=self._chip.local)
        relocation = Relocation(stage.ctx_address, FIRST_ADDRESS - stage.coeff_address, base - stage.ctx_address)
        steps: list[Callable[[], None]] = []
        for subnet in stage.subnets:
            if isinstance(subnet, CpuSubnet) and not subnet.custom:
                raise UnsupportedError(
                    f"subnet {subnet.id} is layer {subnet.op_type} of the vendor's host library, which is missing",
                    remedy="compile the network with bmnet-compile",
                )
            if not isinstance(subnet, TpuSubnet):
                steps.append(bind_segment(bytes(subnet.parameters), neuron, coefficients))
            elif subnet.dynamic:
                raise SimulatorError(
                    "a subnet is dynamic: its commands are made by the firmware, which is not simulated",
                    remedy="compile the network without dynamic subnets",
                )
            else:
                steps.append(compile_plan(subnet.groups, machine, relocation, fast=self._fast).run)
        return steps, neuron


def _packed(tensor: Bm1684Tensor, value: Array) -> Bytes:
    """Bytes of a tensor in device memory: images side by side in words when its store mode says so."""
    images = IMAGES_PER_WORD[tensor.store_mode]
    if images == 1:
        return np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    count, size = value.shape[0], int(np.prod(value.shape[1:]))
    words = np.zeros((-(-count // images), size, images), value.dtype)
    for k in range(min(images, count)):
        words[: -(-(count - k) // images), :, k] = value[k::images].reshape(-1, size)
    return words.reshape(-1).view(np.uint8)


def _unpacked(tensor: Bm1684Tensor, data: Bytes) -> Array:
    """The way back of `_packed`, as a new array."""
    images = IMAGES_PER_WORD[tensor.store_mode]
    values = data.view(tensor.dtype)
    if images == 1:
        return values.copy().reshape(tensor.shape)
    words = values.reshape(-1, int(np.prod(tensor.shape[1:])), images)
    return words.swapaxes(1, 2).reshape(-1, words.shape[1])[: tensor.shape[0]].reshape(tensor.shape)
