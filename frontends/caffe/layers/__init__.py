"""Converters of the built-in Caffe layer types; importing this package registers them."""

from bmcompiler.frontends.caffe.layers import (
    activation,
    conv,
    detection,
    elementwise,
    norm,
    pool,
    recurrent,
    reduce,
    refused,
    regions,
    resample,
    shape,
)

__all__ = [
    "activation", "conv", "detection", "elementwise", "norm", "pool", "recurrent", "reduce", "refused", "regions",
    "resample", "shape",
]  # fmt: skip
