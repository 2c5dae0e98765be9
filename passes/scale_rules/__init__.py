"""How each float op becomes integers with real scales; importing the package fills `base.SCALE_RULES`."""

from __future__ import annotations

from bmcompiler.passes.scale_rules import activation, elementwise, linear, pooling, shape
from bmcompiler.passes.scale_rules.base import SCALE_RULES

__all__ = ["SCALE_RULES", "activation", "elementwise", "linear", "pooling", "shape"]
