"""Networks, samples and models that are no files."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bmcompiler
from bmcompiler.errors import CalibrationError, FileFormatError, RuntimeUseError, UsageError
from bmcompiler.runtime import Session

X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


def network(inputs: int = 1) -> onnx.ModelProto:
    """y = relu(x0 + x1 ...)"""
    names = [f"x{i}" for i in range(inputs)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in names]
    nodes = [helper.make_node("Sum", names, ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    graph = helper.make_graph(nodes, "net", values, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_a_network_in_memory_compiles_to_the_bytes_of_its_file(tmp_path: Path) -> None:
    model = network()
    before = model.SerializeToString()
    onnx.save(model, tmp_path / "net.onnx")
    wanted = bmcompiler.compile(tmp_path / "net.onnx", target="bm1684").to_bytes()
    assert bmcompiler.compile(model, target="bm1684").to_bytes() == wanted
    assert bmcompiler.compile(before, target="BM1684").to_bytes() == wanted
    assert model.SerializeToString() == before
    assert str(bmcompiler.load_network(before)) == str(bmcompiler.load_network(tmp_path / "net.onnx"))


@pytest.mark.parametrize("given", [None, 5, [b"x"], np.zeros(3)])
def test_what_is_no_network_is_said(given: object) -> None:
    with pytest.raises(UsageError, match=r"a network is the path of a file, an onnx\.ModelProto or its bytes, got"):
        bmcompiler.compile(given, target="bm1684")


def test_bytes_that_are_no_network_are_said() -> None:
    with pytest.raises(FileFormatError, match="the network: is not an ONNX model"):
        bmcompiler.compile(b"\x08\xff\xff", target="bm1684")


def test_the_array_of_the_only_input_needs_no_name() -> None:
    wanted = bmcompiler.compile(network(), target="bm1880", data={"x0": X}).to_bytes()
    assert bmcompiler.compile(network(), target="bm1880", data=X).to_bytes() == wanted
    one = bmcompiler.compile(network(), target="bm1880", data=X[:1]).to_bytes()
    assert bmcompiler.compile(network(), target="bm1880", data=X, limit=1).to_bytes() == one
    assert bmcompiler.compile(network(), target="bm1880", data=X[0]).to_bytes() == one
    with pytest.raises(CalibrationError, match=r"2 inputs\. Remedy: give one array for each by name: x0"):
        bmcompiler.compile(network(2), target="bm1880", data=X)


@pytest.mark.parametrize("target", ["bm1880", "bm1684", "bm1684x", "dv700"])
def test_results_go_to_other_processes(target: str) -> None:
    result = bmcompiler.compile(network(), target=target, data=X)
    again = pickle.loads(pickle.dumps(result))
    assert str(again) == str(result)
    assert again.to_bytes() == result.to_bytes()
    assert again.compare(X).keys() == {"y"}  # with the network before the passes
    module = bmcompiler.compile_module(result.source(), target=target, data=X)
    assert pickle.loads(pickle.dumps(module)).to_bytes() == module.to_bytes()


def test_a_session_takes_bytes_and_ends_with_its_block() -> None:
    content = bmcompiler.compile(network(), target="bm1684").to_bytes()
    with Session(content) as session:
        assert np.array_equal(session.run(X)["y"], np.maximum(X, 0))
    with pytest.raises(RuntimeUseError, match=r"the session is closed\. Remedy: open another one"):
        session.run(X)
    with pytest.raises(FileFormatError, match="the model: not a model file"):
        Session(b"abcdefgh")
