"""Command-level simulator of the BM1684 (bm1684.md)."""

from bmcompiler.runtime.simulator.bm1684.gdma import Relocation
from bmcompiler.runtime.simulator.bm1684.memory import Memories
from bmcompiler.runtime.simulator.bm1684.plan import compile_plan
from bmcompiler.runtime.simulator.plan import Plan

__all__ = ["Memories", "Plan", "Relocation", "compile_plan"]
