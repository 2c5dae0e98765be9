"""The activation that an op carries: one or two instructions on its float result, in place."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.lanes.arithmetic import Arithmetic
from bmcompiler.backends.lanes.build import LaneCommands
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.numeric.arrays import Floats

_SIX = np.float32(6)


def emit_activation(build: LaneCommands, name: str, result: Words) -> None:
    """Emit max(x, 0), and min(x, 6) for relu6; nothing for ""."""
    if name:
        build.limit(Unit.MAX, result, 0)
    if name == "relu6":
        build.limit(Unit.MIN, result, int(_SIX.view(np.uint32)))


def activation_cycles(timing: LaneCycles, name: str, shape: Shape, item: int = 4) -> int:
    """Cycles of the instructions of `emit_activation`."""
    return (bool(name) + (name == "relu6")) * timing.pass_cycles(shape, item, in_place=True)


def activate(arithmetic: Arithmetic, name: str, x: Floats) -> Floats:
    """What `emit_activation` computes."""
    if name:
        x = arithmetic.maximum(x, x.dtype.type(0))
    return arithmetic.minimum(x, x.dtype.type(_SIX)) if name == "relu6" else x
