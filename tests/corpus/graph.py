"""Builds an ONNX graph node by node and computes it at once, so that weights can be made to fit what reaches them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state

OPSET, IR_VERSION = 17, 8
ORT_ERRORS = (ort_state.Fail, ort_state.InvalidArgument, ort_state.InvalidGraph, ort_state.RuntimeException)
"""What ONNX Runtime raises for a network that is none."""


class Graph:
    """A graph whose tensors are known by name and have values, those of one drawn batch of inputs."""

    def __init__(self, random: np.random.Generator, opset: int = OPSET) -> None:
        self.random, self.opset = random, opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: dict[str, np.ndarray] = {}
        self.outputs: list[str] = []
        self.values: dict[str, np.ndarray] = {}

    def input(self, name: str, value: np.ndarray) -> str:
        """An input, with the values that it is drawn to have."""
        self.inputs[name] = self.values[name] = value
        return name

    def constant(self, value: Any, kind: type | np.dtype = np.float32) -> str:
        """A constant."""
        name = f"c{len(self.constants)}"
        self.constants[name] = self.values[name] = np.asarray(value, kind)
        return name

    def add(self, kind: str, *operands: str, results: int = 1, **attributes: Any) -> Any:
        """A node; gives the name of its result, or a list of names."""
        names = [f"{kind.lower()}{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(results)]
        node = helper.make_node(kind, list(operands), names, name=names[0], **attributes)
        self.nodes.append(node)
        self.values.update(zip(names, self._computed(node)))
        return names[0] if results == 1 else names

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self.values[name].shape

    def _computed(self, node: onnx.NodeProto) -> list[np.ndarray]:
        """What a node gives, computed by ONNX Runtime."""
        used = {name: self.values[name] for name in node.input if name}
        fixed = {name: value for name, value in used.items() if name in self.constants}
        given = {name: value for name, value in used.items() if name not in self.constants}
        graph = helper.make_graph(
            [node],
            "node",
            [value_info(name, value) for name, value in given.items()],
            [helper.make_empty_tensor_value_info(name) for name in node.output],
            [numpy_helper.from_array(value, name) for name, value in fixed.items()],
        )
        return run_onnx(self._model(graph), given)

    def _model(self, graph: onnx.GraphProto) -> onnx.ModelProto:
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR_VERSION)

    def _result(self, name: str) -> onnx.ValueInfoProto:
        """What is said of an output: its shape, unless how many rows it has depends on values."""
        info = value_info(name, self.values[name])
        if any(node.op_type == "NonMaxSuppression" and name in node.output for node in self.nodes):
            info.type.tensor_type.shape.dim[0].dim_param = "count"
        return info

    def model(self) -> onnx.ModelProto:
        """The network, without nodes and constants that no output needs."""
        needed, kept = set(self.outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                kept.append(node)
                needed.update(node.input)
        graph = helper.make_graph(
            kept[::-1],
            "corpus",
            [value_info(name, value) for name, value in self.inputs.items()],
            [self._result(name) for name in self.outputs],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items() if name in needed],
        )
        return self._model(graph)


def run_onnx(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a model in ONNX Runtime, on one thread and as it is written."""
    return _session(model).run(None, inputs)


def valid(model: onnx.ModelProto) -> onnx.ModelProto:
    """The network, which onnx and ONNX Runtime take. Raises what they raise where they do not."""
    onnx.checker.check_model(model, full_check=True)
    _session(model)
    return model


def _session(model: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def value_info(name: str, value: np.ndarray) -> onnx.ValueInfoProto:
    """The name, type and shape of a value."""
    kinds = {
        "float32": TensorProto.FLOAT,
        "int64": TensorProto.INT64,
        "bool": TensorProto.BOOL,
        "int32": TensorProto.INT32,
    }
    return helper.make_tensor_value_info(name, kinds[str(value.dtype)], value.shape)
