"""Weights that are no numbers: refused on every chip by layer and place, also where samples would be blamed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bmcompiler
from bmcompiler.api import compile_module
from bmcompiler.errors import FileFormatError
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session

SAMPLES = {"x": np.random.default_rng(0).standard_normal((4, 3, 8, 8)).astype(np.float32)}
CHIPS = [
    ("bm1684", "f32"),
    ("bm1684", "int8"),
    ("bm1684x", "f16"),
    ("bm1684x", "int8"),
    ("bm1880", "int8"),
    ("dv700", "f16"),
]


def _net(folder: Path, tensor: str, number: float) -> Path:
    rng, shapes = np.random.default_rng(1), {"w": (4, 3, 3, 3), "b": (4,), "mask": (1, 4, 1, 1)}
    constants = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    constants[tensor].flat[2] = number
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["a"], name="conv1"),
        helper.make_node("Relu", ["a"], ["r"], name="relu1"),
        helper.make_node("Add", ["r", "mask"], ["y"], name="add1"),
    ]
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, [1, 3, 8, 8])]
    outputs = [value("y", TensorProto.FLOAT, [1, 4, 6, 6])]
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "net", inputs, outputs, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, folder / "net.onnx")
    return folder / "net.onnx"


@pytest.mark.parametrize("chip, precision", CHIPS)
@pytest.mark.parametrize(
    "tensor, number, said",
    [
        ("w", np.nan, "layer 'conv1' (conv): 1 of the 108 numbers of 'w' is NaN, the first one at [0, 0, 0, 2]"),
        ("b", -np.inf, "layer 'conv1' (conv): 1 of the 4 numbers of 'b' is infinite, the first one at [2]"),
        ("mask", np.nan, "layer 'add1' (add): 1 of the 4 numbers of 'mask' is NaN, the first one at [0, 2, 0, 0]"),
    ],
)
def test_a_weight_that_is_no_number_is_named(
    tensor: str, number: float, said: str, chip: str, precision: str, tmp_path: Path
) -> None:
    data = SAMPLES if precision == "int8" else None
    with pytest.raises(FileFormatError) as error:
        bmcompiler.compile(_net(tmp_path, tensor, number), target=chip, quantize=precision, data=data)
    assert f"net.onnx: {said}." in str(error.value)


@pytest.mark.parametrize("place", range(1, 4))
def test_weights_of_recurrent_layers_are_weights(place: int) -> None:
    builder = Builder.new("net")
    x = builder.input("x", TensorType((5, 2, 3)))
    held = [np.ones(shape, np.float32) for shape in ((1, 24, 3), (1, 24, 6), (1, 48), (1, 2, 6), (1, 2, 6))]
    held[place - 1].flat[7] = np.inf
    module = builder.outputs(
        builder.lstm(x, *(builder.weight(array, f"w{i}") for i, array in enumerate(held, 1)))[:1], ["y"]
    )
    with pytest.raises(FileFormatError, match=f"of 'w{place}' is infinite, the first one at"):
        compile_module(module, target="bm1684x", quantize="f32")


def test_an_embedding_that_is_no_number_is_named() -> None:
    builder = Builder.new("net")
    table = np.ones((10, 4), np.float32)
    table[3, 1] = np.nan
    indices = builder.input("x", TensorType((1, 5), "i32"))
    module = builder.outputs([builder.gather(builder.weight(table, "words"), indices, axis=0)], ["y"])
    with pytest.raises(FileFormatError, match=r"'words' is NaN, the first one at \[3, 1\]"):
        compile_module(module, target="bm1684x", quantize="f32")


def test_an_infinite_mask_is_what_it_is_in_float(tmp_path: Path) -> None:
    made = bmcompiler.compile(_net(tmp_path, "mask", -np.inf), target="bm1684x", quantize="f32")
    found = Session(made.model).run({"x": SAMPLES["x"][:1]})["y"]
    assert np.isneginf(found[0, 2]).all() and np.isfinite(np.delete(found, 2, axis=1)).all()
