"""Networks that fix their batch in a Reshape still compile for another batch, if their samples stay apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bmcompiler
from bmcompiler.errors import ShapeError
from bmcompiler.interpreter import run_module


def fixed_batch_net(path: Path, mixing: bool) -> Path:
    """(1, 2, 3) -> relu -> Reshape to the constant shape [1, 6] -> softmax over the samples when `mixing`."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Reshape", ["a", "shape"], ["b"]),
        helper.make_node("Softmax", ["b"], ["y"], axis=0 if mixing else 1),
    ]
    shape = numpy_helper.from_array(np.array([1, 6], np.int64), "shape")
    graph = helper.make_graph(
        nodes,
        "fixed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6])],
        [shape],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_a_fixed_batch_is_overridden(tmp_path: Path) -> None:
    path = fixed_batch_net(tmp_path / "net.onnx", mixing=False)
    one, four = bmcompiler.load_network(path), bmcompiler.load_network(path, shapes=[[4, 2, 3]])
    x = np.random.default_rng(0).standard_normal((4, 2, 3)).astype(np.float32)
    wanted = np.concatenate([run_module(one, {"x": x[i : i + 1]})["y"] for i in range(4)])
    np.testing.assert_array_equal(run_module(four, {"x": x})["y"], wanted)
    assert any("fixes its batch at 1" in note for note in four.attributes["notes"])


def test_a_net_that_mixes_samples_is_refused(tmp_path: Path) -> None:
    path = fixed_batch_net(tmp_path / "net.onnx", mixing=True)
    with pytest.raises(ShapeError, match="Reshape"):
        bmcompiler.load_network(path, shapes=[[4, 2, 3]])


def test_other_sizes_than_the_batch_stay_errors(tmp_path: Path) -> None:
    path = fixed_batch_net(tmp_path / "net.onnx", mixing=False)
    with pytest.raises(ShapeError):
        bmcompiler.load_network(path, shapes=[[4, 2, 5]])
