"""Command-level simulator of the BM1880: executes command buffers byte for byte as the chip does (bm1880.md 3-8)."""

from bmcompiler.runtime.simulator.bm1880.memory import GlobalMemory, LocalMemory, Memories
from bmcompiler.runtime.simulator.bm1880.plan import compile_plan

__all__ = ["GlobalMemory", "LocalMemory", "Memories", "compile_plan"]
