"""The CPU function behind CPU subnets of our own models (`bmcompiler.codegen.cpu_segment`)."""

from __future__ import annotations

from collections.abc import Callable

from bmcompiler.codegen.cpu_segment import bind_segment
from bmcompiler.runtime.cpu_functions import CpuMemory


class _Subnet:
    """Evaluates the subnet described by the parameters on device memory. Raises FileFormatError for malformed ones."""

    def __call__(self, memory: CpuMemory, parameters: bytes) -> None:
        self.prepare(memory, parameters)()

    def prepare(self, memory: CpuMemory, parameters: bytes) -> Callable[[], None]:
        return bind_segment(parameters, memory.neuron, memory.weight)


run = _Subnet()
