"""A net with several unknown ops: all are named, and the cut that the message proposes works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import bmcompiler
from bmcompiler.errors import UnsupportedError


def net(folder: Path) -> Path:
    """Two branches, an unknown op in each, another behind them, and a ReLU that is an output of its own."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "second"),
        helper.make_node("Foo", ["a"], ["c"], "left", domain="own"),
        helper.make_node("Bar", ["b", "w"], ["d"], "right", domain="own"),
        helper.make_node("Add", ["c", "d"], ["e"], "both"),
        helper.make_node("Foo", ["e"], ["y"], "last", domain="own"),
        helper.make_node("Sigmoid", ["b"], ["z"], "side"),
    ]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xyz"]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4], [1.0] * 4)
    graph = helper.make_graph(nodes, "net", value[:1], value[1:], [weight])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), folder / "net.onnx")
    return folder / "net.onnx"


def test_all_unknown_ops_are_named_with_a_cut_that_works(tmp_path: Path) -> None:
    path = net(tmp_path)
    with pytest.raises(UnsupportedError) as found:
        bmcompiler.load_network(path)
    text = str(found.value)
    assert "2 op types have no converter: own.Foo (opset 1) in 'left', 'last'; own.Bar (opset 1) in 'right'" in text
    (cut,) = re.findall(r"with outputs=(\[.*\]), or install", text)
    assert json.loads(cut) == ["a", "b", "z"]
    assert list(bmcompiler.load_network(path, outputs=json.loads(cut)).main.output_names) == ["a", "b", "z"]
