"""How each float op becomes int8 with power-of-two shifts; importing the package fills `base.RULES`."""

from __future__ import annotations

from bmcompiler.passes.quantize_rules import activation, custom, elementwise, linear, pooling, shape
from bmcompiler.passes.quantize_rules.base import RULES

__all__ = ["RULES", "activation", "custom", "elementwise", "linear", "pooling", "shape"]
