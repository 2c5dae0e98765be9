"""How much memory a model needs, as C has it: `mem_info_t`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from bmcompiler.capi.library import CLibrary, Read, Write
from bmcompiler.runtime.bmlib.types import mem_info_t, memory_t

_PARTS = "instruction_mem", "variable_instruction_mem", "neuron_mem", "coeff_mem", "io_mem"


def mem_info_reader(library: Callable[[], CLibrary]) -> Read:
    """Reads the structure at an address; None for NULL."""

    def read(address: int) -> mem_info_t | None:
        if not address:
            return None
        raw = library().layout("mem_info_t").from_address(address)
        memories = (memory_t(getattr(raw, one).addr, getattr(raw, one).size) for one in _PARTS)
        instructions, variable, neuron, coefficients, io = memories
        return mem_info_t(instructions, variable, neuron, coefficients, io)

    return read


def mem_info_writer(library: Callable[[], CLibrary]) -> Write:
    """Fills the structure at an address; what is reserved becomes 0."""

    def write(address: int, info: mem_info_t) -> None:
        raw = library().layout("mem_info_t").from_address(address)
        ctypes.memset(address, 0, ctypes.sizeof(raw))
        for name in _PARTS:
            part, memory = getattr(raw, name), getattr(info, name)
            part.addr, part.size, part.number = memory.addr, memory.size, memory.number

    return write
