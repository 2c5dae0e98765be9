"""The bit-accurate BM1684X (bm1684x.md, bm1684x-cube.md, bm1684x-vector.md)."""

from bmcompiler.runtime.simulator.bm1684x.memories import Memories
from bmcompiler.runtime.simulator.bm1684x.plan import compile_plan

__all__ = ["Memories", "compile_plan"]
