"""IR to a stage of a BM1684X model."""

from __future__ import annotations

from bmcompiler.backends.bm168x.codegen import Bm168xProgram
from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.builder import place_neurons
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.machine import MACHINE
from bmcompiler.backends.lanes.kernels.local_copies import LaneCopier


class Bm1684xProgram(Bm168xProgram[Build]):
    """Code generation of one function; `stage` is its result."""

    chip = CHIP.name.upper()
    resident_memory = MACHINE.tiler
    copier = LaneCopier(MACHINE)
    place_neurons = staticmethod(place_neurons)

    def new_build(self, serial: bool) -> Build:
        return Build(self.plan, self.coefficients, serial)
