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
    resample,
    shape,
)

__all__ = [
    "activation",
    "conv",
    "detection",
    "elementwise",
    "norm",
    "pool",
    "recurrent",
    "reduce",
    "refused",
    "resample",
    "shape",
]
