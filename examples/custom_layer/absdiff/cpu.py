"""What the layer computes in real numbers."""

from __future__ import annotations

import numpy as np

from bmcompiler.custom_layers import register_cpu_function


def abs_diff(inputs: list[np.ndarray], i32_params: tuple[int, ...], f32_params: tuple[float, ...]) -> np.ndarray:
    """gain * |a - b|, the gain being the only float parameter."""
    a, b = inputs
    return np.float32(f32_params[0]) * np.abs(a - b)


def register() -> None:
    """Called by bmcompiler when a net has a custom layer."""
    register_cpu_function("AbsDiff", abs_diff)
