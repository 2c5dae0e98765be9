"""How each float op becomes int8 with power-of-two shifts; importing the package fills `base.RULES`."""

from __future__ import annotations

from bmcompiler.passes.quantization.base import RULES
from bmcompiler.passes.quantization.shift import activation, custom, elementwise, linear, pooling, shape

__all__ = ["RULES", "activation", "custom", "elementwise", "linear", "pooling", "shape"]
