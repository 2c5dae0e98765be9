"""Built-in converters: importing this package registers them all."""

from bmcompiler.frontends.onnx.ops import (
    activations,
    arithmetic,
    composites,
    convolution,
    indexing,
    layout,
    matrix,
    normalization,
    pooling,
    reductions,
    resampling,
    selection,
)

__all__ = [
    "activations",
    "arithmetic",
    "composites",
    "convolution",
    "indexing",
    "layout",
    "matrix",
    "normalization",
    "pooling",
    "reductions",
    "resampling",
    "selection",
]
