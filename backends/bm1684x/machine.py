"""What the kernels of the BM1684X are constructed with: its facts, cycles and arithmetic."""

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.cycles import CycleTable
from bmcompiler.backends.bm1684x.float_arithmetic import Bm1684xArithmetic
from bmcompiler.backends.bm1684x.half_arithmetic import HALVES
from bmcompiler.backends.bm1684x.tile_cycles import TileCycles
from bmcompiler.backends.bm1684x.timing_profile import PROFILE, TimingProfile
from bmcompiler.backends.lanes.machine import LaneMachine


def machine_for(profile: TimingProfile | None = None) -> LaneMachine:
    """A new machine, which plans with a profile of the timing model; None is the chip's own."""
    return LaneMachine(CHIP, TileCycles(CycleTable(profile or PROFILE)), Bm1684xArithmetic(), HALVES)


def cycles_of(machine: LaneMachine) -> TileCycles:
    """The cycles of a machine of this chip, which has forms of commands that others have not."""
    assert isinstance(machine.cycles, TileCycles), "a machine of another chip"
    return machine.cycles
