"""How each float op becomes integers with real scales (bm1684.md 7.2); importing it fills `base.SCALE_RULES`."""

from __future__ import annotations

from bmcompiler.passes.quantization.scale import activation, elementwise, linear, pooling, shape
from bmcompiler.passes.quantization.scale.base import SCALE_RULES

__all__ = ["SCALE_RULES", "activation", "elementwise", "linear", "pooling", "shape"]
