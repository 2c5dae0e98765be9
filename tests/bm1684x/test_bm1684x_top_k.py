"""The largest elements of rows, on the chip: what detection heads keep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import bmcompiler
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.plugins.registry import lookup

CHIP = "bm1684x"
MOST = np.finfo(np.float32).max


def net(rows: int, count: int, k: int, largest: bool = True) -> Module:
    b = Builder.new("net")
    x = b.input("x", TensorType((rows, count)))
    values, indices = b.create("top_k", [x], {"k": k, "axis": 1, "largest": largest}).results
    return b.outputs([values, indices], ["values", "indices"])


RANKED: dict[str, Callable[[], Module]] = {
    "top of a row": lambda: net(1, 1500, 40),
    "top of rows": lambda: net(3, 100, 7),
    "all of a row": lambda: net(2, 37, 37, largest=False),
    "top of few": lambda: net(1, 5, 2),
    "top of lanes": lambda: net(1, 1024, 3),
}


def drawn(module: Module) -> np.ndarray:
    """Many equal elements, and what is not usual."""
    (x,) = module.main.arguments
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal(x.shape).round(1).astype(np.float32)
    drawn.reshape(-1)[:4] = [-0.0, 1e-42, np.inf, -np.inf]
    return drawn


def taken(x: np.ndarray, k: int, largest: bool) -> list[list[int]]:
    """Indices, in plain words: falling (or rising) values, of equal ones the first."""
    return [sorted(range(len(row)), key=lambda i: (-row[i] if largest else row[i], i))[:k] for row in x.tolist()]


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("name", RANKED)
def test_elements_come_in_order_and_of_equals_the_first(name: str, level: bmcompiler.Level) -> None:
    module = RANKED[name]()
    (op,) = module.main.ops[:1]
    x = drawn(module)
    result = bmcompiler.compile_module(module, target=CHIP, quantize="f32", opt=level)
    assert {layer.where for layer in result.rows} == {CHIP}
    values, indices = lookup("bmcompiler.devices", CHIP, "device")().load(result.model)[0].run([x])
    largest = op.attributes.get("largest", True)
    ends = (-MOST, None) if largest else (None, MOST)  # infinite numbers at the wrong end are the last finite ones
    compared = np.where(np.abs(x) < 1e-38, 0, x).clip(*ends)
    wanted = taken(compared, op.attributes["k"], largest)
    np.testing.assert_array_equal(indices.reshape(len(x), -1), wanted)
    np.testing.assert_array_equal(values.reshape(len(x), -1), np.take_along_axis(compared, np.array(wanted), 1))


def test_the_rows_that_a_head_keeps_are_picked_on_the_chip() -> None:
    """Scores of all boxes and classes are ranked; quotient and rest say whose they are."""
    info, make = helper.make_tensor_value_info, helper.make_node
    classes, boxes, k = 7, 60, 12
    number = {"k": [k], "classes": classes, "last": [-1], "flat": [1, -1], "four": [1, k, 4]}
    constants = [numpy_helper.from_array(np.asarray(value, np.int64), name) for name, value in number.items()]
    nodes = [
        make("Reshape", ["scores", "flat"], ["row"]),
        make("TopK", ["row", "k"], ["best", "at"], axis=1),
        make("Div", ["at", "classes"], ["box"]),
        make("Mod", ["at", "classes"], ["kind"]),
        make("Unsqueeze", ["box", "last"], ["column"]),
        make("Expand", ["column", "four"], ["places"]),
        make("GatherElements", ["boxes", "places"], ["kept"], axis=1),
        make("Cast", ["kind"], ["label"], to=TensorProto.FLOAT),
    ]
    inputs = [info("scores", TensorProto.FLOAT, [1, boxes, classes]), info("boxes", TensorProto.FLOAT, [1, boxes, 4])]
    shapes = {"best": [1, k], "kept": [1, k, 4], "label": [1, k]}
    outputs = [info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(nodes, "head", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    rng = np.random.default_rng(0)
    given = {each.name: rng.random([1, boxes, n]).astype(np.float32) for each, n in zip(inputs, (classes, 4))}
    result = bmcompiler.compile(model, target=CHIP, quantize="f32")
    assert {layer.where for layer in result.rows} <= {CHIP, "view"}
    found = result.run(given)
    for name, wanted in zip(shapes, ReferenceEvaluator(model).run(None, given)):
        np.testing.assert_array_equal(found[name], wanted)
