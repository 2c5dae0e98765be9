"""Custom layers as the vendor has them, in a net: each becomes a `customized` op.

The class to derive from is the core's, `bmcompiler.bmnet.CustomizedCaffeLayer`; this module registers subclasses, and
runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial

import numpy as np

from bmcompiler.bmnet.layer import CustomizedCaffeLayer
from bmcompiler.bmnet.tensor_op import TensorOp
from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.layer import Layer, Results, caffe_layer, local_converters
from bmcompiler.plugins.registry import plugin_code

_MOST_DIMS = 8  # of a shape in the vendors' runtimes
__all__ = ["CustomizedCaffeLayer", "custom_layers", "register_custom_layer"]


def register_custom_layer(cls: type[CustomizedCaffeLayer]) -> type[CustomizedCaffeLayer]:
    """Make layers of type `cls().layer_name()` go through `cls`. Usable as a decorator. Returns the class."""
    caffe_layer(cls().layer_name())(partial(_convert, cls))
    return cls


@contextmanager
def custom_layers(layers: Iterable[CustomizedCaffeLayer | type[CustomizedCaffeLayer]]) -> Iterator[None]:
    """Inside, these convert layers of their types, before all registered ones; of an object every layer gets a copy."""
    factories = [each if isinstance(each, type) else partial(deepcopy, each) for each in layers]
    with local_converters({make().layer_name(): partial(_convert, make) for make in factories}):
        yield


def _convert(make: Callable[[], CustomizedCaffeLayer], layer: Layer) -> Results:
    custom = make()
    custom.layer_ = caffe_pb2.LayerParameter()
    custom.layer_.CopyFrom(layer.p)
    custom.extra = layer.extra
    custom.blobs = [blob.values.reshape(blob.shape) for blob in layer.blobs or []]
    op = TensorOp([value.shape for value in layer.inputs])
    with plugin_code(f"the plugin for layers of type '{layer.type}'"):
        custom.setup(op)
        custom.codegen(op)
    param = op.tg_customized_param()
    shapes = [op.output_shape(i).dims() for i in range(op.output_shape_size())]
    if len(shapes) != len(layer.p.top):
        raise layer.unsupported(
            f"its plugin gives {len(shapes)} outputs for {len(layer.p.top)} tops", "correct the plugin"
        )
    for index, shape in enumerate(shapes):
        if not 1 <= len(shape) <= _MOST_DIMS or min(shape) < 1:
            raise layer.unsupported(
                f"its plugin gives output {index} the shape {list(shape)}, not 1 to {_MOST_DIMS} sizes from 1 on",
                "correct the plugin",
            )
    weights = [layer.constant(np.asarray(array, np.float32), f"weight{i}") for i, array in enumerate(custom.weights)]
    made = layer.b.create(
        "customized",
        [*layer.inputs, *weights],
        {
            "sub_type": param.sub_type(),
            "output_shapes": shapes,
            "i32_params": param.i32_params(),
            "f32_params": param.f32_params(),
        },
    )
    return made.results
