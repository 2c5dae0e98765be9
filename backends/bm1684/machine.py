"""What the kernels of the BM1684 are constructed with."""

from bmcompiler.backends.bm1684.arithmetic import Bm1684Arithmetic
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.cycles import CYCLES
from bmcompiler.backends.lanes.machine import LaneMachine

MACHINE = LaneMachine(CHIP, CYCLES, Bm1684Arithmetic())
