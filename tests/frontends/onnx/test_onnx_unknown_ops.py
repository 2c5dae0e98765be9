"""A net with several ops that are unknown or refused: all are named, and the cut that the message proposes works."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

import bmcompiler
from bmcompiler.errors import FileFormatError, ShapeError, UnsupportedError


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
    first, *lines, last = text.splitlines()
    assert first == f"{path}: 3 layers are not supported:" and last.startswith("Remedy: ")
    assert lines == [
        "  2 layers 'left', 'last' (Foo, opset 1): op type own.Foo (opset 1) has no converter",
        "  layer 'right' (Bar, opset 1): op type own.Bar (opset 1) has no converter",
    ]
    (cut,) = re.findall(r"with outputs=(\[.*\]), or install", text)
    assert json.loads(cut) == ["a", "b", "z"]
    assert list(bmcompiler.load_network(path, outputs=json.loads(cut)).main.output_names) == ["a", "b", "z"]


def info(name: str, shape: Sequence[int] = (1, 4, 2, 2)) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def trained(name: str, x: str, y: str) -> NodeProto:
    """A norm that is refused: it is in training mode."""
    results = [y, f"{name}/mean", f"{name}/variance"]
    return helper.make_node("BatchNormalization", [x, *"wwww"], results, name, training_mode=1)


def model(nodes: Sequence[NodeProto], outputs: str, stated: Sequence[ValueInfoProto] = ()) -> onnx.ModelProto:
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4], [1.0] * 4)
    results = [ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "net", [info("x")], results, [weight], value_info=stated)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15), helper.make_opsetid("own", 1)])


def refusal(net: onnx.ModelProto, **options: object) -> UnsupportedError:
    with pytest.raises(UnsupportedError) as found:
        bmcompiler.load_network(net, **options)
    return found.value


REFUSED = [
    helper.make_node("Relu", ["x"], ["a"], "first"),
    trained("norm1", "a", "b"),
    helper.make_node("Relu", ["b"], ["c"], "between"),
    trained("norm2", "c", "d"),
    helper.make_node("Cast", ["d"], ["e"], "half", to=TensorProto.BFLOAT16),
    helper.make_node("Softmax", ["e"], ["f"], "behind"),
    helper.make_node("Foo", ["f"], ["g"], "odd", domain="own"),
    trained("behind_foo", "g", "y"),
    helper.make_node("Sigmoid", ["c"], ["z"], "side"),
]
"""Refused, one behind the other, are norms, cast and the unknown op; what reads the last two is not judged."""


def test_refused_and_unknown_nodes_are_listed_at_once_but_not_what_reads_them() -> None:
    error = refusal(model(REFUSED, "yz"))
    assert [each.layer for each in error.refusals] == ["norm1", "norm2", "half", "odd"]
    first, *lines, last = str(error).splitlines()
    assert first == "4 layers are not supported:"
    assert lines == [
        "  2 layers 'norm1', 'norm2' (BatchNormalization, opset 15): only the inference form with one value per "
        "channel is supported. Remedy: export the model in inference mode",
        "  layer 'half' (Cast, opset 15): element type BFLOAT16 is not supported",
        "  layer 'odd' (Foo, opset 1): op type own.Foo (opset 1) has no converter",
    ]
    assert last.startswith('Remedy: cut the net before all of them with outputs=["a"], or install a plugin')
    assert bmcompiler.load_network(model(REFUSED, "yz"), outputs=["a"]).main.output_names == ["a"]


def test_a_single_refusal_is_a_sentence() -> None:
    error = refusal(model(REFUSED, "b"))
    assert not error.refusals and "\n" not in str(error) and "plugin" not in str(error)
    assert str(error).startswith("layer 'norm1' (BatchNormalization, opset 15): only the inference form")


def test_behind_an_unknown_op_the_files_own_shapes_serve_unless_others_are_given() -> None:
    net = model(
        [helper.make_node("Foo", ["x"], ["a"], "odd", domain="own"), trained("norm", "a", "y")], "y", [info("a")]
    )
    assert [each.layer for each in refusal(net).refusals] == ["odd", "norm"]
    assert refusal(net, shapes=[[2, 4, 2, 2]]).layer == "odd"


def test_a_long_list_is_cut() -> None:
    nodes = [helper.make_node(f"Op{i}", ["x"], [f"y{i}"], f"n{i}", domain="own") for i in range(20)]
    nodes.append(helper.make_node("Sum", [f"y{i}" for i in range(20)], ["y"], "sum"))
    first, *lines, _ = str(refusal(model(nodes, "y"))).splitlines()
    assert first.startswith("20 layers") and len(lines) == 13 and lines[-1] == "  and 8 more"


def test_in_functions_and_loops_the_node_of_the_graph_is_named_once() -> None:
    inner = [trained("inner", "p", "q"), trained("next", "q", "r")]
    for node in inner:
        node.input[1:] = [*"vvvv"]
    opset = [helper.make_opsetid("", 15)]
    net = model([helper.make_node("F", ["x", "w"], ["a"], "call", domain="own"), trained("norm", "a", "y")], "y")
    net.functions.append(helper.make_function("own", "F", ["p", "v"], ["r"], inner, opset))
    assert [each.layer for each in refusal(net).refusals] == ["call", "norm"]
    one = onnx.ModelProto()
    one.CopyFrom(net)
    one.graph.output[0].name = "a"
    assert refusal(one).layer == "call"
    step = [trained("in_loop", "state", "bf"), helper.make_node("Identity", ["go"], ["on"])]
    body = helper.make_graph(
        step,
        "body",
        [helper.make_tensor_value_info(n, TensorProto.INT64, []) for n in ("i", "go")] + [info("state")],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), info("bf")],
    )
    trips = helper.make_node("Constant", [], ["n"], "n", value_int=3)
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], "loop", body=body)
    assert refusal(model([trips, loop], "y")).layer == "loop"
    lost = helper.make_node("Cast", ["state"], ["bf"], "in_loop", to=TensorProto.BFLOAT16)
    body.node[0].CopyFrom(lost)
    loop = helper.make_node("Loop", ["n", "", "x"], ["a"], "loop", body=body)
    assert refusal(model([trips, loop, trained("norm", "a", "y")], "y")).layer == "loop"


@pytest.mark.parametrize("kind", [FileFormatError, ShapeError])
def test_a_broken_node_ends_the_import_at_once(kind: type[Exception]) -> None:
    broken = helper.make_node("Add", ["x", "nowhere" if kind is FileFormatError else "v"], ["a"], "broken")
    net = model([broken, trained("norm1", "a", "b"), trained("norm2", "b", "y")], "y")
    net.graph.initializer.append(helper.make_tensor("v", TensorProto.FLOAT, [3], [1.0] * 3))
    with pytest.raises(kind, match="broken"):
        bmcompiler.load_network(net)


def test_a_node_without_an_op_type_is_a_damaged_file(tmp_path: Path) -> None:
    path = net(tmp_path)
    model = onnx.load(path)
    model.graph.node[6].op_type = ""
    onnx.save(model, path)
    with pytest.raises(FileFormatError, match=r"layer 'side'.*node 6 has no op type") as found:
        bmcompiler.load_network(path)
    assert "\n" not in str(found.value)
