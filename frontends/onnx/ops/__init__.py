"""Built-in converters: importing this package registers them all."""

from bmcompiler.frontends.onnx.ops import (
    activations,
    arithmetic,
    convolution,
    deformable,
    indexing,
    layout,
    matrix,
    normalization,
    packed_weights,
    pooling,
    quantization,
    recurrent,
    reductions,
    resampling,
    rows,
    selection,
    signal,
    transformer,
)

__all__ = [
    "activations", "arithmetic", "convolution", "deformable", "indexing", "layout", "matrix", "normalization",
    "packed_weights", "pooling", "quantization", "recurrent", "reductions", "resampling", "rows", "selection", "signal",
    "transformer",
]  # fmt: skip
