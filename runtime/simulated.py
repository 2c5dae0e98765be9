"""What simulated devices share: programs that have memory of their own and run on one chip in turn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from bmcompiler.bmodel import Buffer, TensorInfo
from bmcompiler.chip import align_up
from bmcompiler.errors import RuntimeUseError
from bmcompiler.numeric.arrays import Array, Bytes
from bmcompiler.runtime.devices import LoadedProgram
from bmcompiler.runtime.simulator.memory import GlobalMemory
from bmcompiler.runtime.simulator.plan import Step

PAGE = 4096
M = TypeVar("M")


class SharedChip(Generic[M]):
    """Local memory that the programs of a model share; only the holder of the lock may run."""

    def __init__(self, local: M) -> None:
        self.local, self.lock = local, Lock()


class Areas(NamedTuple):
    """Memory that tensors of a program lie in: activation (neuron) memory, and io memory, which keeps what it has."""

    neuron: Bytes
    io: Bytes

    def of(self, info: TensorInfo, size: int) -> Bytes:
        """`size` bytes from where a tensor begins."""
        return (self.io if info.kept else self.neuron)[info.offset : info.offset + size]


class SimulatedProgram(LoadedProgram, Generic[M]):
    """A program with memory of its own, which is allocated, and its commands decoded, at the first run.

    Args:
        neuron_size: bytes of activation memory; offsets of `inputs` and `outputs` count from its start.
        coefficients: the weights of the program.
    """

    def __init__(
        self,
        chip: SharedChip[M],
        inputs: Sequence[TensorInfo],
        outputs: Sequence[TensorInfo],
        neuron_size: int,
        coefficients: Buffer,
    ) -> None:
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.chip, self.neuron_size = chip, neuron_size
        self.coefficients: Bytes = np.frombuffer(coefficients, np.uint8)
        self._areas: Areas | None = None
        self._steps: Sequence[Step] | None = None

    # -- what a chip defines -------------------------------------------------------------------------------------------
    @abstractmethod
    def prepare(self, neuron: Bytes) -> Sequence[Step]:
        """What has to be done for a run, decoded once. `neuron` is the activation memory, zero at first.

        CPU subnets are bound with `codegen.cpu_segment.bind_segment`. Raises BMError.
        """

    def allocated(self) -> Areas:
        """Memory for the tensors, asked for once. Raises RuntimeUseError when there is too little."""
        return Areas(zeros(self.neuron_size), zeros(0))

    def packed(self, index: int, value: Array) -> Array:
        """Input number `index` as it lies in device memory, contiguous."""
        return np.ascontiguousarray(value)

    def unpacked(self, index: int, data: Bytes) -> Array:
        """Output number `index` from its bytes in device memory, as a new array."""
        return data.copy().view(self.outputs[index].stored).reshape(self.outputs[index].shape)

    def output_bytes(self, index: int) -> int:
        """Bytes of an output in device memory."""
        return self.outputs[index].size

    # -- what it gets for that -----------------------------------------------------------------------------------------
    @property
    def areas(self) -> Areas:
        """Memory of the tensors, allocated when it is first used."""
        if self._areas is None:
            self._areas = self.allocated()
        return self._areas

    def run(self, inputs: Sequence[Array | None]) -> list[Array]:
        with self.chip.lock:
            areas = self.areas
            if self._steps is None:
                self._steps = self.prepare(areas.neuron)
            for index, (info, value) in enumerate(zip(self.inputs, inputs)):
                if value is not None:
                    data = self.packed(index, value).reshape(-1).view(np.uint8)
                    areas.of(info, data.size)[...] = data
            for step in self._steps:
                step()
            return [
                self.unpacked(index, areas.of(info, self.output_bytes(index)))
                for index, info in enumerate(self.outputs)
            ]

    def memory(self, info: TensorInfo) -> Array:
        with self.chip.lock:
            return self.areas.of(info, info.size).view(info.stored).reshape(info.shape)


def zeros(size: int) -> Bytes:
    """Activation memory. Raises RuntimeUseError when this host has not as much."""
    try:
        return np.zeros(size, np.uint8)
    except MemoryError as error:
        reason = f"the program needs {size} bytes of activation memory, more than this host has"
        raise RuntimeUseError(reason) from error


def mapped(first: int, *arrays: Bytes) -> tuple[GlobalMemory, list[int]]:
    """Global memory with arrays side by side from `first` on, each in pages of its own, and their addresses."""
    memory = GlobalMemory()
    addresses: list[int] = []
    for array in arrays:
        memory.map(first, array)
        addresses.append(first)
        first += align_up(array.size, PAGE)
    return memory, addresses
