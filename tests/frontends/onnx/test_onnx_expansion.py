"""Functions, conditions and loops: what stands for other nodes is expanded at import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import agree, graph_model, imported, op_model

from bmcompiler.errors import BMError, FileFormatError, UnsupportedError
from bmcompiler.frontends.onnx import import_onnx

node = helper.make_node
X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


def info(name: str, kind: int = TensorProto.FLOAT, shape: tuple[int, ...] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def with_function(*functions: onnx.FunctionProto, call: onnx.NodeProto | None = None) -> onnx.ModelProto:
    model = graph_model([], {"x": (2, 3)}, ["y"])
    model.graph.node.append(call or node("Twice", ["x"], ["y"], domain="local", name="call", by=3.0))
    model.functions.extend(functions)
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.ir_version = 9
    return model


def function(name: str, nodes: list[onnx.NodeProto], **options: Any) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, ["a"], ["b"], nodes, opsets, **options)


def scaled(name: str, inner: str) -> onnx.FunctionProto:
    """b = elu(inner(a), alpha = attribute by)."""
    elu = node("Elu", ["t"], ["b"])
    reference = elu.attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "alpha", "by", onnx.AttributeProto.FLOAT
    return function(
        name, [node(inner, ["a"], ["t"], domain="local" if inner == "Once" else ""), elu], attributes=["by"]
    )


def test_a_function_of_the_model_calls_another_and_takes_attributes() -> None:
    once = function("Once", [node("Neg", ["a"], ["t"]), node("Neg", ["t"], ["u"]), node("Neg", ["u"], ["b"])])
    module = agree(with_function(scaled("Twice", "Once"), once), {"x": X})
    assert {op.location for op in module.main.ops[:-1]} == {("call",)}


def test_names_inside_a_function_do_not_meet_names_of_the_graph() -> None:
    model = with_function(function("Twice", [node("Neg", ["a"], ["t"]), node("Exp", ["t"], ["b"])], attributes=["by"]))
    model.graph.node[0].output[0] = "z"
    model.graph.node.insert(0, node("Relu", ["x"], ["call/t"]))
    model.graph.node.append(node("Add", ["call/t", "z"], ["y"]))
    agree(model, {"x": X})


def test_a_function_that_calls_itself_is_reported() -> None:
    again = function("Twice", [node("Twice", ["a"], ["b"], domain="local")], attributes=["by"])
    with pytest.raises(FileFormatError, match=r"'call'.*calls more than"):
        import_onnx(with_function(again))


def test_functions_that_double_their_body_again_and_again_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmcompiler.frontends.onnx.importer._MAX_EXPANDED", 1000)

    def body(inner: str) -> list[onnx.NodeProto]:
        return [node(inner, ["a"], ["t"], domain="local"), node(inner, ["t"], ["b"], domain="local")]

    many = [function(f"F{i}", body(f"F{i + 1}")) for i in range(28)]
    last = function("F28", [node("Relu", ["a"], ["b"])])
    with pytest.raises(UnsupportedError, match="stand for more than"):
        import_onnx(with_function(*many, last, call=node("F0", ["x"], ["y"], domain="local", name="call")))


def test_a_constant_condition_chooses_the_branch_and_reads_outer_tensors() -> None:
    def branch(op: str) -> onnx.GraphProto:
        inner = [node(op, ["h"], ["t"]), node("Add", ["t", "one"], ["r"])]
        one = numpy_helper.from_array(np.ones(3, np.float32), "one")
        return helper.make_graph(inner, op, [], [info("r")], [one])

    nodes = [
        node("Relu", ["x"], ["h"]),
        node("Shape", ["x"], ["s"]),
        node("Size", ["s"], ["n"]),
        node("Equal", ["n", "two"], ["is2"]),
        node("If", ["is2"], ["y"], name="choice", then_branch=branch("Neg"), else_branch=branch("Exp")),
    ]
    model = graph_model(nodes, {"x": (2, 3)}, ["y"], {"two": np.asarray(2)})
    agree(model, {"x": X})


def choice_by_input(then: Sequence[onnx.NodeProto], size: int = 1) -> onnx.ModelProto:
    """x or what `then` makes of it, called "r", as the sum of x says; the condition has so many elements."""
    branches = {
        "then_branch": helper.make_graph(then, "then", [], [info("r")]),
        "else_branch": helper.make_graph([node("Identity", ["x"], ["r"])], "else", [], [info("r")]),
    }
    nodes = [
        node("ReduceSum", ["x"], ["s"]),
        node("Greater", ["s", "least"], ["c"]),
        node("If", ["c"], ["y"], name="choice", **branches),
    ]
    return graph_model(nodes, {"x": (2, 3)}, ["y"], {"least": np.zeros((1, size), np.float32)})


@pytest.mark.parametrize("sign", [1, -1])
def test_of_a_condition_that_depends_on_the_inputs_both_branches_are_computed_and_one_is_taken(sign: int) -> None:
    infinite = [node("Sub", ["x", "x"], ["zero"]), node("Div", ["x", "zero"], ["r"])]
    for then in ([node("Exp", ["x"], ["r"])], infinite):
        agree(choice_by_input(then), {"x": sign * np.abs(X) - np.float32(0.1)})


def test_a_condition_that_depends_on_the_inputs_needs_one_element_and_branches_of_one_shape() -> None:
    with pytest.raises(
        UnsupportedError, match=r"'choice' \(If.*shapes \[3, 2\] and \[2, 3\], and which .* net's inputs"
    ):
        import_onnx(choice_by_input([node("Transpose", ["x"], ["r"])]))
    with pytest.raises(FileFormatError, match=r"'choice' \(If.*single truth value, got shape \[1, 2\]"):
        import_onnx(choice_by_input([node("Exp", ["x"], ["r"])], 2))


def loop(trips: int, go_on: str) -> onnx.ModelProto:
    """acc doubles and gains x each step; every step's acc is stacked."""
    body = helper.make_graph(
        [
            node("Add", ["acc", "acc"], ["twice"]),
            node("Add", ["twice", "x"], ["next"]),
            node("Less", ["i", "limit"], ["short"]),
            node("Identity", [go_on], ["go"]),
        ],
        "body",
        [info("i", TensorProto.INT64, ()), info("c", TensorProto.BOOL, ()), info("acc")],
        [info("go", TensorProto.BOOL, ()), info("next"), info("next")],
    )
    constants = {"trips": np.asarray(trips), "limit": np.asarray(1)}
    made = node("Loop", ["trips", "", "x"], ["y", "steps"], name="loop", body=body)
    return graph_model([made], {"x": (2, 3)}, ["y", "steps"], constants)


@pytest.mark.parametrize(("trips", "go_on"), [(3, "c"), (5, "short")])
def test_a_loop_of_known_length_is_unrolled(trips: int, go_on: str) -> None:
    agree(loop(trips, go_on), {"x": X})


def while_loop(trips: int, first: str, *, stacked: bool = False) -> onnx.ModelProto:
    """While the sum of acc stays below 20: acc doubles and gains 1, and steps are counted; `first`: the condition."""
    body = helper.make_graph(
        [
            node("Add", ["acc", "acc"], ["twice"]),
            node("Add", ["twice", "one"], ["next"]),
            node("Add", ["n", "step"], ["count"]),
            node("ReduceSum", ["next"], ["sum"], keepdims=0),
            node("Less", ["sum", "twenty"], ["go"]),
        ],
        "body",
        [info("i", TensorProto.INT64, ()), info("c", TensorProto.BOOL, ()), info("acc"), info("n", TensorProto.INT32)],
        [info("go", TensorProto.BOOL, ()), info("next"), info("count", TensorProto.INT32), *([info("next")] * stacked)],
    )
    constants = {"trips": np.asarray(trips), "one": np.float32([1]), "twenty": np.float32(20), "half": np.float32(0.5)}
    constants |= {"start": np.int32([0]), "step": np.int32([1]), "always": np.asarray(True)}
    outputs = ["y", "steps", *(["all"] if stacked else [])]
    made = node("Loop", ["trips", first, "x", "start"], outputs, name="loop", body=body)
    asked = [node("ReduceMax", ["x"], ["highest"], keepdims=0), node("Less", ["highest", "half"], ["low"])]
    types = {"x": TensorProto.FLOAT}
    return graph_model([*asked, made], {"x": (2, 3)}, outputs, constants, types=types)


@pytest.mark.parametrize("trips", [1, 2, 6])
@pytest.mark.parametrize("first", ["", "always", "low"])
def test_trips_that_do_not_happen_leave_what_is_carried(first: str, trips: int) -> None:
    for value in (-2.0, 0.0, 0.4, 1.5, 9.0):
        agree(while_loop(trips, first), {"x": np.full((2, 3), value, np.float32)})


def test_a_loop_whose_end_is_open_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"'loop'.*depends on the net's inputs"):
        import_onnx(while_loop(6, "", stacked=True))
    with pytest.raises(UnsupportedError, match=r"'loop'.*more than 1024 steps"):
        import_onnx(while_loop(10**9, ""))


def test_a_loop_that_would_not_end_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"'loop'.*more than 1024 steps"):
        import_onnx(loop(10**9, "c"))


def test_scan_goes_over_an_axis_in_both_directions() -> None:
    body = helper.make_graph(
        [node("Add", ["sum", "row"], ["next"]), node("Mul", ["next", "row"], ["out"])],
        "body",
        [info("sum"), info("row")],
        [info("next"), info("out")],
    )
    start = np.zeros(2, np.float32)
    how = {"num_scan_inputs": 1, "scan_input_axes": [1], "scan_input_directions": [1], "scan_output_axes": [1]}
    made = node("Scan", ["start", "x"], ["last", "y"], name="scan", body=body, **how)
    agree(graph_model([made], {"x": (2, 3)}, ["last", "y"], {"start": start}), {"x": X})


def test_an_op_without_a_converter_is_computed_by_its_own_definition() -> None:
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((1, 2, 4, 8)).astype(np.float32) for _ in range(3))
    model, feeds = op_model("Attention", [q, k, v], [], {"is_causal": 1}, opset=23)
    module, results = imported(model, feeds)
    scores = np.matmul(q, k.swapaxes(2, 3)) / np.sqrt(np.float32(8))
    scores[..., np.triu_indices(4, 1)[0], np.triu_indices(4, 1)[1]] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    want = np.matmul(weights / weights.sum(axis=-1, keepdims=True), v)
    np.testing.assert_allclose(results["y0"], want, atol=1e-5)
    assert "tensorop.matmul" in {op.name for op in module.main.ops}


def test_errors_inside_a_function_name_the_call_and_the_inner_op() -> None:
    with pytest.raises(BMError, match=r"'call' \(Cosmic") as caught:
        import_onnx(with_function(scaled("Twice", "Cosmic")))
    assert "no converter" in caught.value.reason
