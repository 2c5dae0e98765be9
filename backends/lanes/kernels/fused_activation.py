"""The activation that an op carries: one or two instructions on its fp32 result, in place."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684.build import Build
from bmcompiler.backends.bm1684.fp32 import FloatArray, maximum, minimum
from bmcompiler.backends.bm1684.isa import Eu
from bmcompiler.backends.bm1684.kernels.base import emit_with_constant
from bmcompiler.backends.bm1684.layout import Shape

_SIX = np.float32(6)


def emit_activation(build: Build, name: str, shape: Shape, address: int) -> None:
    """Emit max(x, 0), and min(x, 6) for relu6; nothing for ""."""
    if name:
        emit_with_constant(build, Eu.MAX, shape, address, 0)
    if name == "relu6":
        emit_with_constant(build, Eu.MIN, shape, address, int(_SIX.view(np.uint32)))


def activate(name: str, x: FloatArray) -> FloatArray:
    """What `emit_activation` computes."""
    if name:
        x = maximum(x, np.float32(0))
    return minimum(x, _SIX) if name == "relu6" else x
