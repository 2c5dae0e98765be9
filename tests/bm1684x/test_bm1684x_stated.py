"""Models that are quantized already give ONNX Runtime's integers on the BM1684X, but for the chip's rounding.

Factors have 31 bits and round once, halves to even, where ONNX Runtime multiplies in float32 first: layers differ by at
most one step, and rarely. Sums of two tensors and borders round halves up and away from zero instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.runtime.session import Session
from bmcompiler.target import find_target

KINDS = {"i8": (TensorProto.INT8, np.int8), "u8": (TensorProto.UINT8, np.uint8)}


class Quantized:
    """A graph whose activations are quantized and dequantized behind every layer, weights by channel."""

    def __init__(self, kind: str) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.rng, self.kind = np.random.default_rng(5), kind

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def pair(self, x: str, scale: float, zero: int) -> str:
        """Quantized with a zero point and dequantized; also the integers' name is known: the node before."""
        parameters = self.constant(np.float32(scale)), self.constant(KINDS[self.kind][1](zero))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *parameters), *parameters)

    def weights(self, *shape: int, scale: float) -> tuple[str, str]:
        """Weights and bias: (real weight, real bias) for an input of a scale."""
        integers = self.rng.integers(-127, 128, shape).astype(np.int8)
        scales = (self.rng.uniform(0.2, 1.0, shape[0]) / (40 * np.sqrt(np.prod(shape[1:])))).astype(np.float32)
        zeros = np.zeros(shape[0], np.int8)
        real = self.node("DequantizeLinear", *map(self.constant, (integers, scales, zeros)), axis=0)
        bias = self.rng.integers(-3000, 3000, shape[0]).astype(np.int32)
        unit = (np.float32(scale) * scales).astype(np.float32)
        return real, self.node("DequantizeLinear", self.constant(bias), self.constant(unit), axis=0)

    def save(self, path: Path, shape: tuple[int, ...], output: str) -> Path:
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
        made = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "net", given, made, self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
        return path


def layers(q: Quantized, zero: int, lowest: int) -> tuple[str, float]:
    """Convolutions, strided and depthwise, with relu: the output and its scale."""
    x = q.pair("x", 0.02, zero)
    w, b = q.weights(8, 3, 3, 3, scale=0.02)
    y = q.pair(q.node("Relu", q.node("Conv", x, w, b, pads=[1, 1, 1, 1])), 0.012, lowest)
    w, b = q.weights(8, 1, 3, 3, scale=0.012)
    y = q.pair(q.node("Conv", y, w, b, group=8, strides=[2, 2], pads=[1, 1, 1, 1]), 0.01, zero)
    w, b = q.weights(16, 8, 1, 1, scale=0.01)
    return q.pair(q.node("Conv", y, w, b), 0.009, zero), 0.009


def residual(q: Quantized, zero: int, lowest: int) -> tuple[str, float]:
    """A sum of two branches with zero points of their own, an average, an inner product."""
    x = q.pair("x", 0.02, zero)
    w, b = q.weights(8, 3, 3, 3, scale=0.02)
    one = q.pair(q.node("Conv", x, w, b, pads=[1, 1, 1, 1]), 0.012, zero)
    w, b = q.weights(8, 3, 1, 1, scale=0.02)
    other = q.pair(q.node("Conv", x, w, b), 0.011, zero + 3)
    y = q.pair(q.node("Relu", q.node("Add", one, other)), 0.015, lowest)
    y = q.pair(q.node("GlobalAveragePool", q.node("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])), 0.006, lowest)
    w, b = q.weights(10, 8, scale=0.006)
    return q.pair(q.node("Gemm", q.node("Flatten", y), w, b, transB=1), 0.005, zero), 0.005


def integer_ops(q: Quantized, zero: int, lowest: int) -> tuple[str, float]:
    """The same kind of layers as ops on integers."""
    kind = KINDS[q.kind][1]

    def parameters(scale: float, point: int) -> tuple[str, str]:
        return q.constant(np.float32(scale)), q.constant(kind(point))

    first, second, third = parameters(0.02, zero), parameters(0.012, zero), parameters(0.02, lowest)
    integers = q.rng.integers(-127, 128, (6, 3, 3, 3)).astype(np.int8)
    scales = q.rng.uniform(0.001, 0.004, 6).astype(np.float32)
    weight = q.constant(integers), q.constant(scales), q.constant(np.zeros(6, np.int8))
    bias = q.constant(q.rng.integers(-3000, 3000, 6).astype(np.int32))
    y = q.node("QLinearConv", q.node("QuantizeLinear", "x", *first), *first, *weight, *second, bias)
    right = q.rng.integers(-127, 128, (10, 7)).astype(np.int8)
    matrix = q.constant(right), q.constant(np.float32(0.002)), q.constant(np.int8(0))
    y = q.node("QLinearMatMul", y, *second, *matrix, *third)
    return q.node("DequantizeLinear", y, *third), 0.02


@pytest.mark.parametrize(("kind", "zero", "lowest"), [("u8", 120, 0), ("i8", 0, -128), ("i8", -11, -128)])
@pytest.mark.parametrize(("net", "often"), [(layers, 0.002), (integer_ops, 0.002), (residual, 0.05)])
def test_integers_of_onnx_runtime(tmp_path: Path, net: Any, often: float, kind: str, zero: int, lowest: int) -> None:
    """`often`: part of the results that may be one step off: hardly any, more behind sums that round halves up."""
    q, shape = Quantized(kind), (1, 3, 10, 12)
    output, step = net(q, zero, lowest)
    path = q.save(tmp_path / "net.onnx", shape, output)
    quiet = onnxruntime.SessionOptions()
    quiet.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    if net is not integer_ops or kind == "u8":  # sums of its products saturate on processors without VNNI
        quiet.add_session_config_entry("session.x64quantprecision", "1")
    reference = onnxruntime.InferenceSession(str(path), quiet, providers=["CPUExecutionProvider"])
    result = bmcompiler.compile(path, target="bm1684x", quantize="int8")
    integers = {op.short_name: op.operands[0].dtype for op in result.module.main.ops if op.short_name == "conv"}
    assert integers == {"conv": kind} and not any(row.where == "cpu" for row in result.rows)
    assert {op.attributes["mode"] for op in result.module.main.ops if op.short_name in ("conv", "matmul")} == {
        "channel"
    }
    session, apart = Session(result.model), []
    for seed in range(2):
        x = np.random.default_rng(seed).uniform(-1.5, 1.5, shape).astype(np.float32)
        x = ((np.rint(x / 0.02) + 0.25) * 0.02).astype(
            np.float32
        )  # away from halves, which the border rounds otherwise
        (want,), (got,) = reference.run(None, {"x": x}), session.run({"x": x}).values()
        evaluated = run_module(result.module, {"x": x}, target=find_target("bm1684x"))
        np.testing.assert_array_equal(got.reshape(-1), np.concatenate([v.reshape(-1) for v in evaluated.values()]))
        apart.append(np.rint((got.reshape(want.shape) - want) / step).reshape(-1))
    steps = np.concatenate(apart)
    assert np.abs(steps).max() <= 1 and (steps != 0).mean() <= often, (np.abs(steps).max(), (steps != 0).mean())
    assert len(np.unique(want)) > 5
