"""Conflicts between the two engines of the BM1684: bytes within a lane, or addresses from `CHIP.l2_window` for L2."""

from bmcompiler.codegen.hazards import Hazards, Range

__all__ = ["Hazards", "Range"]
