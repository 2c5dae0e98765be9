"""The conformance cases of the onnx package: unsupported cases are skipped, every other one gives the expected values.

`python -m bmcompiler.conformance.onnx_suite --reasons` prints the same counts per op, and why cases are skipped.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from bmcompiler.conformance import onnx_backend
from bmcompiler.conformance.onnx_suite import cases, judge
from bmcompiler.errors import UnsupportedError, UsageError


def check(kind: str, least: int) -> None:
    report = judge(list(cases(kind)))
    print(f"{kind}: {report.total} passed, {sum(report.skipped.values())} unsupported")
    assert not report.failed, "\n".join(f"{name}: {text}" for name, text in report.failed.items())
    assert report.total >= least


@pytest.mark.parametrize(("kind", "least"), [("simple", 7), ("pytorch-operator", 35), ("pytorch-converted", 82)])
def test_models_exported_by_pytorch(kind: str, least: int) -> None:
    check(kind, least)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "least"), [("node", 1580), ("light", 9)])
def test_node_cases_and_imagenet_networks(kind: str, least: int) -> None:
    check(kind, least)


def relu_model() -> onnx.ModelProto:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [info("x", onnx.TensorProto.FLOAT, ["n", 2])],
        [info("y", onnx.TensorProto.FLOAT, ["n", 2])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_a_prepared_model_runs_on_inputs_of_any_batch() -> None:
    prepared = onnx_backend.prepare(relu_model())
    for batch in (1, 3):
        x = np.linspace(-1, 1, 2 * batch, dtype=np.float32).reshape(batch, 2)
        (y,) = prepared.run([x])
        np.testing.assert_array_equal(y, np.maximum(x, 0))
        assert prepared.inputs_kept == 1


def test_one_node_runs_with_its_shape_input_folded() -> None:
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    (y,) = onnx_backend.run_node(node, [np.arange(6, dtype=np.float32), np.array([2, -1])])
    assert y.shape == (2, 3)


def test_what_is_not_supported_says_which_op_and_counts_as_skipped() -> None:
    node = helper.make_node("StringConcat", ["x", "x"], ["y"], name="joined")
    with pytest.raises(UnsupportedError, match=r"joined.*StringConcat") as caught:
        onnx_backend.run_node(node, [np.zeros(1, np.float32)])
    assert isinstance(caught.value, onnx_backend.BackendIsNotSupposedToImplementIt)
    with pytest.raises(UnsupportedError, match="sequence"):
        onnx_backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [[np.zeros(1)]])


def test_missing_inputs_and_other_devices_are_refused() -> None:
    with pytest.raises(UsageError, match="1 inputs are needed"):
        onnx_backend.prepare(relu_model()).run([])
    assert not onnx_backend.supports_device("CUDA")
    with pytest.raises(UnsupportedError, match="CUDA"):
        onnx_backend.prepare(relu_model(), "CUDA")
