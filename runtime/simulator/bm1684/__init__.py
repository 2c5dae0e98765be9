"""Command-level simulator of the BM1684 (bm1684.md)."""

from bmcompiler.runtime.simulator.bm1684.memory import Memories
from bmcompiler.runtime.simulator.bm1684.plan import compile_plan

__all__ = ["Memories", "compile_plan"]
