"""Caffe frontend: prototxt and caffemodel to TensorOp IR.

`import_caffe` reads a net, `caffe_layer` registers a converter for a layer type, `CustomizedCaffeLayer` is the vendor's
class form of the same. Plugins announce theirs through the entry point group `bmcompiler.caffe_layers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bmcompiler.frontend import Frontend, Shapes, StrPath

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from bmcompiler.frontends.caffe.custom import CustomizedCaffeLayer
    from bmcompiler.frontends.caffe.importer import import_caffe
    from bmcompiler.frontends.caffe.layer import Layer, caffe_layer
    from bmcompiler.ir import Module

__all__ = ["FRONTEND", "CaffeFrontend", "CustomizedCaffeLayer", "Layer", "caffe_layer", "import_caffe"]

# protobuf and numpy are loaded on first use: listing frontends must stay cheap
_LAZY = {
    "import_caffe": "importer",
    "caffe_layer": "layer",
    "Layer": "layer",
    "CustomizedCaffeLayer": "custom",
}


class CaffeFrontend(Frontend):
    """Entry point object of the group `bmcompiler.frontends`."""

    name = "caffe"
    suffixes = (".prototxt", ".caffemodel")

    def load(
        self,
        model_path: StrPath,
        weights_path: StrPath | None = None,
        *,
        shapes: Shapes = None,
        outputs: Sequence[str] | None = None,
        name: str | None = None,
    ) -> Module:
        from bmcompiler.frontends.caffe.importer import import_caffe

        return import_caffe(model_path, weights_path, shapes=shapes, outputs=outputs, name=name)

    def load_plugins(self) -> None:
        from bmcompiler.frontends.caffe.layer import load_converters

        load_converters()

    def custom_layers(
        self, layers: Iterable[CustomizedCaffeLayer | type[CustomizedCaffeLayer]]
    ) -> AbstractContextManager[None]:
        from bmcompiler.frontends.caffe.custom import custom_layers

        return custom_layers(layers)

    def layer_schema(self) -> Descriptor:
        """The message that layers are given in (`CaffeLayer.layer_`)."""
        from bmcompiler.frontends.caffe.caffe_pb2 import LayerParameter

        return LayerParameter.DESCRIPTOR  # type: ignore[return-value]  # one of two classes alike


FRONTEND = CaffeFrontend()


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
