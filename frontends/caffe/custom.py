"""Custom layers as the seed has them: subclass `CustomizedCaffeLayer`, fill in a `TensorOp`.

    class MyReLU(CustomizedCaffeLayer):
        def layer_name(self):
            return "MyReLU"

        def dump(self):
            print(self.layer_.name)

        def codegen(self, op):
            self.setup(op)
            op.add_output_shape().CopyFrom(op.input_shape(0))
            op.mutable_tg_customized_param().add_f32_param(self.layer_.relu_param.negative_slope)

A package names the class as entry point of `bmcompiler.caffe_layers`; the layer becomes a `customized` op.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np

from bmcompiler.customized import TensorOp
from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.layer import Layer, Results, caffe_layer, local_converters
from bmcompiler.registry import plugin_code


class CustomizedCaffeLayer(ABC):
    """Turns one Caffe layer into a `customized` op. One object is made per layer of the net.

    `layer_` is the LayerParameter; `extra` holds prototxt fields that the schema does not know, as
    {name: [values or trees]}; `blobs` the layer's trained weights as float32 arrays.
    """

    layer_: caffe_pb2.LayerParameter
    extra: dict[str, list[Any]]
    blobs: list[np.ndarray[Any, Any]]

    def __init__(self) -> None:
        self.layer_ = caffe_pb2.LayerParameter()
        self.extra, self.blobs = {}, []
        self.output_offsets: list[int] = []
        self.weights: list[np.ndarray[Any, Any]] = []

    @abstractmethod
    def layer_name(self) -> str:
        """Type of the Caffe layer, as in the prototxt."""

    @abstractmethod
    def dump(self) -> None:
        """Print what is worth knowing about the layer."""

    @abstractmethod
    def codegen(self, op: TensorOp) -> None:
        """Add an output shape per top and fill in the parameters; call `setup` first."""

    def setup(self, op: TensorOp) -> None:
        """Set the sub type. An override calls this first."""
        op.mutable_tg_customized_param().set_sub_type(self.layer_name())

    def add_output_offset(self, offset: int) -> None:
        """Offset of a top in device memory; should be 0 (memory is planned later)."""
        self.output_offsets.append(offset)

    def add_weight(self, array: np.ndarray[Any, Any]) -> None:
        """Pass a constant tensor to the op, as an input after the layer's bottoms."""
        self.weights.append(np.asarray(array, np.float32))


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
    weights = [layer.constant(array, f"weight{i}") for i, array in enumerate(custom.weights)]
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
