"""IR to a stage of a BM1684 model."""

from __future__ import annotations

from bmcompiler.backends.bm168x.codegen import Bm168xProgram
from bmcompiler.backends.bm1684.build import Build, place_neurons
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.machine import MACHINE
from bmcompiler.backends.bm1684.packed.int_elementwise import table_of
from bmcompiler.backends.lanes.kernels.local_copies import LaneCopier
from bmcompiler.ops.integer import Lut, LutSoftmax


class Bm1684Program(Bm168xProgram[Build]):
    """Code generation of one function; `stage` is its result."""

    chip = CHIP.name.upper()
    resident_memory = MACHINE.tiler
    copier = LaneCopier(MACHINE)
    place_neurons = staticmethod(place_neurons)

    def new_build(self, serial: bool) -> Build:
        build = Build(self.plan, self.coefficients, serial)
        for segment in self.segments if not serial else ():
            if segment.device:
                build.join_tables(
                    [table_of(op, self.coefficients) for op in segment.ops if isinstance(op, (Lut, LutSoftmax))]
                )
        return build
