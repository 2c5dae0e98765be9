"""What `lane_nets` checks, on the BM1684."""

from lane_nets import FULL, QUANT, LaneChecks, Net, random_inputs, with_extremes

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.runtime.bm1684_device import Bm1684Device

__all__ = [
    "BM1684",
    "FULL",
    "QUANT",
    "Net",
    "check",
    "check_op",
    "local_memory",
    "on_device",
    "random_inputs",
    "with_extremes",
]

BM1684 = LaneChecks(TARGET, Bm1684Device)
check, check_op, local_memory, on_device = BM1684.check, BM1684.check_op, BM1684.local_memory, BM1684.on_device
