"""All conversions that schemes have in common: `COMMON` is full once this module is imported."""

from __future__ import annotations

from bmcompiler.passes.quantization.base import COMMON
from bmcompiler.passes.quantization.conversions import activation, elementwise, linear, pooling, shape

__all__ = ["COMMON", "activation", "elementwise", "linear", "pooling", "shape"]
