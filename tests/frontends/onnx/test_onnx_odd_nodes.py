"""Nodes with inputs and attributes of the wrong kind, shape or value: they import and run, or one BMError says why."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from test_onnx_numbers import CASES, OUTPUTS

from bmcompiler.errors import BMError
from bmcompiler.frontends.onnx import import_onnx
from bmcompiler.interpreter import run_module
from bmcompiler.ir import verify_module

NODES = 900
OPSETS = (7, 9, 10, 11, 12, 13, 14, 16, 18, 20, 21, 23)
DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int32", "int64", "uint64", "bool")
ODD = (-100, -1, 0, 1, 5, 100, 2.5, "x")


def odd_array(rnd: random.Random, array: np.ndarray | None) -> np.ndarray | None:
    """The array, or another one in its place."""
    if array is None or rnd.random() < 0.1:
        return None if array is not None or rnd.random() < 0.7 else np.zeros((2, 3), rnd.choice(DTYPES))
    changes = (
        lambda: array.astype(rnd.choice(DTYPES)),
        lambda: array.reshape(-1),
        lambda: array[..., None],
        lambda: array[:0] if array.ndim else array,
        array.sum,
        lambda: array if array.dtype.kind in "fb" else array * array.dtype.type(100),
    )
    return np.asarray(rnd.choice(changes)()) if rnd.random() < 0.35 else array


def odd_model(rnd: random.Random) -> tuple[onnx.ModelProto, Mapping[str, np.ndarray]]:
    """One changed node of the table of cases, and the feeds for its inputs."""
    op, inputs, constants, attributes, low = rnd.choice(CASES)
    arrays = [odd_array(rnd, None if value is None else np.asarray(value)) for value in inputs]
    arrays = arrays[: -1 if rnd.random() < 0.1 else None]
    changed = {name: rnd.choice(ODD) if rnd.random() < 0.2 else value for name, value in attributes.items()}
    if rnd.random() < 0.2:
        changed["axis"] = rnd.choice((-3, -1, 0, 1, 2, 5))
    names = ["" if array is None else f"x{i}" for i, array in enumerate(arrays)]
    known = {name: array for name, array in zip(names, arrays) if array is not None}
    everything = rnd.random() < 0.3
    fixed = {name for i, name in enumerate(names) if name and (everything or i in constants)}
    feeds = {name: array for name, array in known.items() if name not in fixed}
    types = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    results = [f"y{i}" for i in range(OUTPUTS.get(op, 1))]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, name="node", **changed)],
        "odd",
        [helper.make_tensor_value_info(name, types[name], array.shape) for name, array in feeds.items()],
        [onnx.ValueInfoProto(name=results[0])],
        [numpy_helper.from_array(known[name], name) for name in fixed],
    )
    opset = rnd.choice([version for version in OPSETS if version >= low or op in OUTPUTS])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), feeds


@pytest.mark.parametrize("seed", range(3))
def test_odd_nodes_run_or_are_reported(seed: int) -> None:
    rnd, ran = random.Random(seed), 0
    for _ in range(NODES // 3):
        model, feeds = odd_model(rnd)
        try:
            module = import_onnx(model)
            verify_module(module)
            run_module(module, {name: feeds[name] for name in module.main.input_names})
            ran += 1
        except BMError as error:
            assert str(error) and "\n" not in str(error)
    assert ran > NODES // 10
