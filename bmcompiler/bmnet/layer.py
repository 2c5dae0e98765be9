"""From a source layer to an op (as in the vendor's BMNet library): Layer, CaffeLayer, CustomizedCaffeLayer.

    class MyReLU(CustomizedCaffeLayer):
        def layer_name(self):
            return "MyReLU"

        def dump(self):
            print(self.layer_.name)

        def codegen(self, op):
            op.add_output_shape().CopyFrom(op.input_shape(0))
            op.mutable_tg_customized_param().add_f32_param(self.layer_.relu_param.negative_slope)

A package names the class as entry point of `bmcompiler.caffe_layers`; the layer becomes a `customized` op.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from bmcompiler.bmnet.prototypes import BMNET
from bmcompiler.bmnet.tensor_op import TensorOp
from bmcompiler.capi.kinds import object_or_class

if TYPE_CHECKING:
    import numpy as np


class Layer(ABC):
    """Turns one layer of a source net into an op. One object is made per layer of the net."""

    def __init__(self) -> None:
        self.output_offsets: list[int] = []

    @abstractmethod
    def layer_name(self) -> str:
        """Type of the source layer, as its file has it."""

    @abstractmethod
    def dump(self) -> None:
        """Print what is worth knowing about the layer."""

    @abstractmethod
    def codegen(self, op: TensorOp) -> None:
        """Add an output shape per top and fill in the parameters."""

    def setup(self, op: TensorOp) -> None:  # noqa: B027 - not every layer has something to set up
        """Called before `codegen`; here it does nothing."""

    @BMNET.checked
    def add_output_offset(self, offset: int) -> None:
        """Offset of a top in device memory; should be 0 (memory is planned later)."""
        self.output_offsets.append(offset)


BMNET.add(object_or_class("layer_t", Layer))


class CaffeLayer(Layer):
    """A layer of a Caffe net.

    `layer_` is the LayerParameter (None until the layer is read); `extra` holds prototxt fields that the schema does
    not know, as {name: [values or trees]}; `blobs` the layer's trained weights as float32 arrays.
    """

    layer_: Any

    def __init__(self) -> None:
        super().__init__()
        self.layer_ = None
        self.extra: dict[str, list[Any]] = {}
        self.blobs: list[np.ndarray[Any, Any]] = []

    def extra_param(self, message: str, field: str, default: Any) -> Any:
        """First value of a field of a message that the schema does not know, `default` where it is not given."""
        tree = self.extra.get(message, [{}])[0]
        return tree.get(field, [default])[0] if isinstance(tree, dict) else default


class CustomizedCaffeLayer(CaffeLayer):
    """A Caffe layer that becomes a `customized` op; subclasses define layer_name, dump and codegen."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: list[np.ndarray[Any, Any]] = []

    def setup(self, op: TensorOp) -> None:
        """Set the sub type. An override calls this first."""
        op.mutable_tg_customized_param().set_sub_type(self.layer_name())

    def add_weight(self, array: np.ndarray[Any, Any]) -> None:
        """Pass a constant tensor to the op in float32, as an input after the layer's bottoms."""
        self.weights.append(array)
