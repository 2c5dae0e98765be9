"""Outputs that are constants, inputs, or one value twice: in float as in int8, and in the comparison with float."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bmcompiler
from bmcompiler.errors import UnsupportedError

SAMPLES = np.random.default_rng(0).standard_normal((4, 3, 4, 4)).astype(np.float32)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    half = numpy_helper.from_array(np.array([2.5], np.float32))
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["constant"], value=half),
        helper.make_node("Relu", ["x"], ["positive"]),
        helper.make_node("Identity", ["positive"], ["again"]),
        helper.make_node("Identity", ["x"], ["itself"]),
    ]
    outputs = ["constant", "positive", "again", "itself"]
    value = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, 4, 4]) for name in ("x", *outputs)}
    graph = helper.make_graph(nodes, "net", [value["x"]], [value[name] for name in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


@pytest.mark.parametrize(
    "chip, precision, close",
    [
        ("bm1684", "f32", 0),
        ("bm1684", "int8", 0.05),
        ("bm1684x", "f16", 2e-3),
        ("bm1684x", "int8", 0.05),
        ("dv700", "f16", 2e-3),
    ],
)
def test_each_output_has_its_value(net: Path, chip: str, precision: str, close: float) -> None:
    result = bmcompiler.compile(
        net, target=chip, quantize=precision, data={"x": SAMPLES} if precision == "int8" else None
    )
    found = result.run({"x": SAMPLES[:1]})
    assert (found["constant"] == 2.5).all()
    for name, wanted in (("positive", np.maximum(SAMPLES[:1], 0)), ("itself", SAMPLES[:1])):
        assert np.abs(found[name] - wanted).max() <= close
    assert np.array_equal(found["again"], found["positive"])


def test_a_chip_without_constant_outputs_says_so(net: Path) -> None:
    with pytest.raises(UnsupportedError, match="an output of the net is a constant"):
        bmcompiler.compile(net, target="bm1880", data={"x": SAMPLES})
