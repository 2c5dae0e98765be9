"""Networks on text lines, sound and boxes with seeded weights: `python models/sequences.py text_line voice`.

`text_line`: a CRNN; 32 x 160 pixels, four convolutions down to a row of 40 places, two bidirectional LSTMs of 256 units
whose states begin as zeros of a computed shape (as PyTorch exports it), probabilities of 37 characters for each place.
`text_batch`: one bidirectional LSTM and a GRU on 3 lines of 20 places whose lengths are an input.
`denoiser`: 100 frames of 257 bins, three GRUs of 256 units, a mask that the frames are multiplied by.
`voice`: one step of a detector of speech; 512 samples, three convolutions, an LSTM of 128 units whose states go in and
come out, and an If that asks whether the samples are loud.
`spectrogram`: STFT of 8,192 samples, magnitudes, a convolution, means.
`detector`: an image of 64 x 64, boxes and scores of two classes at 256 places, NonMaxSuppression.
`reader`: logits of 40 places of a line, the best character of each (ArgMax), -1 for blanks and repeated ones.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

THIRD_PARTY = Path(__file__).resolve().parent / "third_party"
_GATES = {"LSTM": 4, "GRU": 3}


class Graph:
    """An ONNX graph as it grows: methods add nodes and return the name of a result."""

    def __init__(self, name: str) -> None:
        self.name, self.random = name, np.random.default_rng(zlib.crc32(name.encode()))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, *shape: int, kind: int = TensorProto.FLOAT) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, value: Any, kind: Any = np.float32) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def weight(self, *shape: int, spread: float | None = None) -> str:
        """Normal numbers; without a spread as large as fits what they are multiplied by (all axes but the first)."""
        spread = float(np.prod(shape[1:])) ** -0.5 if spread is None else spread
        return self.constant(self.random.standard_normal(shape) * spread)

    def op(self, kind: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:
        """The name of the result, or a list of names."""
        names = [f"{kind}{len(self.nodes)}_{i}" for i in range(results)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, names[0], **attributes))
        return names[0] if results == 1 else names

    def conv(self, x: str, inner: int, outer: int, *window: int, relu: bool = True, **attributes: Any) -> str:
        made = self.op("Conv", x, self.weight(outer, inner, *window), self.weight(outer, spread=0.1), **attributes)
        return str(self.op("Relu", made) if relu else made)

    def dense(self, x: str, inner: int, outer: int) -> str:
        weight = self.weight(inner, outer, spread=inner**-0.5)
        return str(self.op("Add", self.op("MatMul", x, weight), self.weight(outer, spread=0.1)))

    def recurrent(self, kind: str, x: str, sizes: tuple[int, int], *more: str, ways: int = 1, **attributes: Any) -> Any:
        """Sizes: inputs and units. All results of the layer."""
        inner, units = sizes
        rows = _GATES[kind] * units
        weights = self.weight(ways, rows, inner, spread=inner**-0.5), self.weight(ways, rows, units, spread=units**-0.5)
        bias, direction = self.weight(ways, 2 * rows, spread=0.1), ("forward", "bidirectional")[ways - 1]
        results = 3 if kind == "LSTM" else 2
        names = self.op(kind, x, *weights, bias, *more, results=results, hidden_size=units, direction=direction)
        self.nodes[-1].attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        return names

    def beside(self, y: str, *shape: int) -> str:
        """Outputs (steps, ways, lines, units) of a layer as (steps, lines, ways * units)."""
        return str(self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), self.ints(*shape)))

    def model(self, outputs: Sequence[str]) -> onnx.ModelProto:
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, results, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made)


def text_line(g: Graph) -> list[str]:
    x, inner = g.input("x", 1, 1, 32, 160), 1
    for outer, strides in ((32, [2, 2]), (64, [2, 2]), (128, [2, 1]), (128, [4, 1])):
        x, inner = g.conv(x, inner, outer, 3, 3, pads=[1, 1, 1, 1], strides=strides), outer
    x = g.op("Transpose", g.op("Squeeze", x, g.ints(2)), perm=[2, 0, 1])
    for _ in range(2):
        lines = g.op("Unsqueeze", g.op("Gather", g.op("Shape", x), g.constant(1, np.int64)), g.ints(0))
        zeros = g.op("ConstantOfShape", g.op("Concat", g.ints(2), lines, g.ints(256), axis=0))
        x = g.beside(g.recurrent("LSTM", x, (inner, 256), "", zeros, zeros, ways=2)[0], 40, 1, 512)
        inner = 512
    logits = g.dense(x, 512, 37)
    return [g.op("Softmax", logits, axis=2), g.op("ArgMax", logits, axis=2, keepdims=0)]


def text_batch(g: Graph) -> list[str]:
    lengths = g.input("lengths", 3, kind=TensorProto.INT32)
    y, h, c = g.recurrent("LSTM", g.input("x", 20, 3, 24), (24, 48), lengths, ways=2)
    z, last = g.recurrent("GRU", g.beside(y, 20, 3, 96), (96, 32), lengths)
    return [z, h, c, last]


def denoiser(g: Graph) -> list[str]:
    x = frames = g.op("Transpose", g.input("x", 1, 100, 257), perm=[1, 0, 2])
    for layer in range(3):
        x = g.recurrent("GRU", x, (256 if layer else 257, 256), linear_before_reset=layer % 2)[0]
        x = g.op("Squeeze", x, g.ints(1))
    mask = g.op("Sigmoid", g.dense(x, 256, 257))
    return [g.op("Transpose", g.op("Mul", mask, frames), perm=[1, 0, 2])]


def voice(g: Graph) -> list[str]:
    sound = x = g.input("x", 1, 1, 512)
    states, inner = [g.input(name, 1, 1, 128) for name in ("h", "c")], 1
    for outer, stride in ((32, 4), (64, 2), (64, 2)):
        x, inner = g.conv(x, inner, outer, 5, pads=[2, 2], strides=[stride]), outer
    _, h, c = g.recurrent("LSTM", g.op("Transpose", x, perm=[2, 0, 1]), (64, 128), "", *states)
    chance = g.op("Sigmoid", g.dense(g.op("Squeeze", h, g.ints(0)), 128, 1))
    half = g.constant(0.5)
    loud = g.op("Greater", g.op("ReduceMax", sound, keepdims=0), half)
    branches = {
        name: helper.make_graph(
            [helper.make_node(kind, inputs, [name])], name, [], [helper.make_tensor_value_info(name, 1, [1, 1])]
        )
        for name, kind, inputs in (("then_branch", "Identity", [chance]), ("else_branch", "Mul", [chance, half]))
    }
    return [g.op("If", loud, **branches), h, c]


def spectrogram(g: Graph) -> list[str]:
    window = g.constant(np.hanning(256))
    step, size = g.constant(128, np.int64), g.constant(256, np.int64)
    parts = g.op("STFT", g.input("x", 1, 8192, 1), step, window, size, onesided=1)
    power = g.op("ReduceSum", g.op("Mul", parts, parts), g.ints(3), keepdims=0)
    picture = g.op("Unsqueeze", g.op("Sqrt", power), g.ints(1))
    return [g.op("GlobalAveragePool", g.conv(picture, 1, 16, 3, 3, pads=[1, 1, 1, 1]))]


def detector(g: Graph) -> list[str]:
    x = g.conv(g.input("x", 1, 3, 64, 64), 3, 16, 3, 3, pads=[1, 1, 1, 1], strides=[4, 4])
    flat = g.op("Reshape", g.conv(x, 16, 6, 1, 1, relu=False), g.ints(1, 6, -1))
    boxes, scores = g.op("Split", flat, g.ints(4, 2), axis=1, results=2)
    boxes = g.op("Sigmoid", g.op("Transpose", boxes, perm=[0, 2, 1]))
    return [g.op("NonMaxSuppression", boxes, g.op("Sigmoid", scores), g.ints(10), g.constant([0.5]), g.constant([0.5]))]


def reader(g: Graph) -> list[str]:
    chances = g.op("LogSoftmax", g.dense(g.input("x", 1, 40, 64), 64, 37), axis=2)
    best = g.op("ArgMax", chances, axis=2, keepdims=0)
    none, blank, axis = g.constant([[-1]], np.int64), g.constant(0, np.int64), g.ints(1)
    before = g.op("Concat", none, g.op("Slice", best, g.ints(0), g.ints(39), axis), axis=1)
    dropped = g.op("Or", g.op("Equal", best, before), g.op("Equal", best, blank))
    return [g.op("Where", dropped, none, best), g.op("ReduceMax", chances, axes=[2], keepdims=0)]


NETS: dict[str, Callable[[Graph], list[str]]] = {
    made.__name__: made for made in (text_line, text_batch, denoiser, voice, spectrogram, detector, reader)
}


def sequence_net(name: str) -> onnx.ModelProto:
    """The network called so."""
    graph = Graph(name)
    return graph.model(NETS[name](graph))


def sample(name: str, seed: int = 0) -> dict[str, np.ndarray]:
    """One input of each kind, drawn; lengths are whole numbers up to the steps there are."""
    graph, random = Graph(name), np.random.default_rng(seed)
    NETS[name](graph)
    found: dict[str, np.ndarray] = {}
    for info in graph.inputs:
        kind, shape = info.type.tensor_type.elem_type, [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        whole = kind == TensorProto.INT32
        found[info.name] = (
            random.integers(1, 21, shape, np.int32) if whole else random.uniform(-1, 1, shape).astype(np.float32)
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    for name in parser.parse_args().names or NETS:
        path = THIRD_PARTY / f"{name}.onnx"
        onnx.save(sequence_net(name), path)
        print(path)


if __name__ == "__main__":
    main()
