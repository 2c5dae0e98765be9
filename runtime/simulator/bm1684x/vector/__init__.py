"""TIU commands on vectors: arithmetic, special functions, comparisons, moves (bm1684x-vector.md)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Task
from bmcompiler.runtime.simulator.bm1684x.operands import StepMaker
from bmcompiler.runtime.simulator.bm1684x.vector.arithmetic import arithmetic_step
from bmcompiler.runtime.simulator.bm1684x.vector.compare import compare_step, linear_step
from bmcompiler.runtime.simulator.bm1684x.vector.gather import gather_step
from bmcompiler.runtime.simulator.bm1684x.vector.moves import move_step
from bmcompiler.runtime.simulator.bm1684x.vector.outer import vector_step
from bmcompiler.runtime.simulator.bm1684x.vector.special import special_step

STEPS: dict[int, StepMaker] = {
    Task.ARITHMETIC: arithmetic_step,
    Task.TRANSPOSE: move_step,
    Task.GATHER: gather_step,
    Task.SFU: special_step,
    Task.LINEAR: linear_step,
    Task.COMPARE: compare_step,
    Task.VECTOR: vector_step,
}
"""Makers of the steps, by task."""
