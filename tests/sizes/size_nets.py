"""ONNX networks of open sizes, small enough to compile in a moment."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Build = Callable[["Graph"], str]


class Graph:
    """A graph of two inputs: x (1, n, 8) and mask (1, n), as far as they are used."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(7)

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def const(self, array: object, dtype: type = np.float32) -> str:
        name = f"const{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def linear(self, source: str, inner: int = 8, outer: int = 8) -> str:
        return self.op("MatMul", source, self.const(self.random.standard_normal((inner, outer)) / 3))

    def mask(self, low: float = -10000.0) -> str:
        """1 where it is seen, 0 elsewhere, as what is added to scores (1, 1, n)."""
        wide = self.op("Unsqueeze", "mask", self.const([1], np.int64))
        return self.op("Mul", self.op("Sub", self.const(1.0), wide), self.const(low))

    def attention(self, mask: str | None = None, source: str = "x") -> str:
        key = self.op("Transpose", self.linear(source), perm=[0, 2, 1])
        scores = self.op("MatMul", self.linear(source), key)
        scores = scores if mask is None else self.op("Add", scores, mask)
        return self.op("MatMul", self.op("Softmax", scores, axis=-1), self.linear(source))


def model(build: Build, path: str, batch: int | str = 1) -> str:
    """Write the graph that `build` makes, which returns the output's name."""
    graph = Graph()
    output = build(graph)
    names = {name for node in graph.nodes for name in node.input}
    shapes = {"x": [batch, "n", 8], "mask": [batch, "n"]}
    inputs = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in shapes.items() if k in names]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
    made = helper.make_graph(graph.nodes, "net", inputs, outputs, graph.weights)
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path
