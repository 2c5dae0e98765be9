"""SqueezeNet as an int8 TensorFlow Lite file, which Vela compiles: the same weights and shapes, scales by magnitude.

    VELA/bin/python benchmarks/squeezenet_tflite.py models/third_party/light_squeezenet.onnx squeezenet.tflite

VELA is an environment with `pip install ethos-u-vela onnx`; the schema of the format is Vela's. Activations share one
scale: good enough to be compiled and timed, not to be run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import onnx
from onnx import numpy_helper

CONV, MAX_POOL, MEAN_POOL, CONCAT, SOFTMAX = 3, 17, 1, 2, 25
OPTIONS = {CONV: 1, MAX_POOL: 5, MEAN_POOL: 5, CONCAT: 10, SOFTMAX: 9}
INT8, INT32 = 9, 2
SAME, VALID, RELU = 0, 1, 1
SCALE = 0.05


class Writer:
    """Tensors, buffers and operators of one graph."""

    def __init__(self) -> None:
        self.b = flatbuffers.Builder(1 << 20)
        self.tensors: list[int] = []
        self.buffers = [self.table("Buffer")]
        self.operators: list[int] = []
        self.codes: list[int] = []

    def table(self, name: str, **fields: int | float) -> int:
        """A table of the schema; fields that are tables or vectors are given as offsets."""
        schema = import_module(f"ethosu.vela.tflite.{name}")
        getattr(schema, f"{name}Start")(self.b)
        for field, value in fields.items():
            getattr(schema, f"{name}Add{field}")(self.b, value)
        return int(getattr(schema, f"{name}End")(self.b))

    def vector(self, values: Sequence[int]) -> int:
        return int(self.b.CreateNumpyVector(np.array(values, np.int32)))

    def offsets(self, values: Sequence[int]) -> int:
        self.b.StartVector(4, len(values), 4)
        for value in reversed(values):
            self.b.PrependUOffsetTRelative(value)
        return int(self.b.EndVector())

    def tensor(self, name: str, shape: Sequence[int], scale: float, data: np.ndarray | None = None) -> int:
        """The number of a new tensor; int32 where its data are, else int8."""
        buffer = 0
        if data is not None:
            buffer = len(self.buffers)
            self.buffers.append(self.table("Buffer", Data=self.b.CreateNumpyVector(data.reshape(-1).view(np.uint8))))
        scales = self.b.CreateNumpyVector(np.array([scale], np.float32))
        zeros = self.b.CreateNumpyVector(np.array([0], np.int64))
        quantization = self.table("QuantizationParameters", Scale=scales, ZeroPoint=zeros)
        kind = INT32 if data is not None and data.dtype == np.int32 else INT8
        label, sizes = self.b.CreateString(name), self.vector(shape)
        fields = {"Shape": sizes, "Type": kind, "Buffer": buffer, "Name": label, "Quantization": quantization}
        self.tensors.append(self.table("Tensor", **fields))
        return len(self.tensors) - 1

    def operator(self, code: int, options: int, inputs: Sequence[int], output: int) -> None:
        if code not in self.codes:
            self.codes.append(code)
        taken, made = self.vector(inputs), self.vector([output])
        fields = {"OpcodeIndex": self.codes.index(code), "Inputs": taken, "Outputs": made}
        fields |= {"BuiltinOptionsType": OPTIONS[code], "BuiltinOptions": options}
        self.operators.append(self.table("Operator", **fields))

    def finish(self, inner: int, outer: int) -> bytes:
        graph = {"Tensors": self.offsets(self.tensors), "Operators": self.offsets(self.operators)}
        graph |= {"Inputs": self.vector([inner]), "Outputs": self.vector([outer])}
        graphs = self.offsets([self.table("SubGraph", **graph)])
        codes = [self.table("OperatorCode", DeprecatedBuiltinCode=c, BuiltinCode=c, Version=1) for c in self.codes]
        model = {"Version": 3, "OperatorCodes": self.offsets(codes), "Subgraphs": graphs}
        self.b.Finish(self.table("Model", **model, Buffers=self.offsets(self.buffers)), b"TFL3")
        return bytes(self.b.Output())


class Net:
    """The nodes of SqueezeNet, one method per kind; `made` has number and NHWC shape of each tensor."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.out = Writer()
        self.weights = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
        self.followed = {each.input[0] for each in model.graph.node if each.op_type == "Relu"}
        self.made: dict[str, tuple[int, tuple[int, ...]]] = {}
        (source,) = (each for each in model.graph.input if each.name not in self.weights)
        self.made[source.name] = self.inner = (self.out.tensor(source.name, (1, 224, 224, 3), SCALE), (1, 224, 224, 3))
        for node in model.graph.node:
            number, shape = self.node(node, {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute})
            self.made.update({name: (number, shape) for name in node.output})
        self.bytes = self.out.finish(self.inner[0], number)

    def node(self, node: onnx.NodeProto, p: dict[str, Any]) -> tuple[int, tuple[int, ...]]:
        inputs = [self.made[name] for name in node.input if name in self.made]
        number, shape = inputs[0]
        if node.op_type in ("Relu", "Dropout"):
            return number, shape
        if node.op_type == "Softmax":
            options = self.out.table("SoftmaxOptions", Beta=1.0)
            return self.operator(SOFTMAX, options, [number], node.output[0], shape)
        if node.op_type == "Concat":
            shape = (*shape[:3], sum(each[1][3] for each in inputs))
            options = self.out.table("ConcatenationOptions", Axis=3)
            return self.operator(CONCAT, options, [each[0] for each in inputs], node.output[0], shape)
        return self.window(node, p, number, shape)

    def window(
        self, node: onnx.NodeProto, p: dict[str, Any], number: int, shape: tuple[int, ...]
    ) -> tuple[int, tuple[int, ...]]:
        """A convolution or a pooling."""
        mean = node.op_type == "GlobalAveragePool"
        kernel, step = (shape[1:3], (1, 1)) if mean else (p["kernel_shape"], p["strides"])
        pad = p.get("pads", [0] * 4)
        sizes = [(shape[1 + i] + pad[i] + pad[i + 2] - kernel[i]) // step[i] + 1 for i in (0, 1)]
        padding = {"Padding": SAME if any(pad) else VALID, "StrideH": step[0], "StrideW": step[1]}
        if node.op_type != "Conv":
            options = self.out.table("Pool2DOptions", **padding, FilterHeight=kernel[0], FilterWidth=kernel[1])
            code = MEAN_POOL if mean else MAX_POOL
            return self.operator(code, options, [number], node.output[0], (1, *sizes, shape[3]))
        weight, bias = (self.weights[name] for name in node.input[1:])
        scale = float(np.abs(weight).max()) / 127
        packed = np.round(weight / scale).astype(np.int8).transpose(0, 2, 3, 1)
        filters = self.out.tensor(node.input[1], packed.shape, scale, np.ascontiguousarray(packed))
        added = np.round(bias / (scale * SCALE)).astype(np.int32)
        biases = self.out.tensor(node.input[2], added.shape, scale * SCALE, added)
        activation = {"FusedActivationFunction": RELU} if node.output[0] in self.followed else {}
        dilation = {"DilationHFactor": 1, "DilationWFactor": 1}
        options = self.out.table("Conv2DOptions", **padding, **dilation, **activation)
        return self.operator(CONV, options, [number, filters, biases], node.output[0], (1, *sizes, len(weight)))

    def operator(
        self, code: int, options: int, inputs: list[int], name: str, shape: tuple[int, ...]
    ) -> tuple[int, tuple[int, ...]]:
        output = self.out.tensor(name, shape, SCALE)
        self.out.operator(code, options, inputs, output)
        return output, shape


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(Net(onnx.load(sys.argv[1])).bytes)
