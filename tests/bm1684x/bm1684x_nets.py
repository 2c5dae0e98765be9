"""What `lane_nets` checks, on the BM1684X."""

from lane_nets import FULL, LaneChecks, Net

from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.runtime.bm1684x_device import Bm1684xDevice

__all__ = ["BM1684X", "FULL", "Net", "check", "check_op"]

BM1684X = LaneChecks(TARGET, Bm1684xDevice)
check, check_op = BM1684X.check, BM1684X.check_op
