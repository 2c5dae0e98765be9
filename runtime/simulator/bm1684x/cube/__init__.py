"""TIU commands of the matrix unit: convolutions, windows, matrix products, requantization (bm1684x-cube.md)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Task
from bmcompiler.runtime.simulator.bm1684x.cube.conv import conv_step
from bmcompiler.runtime.simulator.bm1684x.cube.matrix import matrix_step
from bmcompiler.runtime.simulator.bm1684x.cube.pool import pool_step
from bmcompiler.runtime.simulator.bm1684x.cube.requant import requant_step
from bmcompiler.runtime.simulator.bm1684x.operands import StepMaker

STEPS: dict[int, StepMaker] = {
    Task.CONV: conv_step,
    Task.POOL_OR_DEPTHWISE: pool_step,
    Task.MATRIX: matrix_step,
    Task.REQUANT: requant_step,
}
"""Makers of the steps, by task."""
