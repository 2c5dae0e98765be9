"""The Caffe layer: `layer { type: "AbsDiff" bottom: "a" bottom: "b" top: "y" abs_diff_param { gain: 0.5 } }`."""

from __future__ import annotations

from bmcompiler.bmnet import TensorOp
from bmcompiler.errors import FileFormatError
from bmcompiler.frontends.caffe import CustomizedCaffeLayer


class AbsDiffLayer(CustomizedCaffeLayer):
    """Two bottoms of one shape, one top; `gain` is 1 when the prototxt does not say."""

    def layer_name(self) -> str:
        return "AbsDiff"

    def dump(self) -> None:
        print(f"{self.layer_.name}: AbsDiff of {list(self.layer_.bottom)}, gain {self.gain()}")

    def codegen(self, op: TensorOp) -> None:
        if op.input_shape_size() != 2 or op.input_shape(0).dims() != op.input_shape(1).dims():
            raise FileFormatError("needs two bottoms of the same shape")
        op.add_output_shape().CopyFrom(op.input_shape(0))
        self.add_output_offset(0)
        op.mutable_tg_customized_param().add_f32_param(self.gain())

    def gain(self) -> float:
        """From the settings that Caffe's own schema does not know."""
        settings = self.extra.get("abs_diff_param", [{}])[0]
        return float(settings.get("gain", [1.0])[0])
