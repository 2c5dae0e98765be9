"""How ops that a target refuses become ops that it takes; importing the package fills `base.RULES`."""

from __future__ import annotations

from bmcompiler.passes.support.legalize_rules import (
    activation,
    broadcast,
    convolution,
    elementwise,
    large_reduction,
    layout,
    matrix,
    pooling,
    reduction,
    resample,
)
from bmcompiler.passes.support.legalize_rules.base import RULES, rules_of, rules_of_kind

__all__ = [
    "RULES",
    "activation",
    "broadcast",
    "convolution",
    "elementwise",
    "large_reduction",
    "layout",
    "matrix",
    "pooling",
    "reduction",
    "resample",
    "rules_of",
    "rules_of_kind",
]
