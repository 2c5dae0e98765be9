"""TIU commands of the matrix unit: convolutions, windows, matrix products, requantization (bm1684x-cube.md)."""

from __future__ import annotations

from bmcompiler.runtime.simulator.bm1684x.operands import StepMaker

STEPS: dict[int, StepMaker] = {}
"""Makers of the steps, by task."""
