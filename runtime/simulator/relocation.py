"""How the runtime moves the global addresses of a program; common to chips whose commands hold addresses."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from bmcompiler.errors import SimulatorError


class MovedArea(NamedTuple):
    """Compiled addresses from `start` up to the next area: `shift` is added to them; `constant` ones are not written.

    The areas of a program are coefficients, io and neuron memory (bm1684.md 10.5, bm1684x.md 5.4, bm1684x-llm.md 4).
    """

    start: int
    shift: int = 0
    constant: bool = False


class Relocation:
    """Areas in any order; of two with the same start the later one counts. Addresses below all areas stay."""

    def __init__(self, *areas: MovedArea) -> None:
        self._areas = sorted(areas, key=lambda area: area.start)
        self._starts = [area.start for area in self._areas]

    def __call__(self, address: int, written: bool = False) -> int:
        """The real address. Raises SimulatorError when a constant is `written`."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return address
        if written and self._areas[at].constant:
            raise SimulatorError(f"the command writes to the coefficients at 0x{address:x}")
        return address + self._areas[at].shift
