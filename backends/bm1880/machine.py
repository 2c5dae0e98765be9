"""What the kernels of the BM1880 are constructed with: it has no float arithmetic."""

from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.cycles import CYCLES
from bmcompiler.backends.lanes.machine import LaneMachine

MACHINE = LaneMachine(CHIP, CYCLES)
