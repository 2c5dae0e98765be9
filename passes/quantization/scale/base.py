"""The table of rules of the scheme "scale"."""

from __future__ import annotations

from bmcompiler.passes.quantization.base import Rules

SCALE_RULES = Rules()
"""Short op name -> rule."""
rule = SCALE_RULES.rule
