"""What simulated devices share: programs that have memory of their own and run on one chip in turn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from bmcompiler.bmodel import Buffer, TensorInfo
from bmcompiler.chip import align_up
from bmcompiler.errors import RuntimeUseError
from bmcompiler.runtime.devices import Array, LoadedProgram
from bmcompiler.runtime.simulator.memory import GlobalMemory

Bytes = NDArray[np.uint8]
Step = Callable[[], None]
PAGE = 4096
M = TypeVar("M")


class SharedChip(Generic[M]):
    """Local memory that the programs of a model share; only the holder of the lock may run."""

    def __init__(self, local: M) -> None:
        self.local, self.lock = local, Lock()


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
        self._ready: tuple[Sequence[Step], Bytes] | None = None

    # -- what a chip defines -------------------------------------------------------------------------------------------
    @abstractmethod
    def prepare(self, neuron: Bytes) -> Sequence[Step]:
        """What has to be done for a run, decoded once. `neuron` is the activation memory, zero at first.

        CPU subnets are bound with `codegen.cpu_segment.bind_segment`. Raises BMError.
        """

    def packed(self, index: int, value: Array) -> Array:
        """Input number `index` as it lies in device memory, contiguous."""
        return np.ascontiguousarray(value)

    def unpacked(self, index: int, data: Bytes) -> Array:
        """Output number `index` from its bytes in device memory, as a new array."""
        return data.copy().view(self.outputs[index].dtype).reshape(self.outputs[index].shape)

    def output_bytes(self, index: int) -> int:
        """Bytes of an output in device memory."""
        return self.outputs[index].size

    # -- what it gets for that -----------------------------------------------------------------------------------------
    def run(self, inputs: Sequence[Array]) -> list[Array]:
        with self.chip.lock:
            if self._ready is None:
                neuron = self._allocated()
                self._ready = self.prepare(neuron), neuron
            steps, neuron = self._ready
            for index, (info, value) in enumerate(zip(self.inputs, inputs)):
                data = self.packed(index, value).reshape(-1).view(np.uint8)
                neuron[info.offset : info.offset + data.size] = data
            for step in steps:
                step()
            return [
                self.unpacked(index, neuron[info.offset : info.offset + self.output_bytes(index)])
                for index, info in enumerate(self.outputs)
            ]

    def _allocated(self) -> Bytes:
        try:
            return np.zeros(self.neuron_size, np.uint8)
        except MemoryError as error:
            reason = f"the program needs {self.neuron_size} bytes of activation memory, more than this host has"
            raise RuntimeUseError(reason) from error

    def mapped(self, neuron: Bytes, first: int = PAGE) -> tuple[GlobalMemory, int, int]:
        """(global memory, address of the coefficients, address of `neuron`), side by side from `first` on."""
        memory = GlobalMemory()
        base = first + align_up(self.coefficients.size, PAGE)
        memory.map(first, self.coefficients)
        memory.map(base, neuron)
        return memory, first, base
