"""Small networks made to trip the proof that padding changes nothing: what it lets through is right, on every chip."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from size_nets import Graph, model

import bmcompiler
from bmcompiler.errors import RuntimeUseError
from bmcompiler.runtime import Session

onnxruntime = pytest.importorskip("onnxruntime")
CHANNELS = 8
MANY = 1 << 30


def ints(g: Graph, *numbers: int) -> str:
    return g.const(list(numbers), np.int64)


def turned(g: Graph) -> str:
    """Positions as the last axis, as convolutions and pools have them."""
    return g.op("Transpose", "x", perm=[0, 2, 1])


def weights(g: Graph, *shape: int) -> str:
    return g.const(g.random.standard_normal(shape) / 3)


def length(g: Graph) -> str:
    """The number of positions, an integer without axes."""
    return g.op("Gather", g.op("Shape", "x"), g.const(1, np.int64), axis=0)


def places(g: Graph) -> str:
    return g.op("Range", g.const(0, np.int64), length(g), g.const(1, np.int64))


def as_column(g: Graph, numbers: str) -> str:
    return g.op("Unsqueeze", g.op("Cast", numbers, to=1), ints(g, 1))


def part(g: Graph, start: int, end: int, step: int = 1) -> str:
    return g.op("Slice", "x", ints(g, start), ints(g, end), ints(g, 1), ints(g, step))


def summed(g: Graph, x: str) -> str:
    return g.op("ReduceSum", x, ints(g, 1))


def attention(g: Graph, divided: bool) -> str:
    scores = g.op("MatMul", "x", turned(g))
    return g.op("MatMul", g.op("Softmax", scores, axis=-1) if divided else scores, "x")


def recurrent(g: Graph, output: int, direction: str = "forward") -> str:
    """All states (0) or the last one (1) of an LSTM of 4 units."""
    steps = g.op("Transpose", "x", perm=[1, 0, 2])
    g.op("LSTM", steps, weights(g, 1, 16, CHANNELS), weights(g, 1, 16, 4), hidden_size=4, direction=direction)
    node = g.nodes[-1]
    states = node.output[0]
    node.output[:] = ["" if place != output else states for place in range(output + 1)]
    return states


def twice_convolved(g: Graph) -> str:
    first = g.op("Conv", turned(g), weights(g, 4, CHANNELS, 3), g.const(np.ones(4)), pads=[1, 1])
    return g.op("Conv", first, weights(g, 4, 4, 3), pads=[1, 1])


TRAPS: dict[str, Callable[[Graph], str]] = {
    "last token": lambda g: g.op("Gather", "x", ints(g, -1), axis=1),
    "first token": lambda g: g.op("Gather", "x", ints(g, 0), axis=1),
    "last slice": lambda g: part(g, -1, MANY),
    "reversed": lambda g: part(g, -1, -MANY, -1),
    "running sum": lambda g: g.op("CumSum", "x", g.const(1, np.int64)),
    "running sum from the end": lambda g: g.op("CumSum", "x", g.const(1, np.int64), reverse=1),
    "mean": lambda g: g.op("ReduceMean", "x", axes=[1]),
    "largest": lambda g: g.op("ReduceMax", "x", axes=[1]),
    "largest of relu": lambda g: g.op("ReduceMax", g.op("Relu", "x"), axes=[1]),
    "product": lambda g: g.op("ReduceProd", "x", axes=[1]),
    "sum of relu": lambda g: summed(g, g.op("Relu", "x")),
    "sum of exp": lambda g: summed(g, g.op("Exp", "x")),
    "sum of relu(x + b)": lambda g: summed(g, g.op("Relu", g.op("Add", "x", g.const(np.ones(CHANNELS))))),
    "sum of squares": lambda g: g.op("ReduceSumSquare", "x", axes=[1]),
    "log of the sum of exp": lambda g: g.op("ReduceLogSumExp", "x", axes=[1]),
    "norm behind a layer": lambda g: g.op("ReduceL2", g.linear("x"), axes=[1]),
    "layer": lambda g: g.linear("x"),
    "attention without a mask": lambda g: attention(g, divided=True),
    "linear attention": lambda g: attention(g, divided=False),
    "convolution": lambda g: g.op("Conv", turned(g), weights(g, 4, CHANNELS, 3), pads=[1, 1]),
    "two convolutions with biases": twice_convolved,
    "averages": lambda g: g.op("AveragePool", turned(g), kernel_shape=[3], pads=[1, 1]),
    "norm over positions": lambda g: g.op(
        "InstanceNormalization", turned(g), g.const(np.ones(CHANNELS)), g.const(np.zeros(CHANNELS))
    ),
    "norm of each position": lambda g: g.op("LayerNormalization", "x", g.const(np.ones(CHANNELS)), axis=-1),
    "distance from the mean of all": lambda g: g.op("Sub", "x", g.op("ReduceMean", "x", axes=[1, 2])),
    "softmax over positions": lambda g: g.op("Softmax", "x", axis=1),
    "mean by the length": lambda g: g.op("Div", summed(g, "x"), g.op("Cast", length(g), to=1)),
    "times the length": lambda g: g.op("Mul", "x", g.op("Cast", length(g), to=1)),
    "places": lambda g: g.op("Add", "x", as_column(g, places(g))),
    "places from the end": lambda g: g.op("Add", "x", as_column(g, g.op("Sub", length(g), places(g)))),
    "states of an LSTM": lambda g: recurrent(g, 0),
    "last state of an LSTM": lambda g: recurrent(g, 1),
    "states of an LSTM from the end": lambda g: recurrent(g, 0, "reverse"),
    "flat": lambda g: g.op("Reshape", "x", ints(g, 1, -1)),
    "twice": lambda g: g.op("Concat", "x", "x", axis=1),
    "every position twice": lambda g: g.op(
        "Resize",
        turned(g),
        "",
        g.const([1, 1, 2]),
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    ),
    "place of the largest": lambda g: g.op("Cast", g.op("ArgMax", "x", axis=1), to=1),
}
PADDED = {"first token", "sum of relu", "layer", "linear attention", "norm of each position", "places"}
"""Those that take any length: a proof that lets all through is seen here, as is one that lets nothing through."""
CASES = [("bm1684x", name) for name in TRAPS] + [("bm1684", name) for name in sorted(PADDED)]


@pytest.mark.parametrize(("target", "name"), CASES)
def test_what_is_taken_is_right(target: str, name: str, tmp_path: Path) -> None:
    path = model(TRAPS[name], str(tmp_path / "net.onnx"))
    result = bmcompiler.compile(path, target=target, quantize="f32", shapes=f"[[1,{{4,8}},{CHANNELS}]]", check="never")
    session, reference = Session(result.model), onnxruntime.InferenceSession(path)
    random = np.random.default_rng(3)
    taken = set()
    for count in (3, 4, 5, 7, 8):
        x = (3 * random.standard_cauchy((1, count, CHANNELS))).astype(np.float32).clip(-40, 40)
        try:
            (found,) = session.run({"x": x}).values()
        except RuntimeUseError:
            continue
        taken.add(count)
        (wanted,) = reference.run(None, {"x": x})
        assert found.shape == wanted.shape, count
        largest = max(1, np.abs(wanted).max())
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-4 * largest, err_msg=f"{count} positions")
    assert taken == ({3, 4, 5, 7, 8} if name in PADDED else {4, 8})
