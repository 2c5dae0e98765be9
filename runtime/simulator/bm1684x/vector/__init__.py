"""TIU commands on vectors: arithmetic, special functions, comparisons, moves (bm1684x-vector.md)."""

from __future__ import annotations

from bmcompiler.runtime.simulator.bm1684x.operands import StepMaker

STEPS: dict[int, StepMaker] = {}
"""Makers of the steps, by task."""
