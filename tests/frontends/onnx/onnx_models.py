"""Builds small ONNX models and compares their import with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bmcompiler.frontends.onnx import import_onnx
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, verify_module

CURRENT = onnx.defs.onnx_opset_version()


def graph_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[Any, ...]],
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 17,
    types: Mapping[str, int] | None = None,
    domains: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model; `inputs` name -> shape (numbers, or text where dynamic), float unless `types` says otherwise.

    `opset` is that of the standard ops, `domains` gives those of others.
    """
    kinds = types or {}
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), shape) for n, shape in inputs.items()],
        [onnx.ValueInfoProto(name=n) for n in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid(name, version) for name, version in {"": opset, **(domains or {})}.items()]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=min(10, onnx.IR_VERSION))
    return onnx.shape_inference.infer_shapes(model)


def op_model(
    op: str,
    inputs: Sequence[np.ndarray | None],
    constants: Sequence[int] = (),
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int = 17,
    outputs: int = 1,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """One node, and the feeds for its inputs that are not in `constants`; None is an absent input."""
    names = ["" if array is None else f"x{i}" for i, array in enumerate(inputs)]
    known = {names[i]: inputs[i] for i in constants}
    feeds = {n: a for n, a in zip(names, inputs) if a is not None and n not in known}
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, name="node", **(attributes or {}))
    types = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in feeds.items()}
    shapes = {n: a.shape for n, a in feeds.items()}
    return graph_model([node], shapes, results, known, opset=opset, types=types), feeds


def imported(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], **options: Any) -> tuple[Module, dict[str, Any]]:
    """The verified module and its outputs on `feeds`."""
    module = import_onnx(model, **options)
    verify_module(module)
    return module, run_module(module, feeds)


def reference(
    model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], *, rewrite: bool = True
) -> dict[str, np.ndarray]:
    """Outputs of ONNX Runtime, which may rewrite the graph before."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    if not rewrite:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds))))


def agree(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], tolerance: float = 1e-5) -> Module:
    """Import and ONNX Runtime give the same names, shapes, types, and values within `tolerance`."""
    module, ours = imported(model, feeds)
    theirs = reference(model, feeds)
    assert list(ours) == list(theirs)
    for name, want in theirs.items():
        got = ours[name]
        assert got.shape == want.shape and got.dtype == want.dtype, (name, got.shape, want.shape, got.dtype)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=name)
    return module
