"""What the kernels of the BM1880 are constructed with: it has no float arithmetic."""

from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.cycles import PROFILE, CycleTable, TileCycles, TimingProfile
from bmcompiler.backends.lanes.machine import LaneMachine


def machine_for(profile: TimingProfile | None = None) -> LaneMachine:
    """A new machine, which plans with a profile of the timing model; None is the chip's own."""
    return LaneMachine(CHIP, TileCycles(CycleTable(profile or PROFILE)))


def cycles_of(machine: LaneMachine) -> TileCycles:
    """The cycles of a machine of this chip, whose commands all are products."""
    assert isinstance(machine.cycles, TileCycles), "a machine of another chip"
    return machine.cycles
