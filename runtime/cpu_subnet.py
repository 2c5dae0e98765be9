"""The CPU function behind CPU subnets of our own models (`bmcompiler.codegen.cpu_segment`)."""

from __future__ import annotations

from bmcompiler.codegen.cpu_segment import run_segment
from bmcompiler.runtime.cpu_functions import CpuMemory


def run(memory: CpuMemory, parameters: bytes) -> None:
    """Evaluate the subnet described by `parameters` on device memory. Raises FileFormatError for malformed ones."""
    run_segment(parameters, memory.neuron, memory.weight)
