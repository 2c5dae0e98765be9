"""What the kernels of the BM1684X are constructed with: its facts, cycles and arithmetic."""

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.float_arithmetic import Bm1684xArithmetic
from bmcompiler.backends.bm1684x.half_arithmetic import HALVES
from bmcompiler.backends.bm1684x.tile_cycles import CYCLES
from bmcompiler.backends.lanes.machine import LaneMachine

MACHINE = LaneMachine(CHIP, CYCLES, Bm1684xArithmetic(), HALVES)
