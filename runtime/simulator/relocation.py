"""How the runtime moves the global addresses of a program; common to chips whose commands hold addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bmcompiler.errors import SimulatorError


@dataclass(frozen=True)
class BaseRelocation:
    """Addresses below `program_base` stay; those below `neuron_start` get `coefficient_shift`, others `neuron_shift`.

    Attributes:
        neuron_start: compiled address of the neuron memory.
        coefficient_shift, neuron_shift: what is added to compiled addresses (bm1684.md 10.5, bm1684x.md 5.4).
        program_base: the first address of programs; a chip's own class says it.
    """

    neuron_start: int
    coefficient_shift: int = 0
    neuron_shift: int = 0
    program_base: ClassVar[int]

    def __call__(self, address: int, written: bool = False) -> int:
        """The real address. Raises SimulatorError when coefficients are `written`."""
        if address < self.program_base:
            return address
        if address >= self.neuron_start:
            return address + self.neuron_shift
        if written:
            raise SimulatorError(f"the command writes to the coefficients at 0x{address:x}")
        return address + self.coefficient_shift
