"""Transformers of shifted windows in sizes nobody thought of, as exporters write them: drawn ONNX models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper


@dataclass(frozen=True)
class Sizes:
    """Of one net.

    Attributes:
        images, height, width, channels: of its input and output, (N, H, W, C). heads: of attention.
        window: pixels of its side. layers: every second one has shifted windows.
        norm_first: before attention, not behind it. masked: pixels of shifted windows see not all others.
    """

    images: int
    height: int
    width: int
    channels: int
    heads: int
    window: int
    layers: int
    norm_first: bool
    masked: bool

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.images, self.height, self.width, self.channels


def drawn(seed: int) -> Sizes:
    rng = np.random.default_rng(seed)
    window, heads = int(rng.choice([2, 3, 4, 5, 7])), int(rng.integers(1, 5))
    height, width = (window * int(rng.integers(1, 5)) for _ in range(2))
    channels = heads * int(rng.choice([8, 16, 20, 32]))
    images, layers = int(rng.choice([1, 1, 2, 3])), int(rng.integers(1, 4))
    return Sizes(images, height, width, channels, heads, window, layers, bool(rng.integers(2)), bool(rng.integers(2)))


def model(seed: int, sizes: Sizes) -> onnx.ModelProto:
    """Its input is x, its output y; the seed draws the weights and where queries are scaled."""
    net = _Graph(np.random.default_rng(seed))
    x = "x"
    for layer in range(sizes.layers):
        shift = sizes.window // 2 if layer % 2 else 0
        x = net.op("Add", x, _attention(net, x, sizes, shift, scaled_first=bool(seed % 2)))
        hidden = net.linear(net.norm(x, sizes.channels), sizes.channels, 2 * sizes.channels)
        hidden = net.op("Mul", hidden, net.op("Sigmoid", hidden))
        x = net.op("Add", x, net.linear(hidden, 2 * sizes.channels, sizes.channels))
    net.nodes.append(helper.make_node("Identity", [x], ["y"]))
    x_info, y_info = (helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes.shape) for name in "xy")
    graph = helper.make_graph(net.nodes, "windows", [x_info], [y_info], net.constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


class _Graph:
    def __init__(self, rng: np.random.Generator) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._rng = rng

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, values: ArrayLike) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weight(self, *shape: int, scale: float) -> str:
        return self.constant((scale * self._rng.standard_normal(shape)).astype(np.float32))

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        product = self.op("MatMul", x, self.weight(inputs, outputs, scale=inputs**-0.5))
        return self.op("Add", product, self.weight(outputs, scale=0.1))

    def norm(self, x: str, channels: int) -> str:
        scale, bias = self.weight(channels, scale=0.3), self.weight(channels, scale=0.1)
        return self.op("LayerNormalization", x, scale, bias, axis=-1)

    def reshape(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.constant(np.array(shape, np.int64)))

    def transpose(self, x: str, *order: int) -> str:
        return self.op("Transpose", x, perm=order)

    def roll(self, x: str, places: int, axis: int, size: int) -> str:
        parts = [self._slice(x, begin, end, axis) for begin, end in ((places, size), (0, places))]
        return self.op("Concat", *parts, axis=axis)

    def mask(self, windows: int, tokens: int) -> str:
        hidden = self._rng.random((1, windows, 1, tokens, tokens)) < 0.3
        hidden[..., np.arange(tokens), np.arange(tokens)] = False
        return self.constant(np.where(hidden, np.float32(-100), np.float32(0)))

    def _slice(self, x: str, begin: int, end: int, axis: int) -> str:
        return self.op("Slice", x, *(self.constant(np.array([each], np.int64)) for each in (begin, end, axis)))


def _attention(net: _Graph, x: str, sizes: Sizes, shift: int, *, scaled_first: bool) -> str:
    images, height, width, channels = sizes.shape
    side, heads, tokens = sizes.window, sizes.heads, sizes.window**2
    rows, columns = height // side, width // side
    y = net.norm(x, channels) if sizes.norm_first else x
    if shift:
        y = net.roll(net.roll(y, shift, 1, height), shift, 2, width)
    y = net.transpose(net.reshape(y, images, rows, side, columns, side, channels), 0, 1, 3, 2, 4, 5)
    y = net.linear(net.reshape(y, images * rows * columns, tokens, channels), channels, 3 * channels)
    parts = net.transpose(net.reshape(y, -1, tokens, 3, heads, channels // heads), 2, 0, 3, 1, 4)
    q, k, v = (net.op("Gather", parts, net.constant(np.int64(at)), axis=0) for at in range(3))
    scale = net.constant(np.float32((channels // heads) ** -0.5))
    q = net.op("Mul", q, scale) if scaled_first else q
    scores = net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2))
    scores = scores if scaled_first else net.op("Mul", scores, scale)
    scores = net.op("Add", scores, net.weight(1, heads, tokens, tokens, scale=0.5))
    if shift and sizes.masked:
        scores = net.reshape(scores, images, rows * columns, heads, tokens, tokens)
        scores = net.reshape(net.op("Add", scores, net.mask(rows * columns, tokens)), -1, heads, tokens, tokens)
    y = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
    y = net.linear(net.reshape(net.transpose(y, 0, 2, 1, 3), -1, tokens, channels), channels, channels)
    y = net.transpose(net.reshape(y, images, rows, columns, side, side, channels), 0, 1, 3, 2, 4, 5)
    y = net.reshape(y, *sizes.shape)
    if shift:
        y = net.roll(net.roll(y, width - shift, 2, width), height - shift, 1, height)
    return y if sizes.norm_first else net.norm(y, channels)
