"""Weights of 4 and 8 bits in ONNX: as ONNX Runtime computes them, packed where they may be, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import bmcompiler
from bmcompiler.errors import BMError
from bmcompiler.frontends.onnx import import_onnx
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, verify_module
from bmcompiler.ops.layers.weight_only import WeightOnlyMatmul
from bmcompiler.runtime import Session

MICROSOFT = "com.microsoft"


def model(nodes: list[onnx.NodeProto], x: tuple[Any, ...], constants: dict[str, onnx.TensorProto]) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [onnx.ValueInfoProto(name="y")],
        list(constants.values()),
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def agrees(made: onnx.ModelProto, shape: tuple[int, ...]) -> Module:
    """The import of a model, which gives what ONNX Runtime does."""
    x = np.random.default_rng(9).normal(size=shape).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # by its own will it multiplies bytes
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, ["CPUExecutionProvider"])
    (want,) = session.run(None, {"x": x})
    module = import_onnx(made)
    verify_module(module)
    (found,) = run_module(module, {"x": x}).values()
    np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-4 * float(np.abs(want).max()))
    return module


def is_packed(module: Module) -> list[tuple[int, int]]:
    return [(op.bits, op.group_size) for op in module.walk() if isinstance(op, WeightOnlyMatmul)]


def n_bits(
    n: int,
    k: int,
    bits: int,
    size: int,
    zeros: str = "",
    order: np.ndarray | None = None,
    bias: bool = False,
    **more: Any,
) -> onnx.ModelProto:
    """A MatMulNBits; zeros: "" none, "packed", "whole" or "real" floats."""
    rng, blocks = np.random.default_rng(n + k), -(-k // size)
    points = rng.integers(0, 2**bits, (n, blocks), np.uint8)
    arrays: list[np.ndarray | None] = [
        rng.integers(0, 256, (n, blocks, size * bits // 8), np.uint8),
        rng.uniform(0.01, 0.1, (n, blocks)).astype(np.float32),
        None,
        order,
        rng.normal(size=n).astype(np.float32) if bias else None,
    ]
    if zeros == "packed":
        even = np.pad(points, [(0, 0), (0, blocks % 2)])
        arrays[2] = points if bits == 8 else even[:, 0::2] | even[:, 1::2] << np.uint8(4)
    elif zeros:
        arrays[2] = points.astype(np.float32) + (0.25 if zeros == "real" else 0)
    names = [name if array is not None else "" for name, array in zip("wszgb", arrays)]
    node = helper.make_node(
        "MatMulNBits",
        ["x", *names],
        ["y"],
        name="layer",
        domain=MICROSOFT,
        K=k,
        N=n,
        bits=bits,
        block_size=size,
        **more,
    )
    constants = {name: numpy_helper.from_array(a, name) for name, a in zip(names, arrays) if a is not None}
    return model([node], (2, 3, k), constants)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 40), st.integers(1, 150), st.sampled_from((4, 8)), st.sampled_from((16, 32, 64, 128)),
    st.sampled_from(("", "packed", "whole", "real")), st.booleans(),
)  # fmt: skip
def test_products_in_blocks_are_those_of_onnx_runtime(
    n: int, k: int, bits: int, size: int, zeros: str, bias: bool
) -> None:
    if bits == 8 and zeros in ("whole", "real"):
        zeros = "packed"  # the runtime takes floats for 4 bits only
    module = agrees(n_bits(n, k, bits, size, zeros, bias=bias), (2, 3, k))
    assert is_packed(module) == ([] if zeros == "real" else [(bits, size)])


def test_groups_in_another_order_are_computed_as_floats() -> None:
    """Zero points as floats: with packed ones and an order the runtime takes 8 for all of them."""
    order = np.random.default_rng(0).permutation(np.arange(128) // 32).astype(np.int32)
    assert is_packed(agrees(n_bits(20, 128, 4, 32, "whole", order), (2, 3, 128))) == []
    assert is_packed(agrees(n_bits(20, 128, 4, 32, "whole", np.sort(order)), (2, 3, 128))) == [(4, 32)]


@pytest.mark.parametrize(
    "change, words",
    [
        ({"bits": 2}, "weights of 2 bits are not supported"),
        ({"order": np.full(96, 7, np.int32)}, "g_idx must name one of 3 groups"),
        ({"weight_prepacked": 1}, "attribute 'weight_prepacked' is not supported"),
    ],
)
def test_what_is_not_supported_is_said(change: dict[str, Any], words: str) -> None:
    with pytest.raises(BMError, match=words):
        import_onnx(n_bits(**{"n": 20, "k": 96, "bits": 4, "size": 32, **change}))


def test_codes_that_do_not_fit_are_named() -> None:
    made = n_bits(20, 96, 4, 32)
    made.graph.node[0].attribute[1].i = 21
    with pytest.raises(BMError, match=r"layer.*input 1 has shape \[20, 3, 16\], which does not hold \[21, 48\]"):
        import_onnx(made)


KINDS = {
    "int4": (ml_dtypes.int4, -8, 8), "uint4": (ml_dtypes.uint4, 0, 16),
    "int8": (np.int8, -128, 128), "uint8": (np.uint8, 0, 256),
}  # fmt: skip


def blocks(kind: str, way: str, size: int, zero: bool, raw: bool = True) -> onnx.ModelProto:
    """A product by what DequantizeLinear makes; way: which axis blocks are along, and what is between."""
    rng, (n, k), (dtype, low, high) = np.random.default_rng(3), (24, 80), KINDS[kind]
    rows = way in ("transposed", "gemm")  # of outputs
    shape, axis = ((n, k), 1) if rows else ((k, n), 0)
    count = -(-k // size) if size else 1
    steps = ((n, count) if rows else (count, n)) if size else (n,)

    def tensor(name: str, array: np.ndarray) -> onnx.TensorProto:
        made = numpy_helper.from_array(array.astype(dtype) if name != "s" else array, name)
        if not raw and name != "s":
            data = list(made.raw_data)
            made.ClearField("raw_data")
            made.int32_data.extend(data)
        return made

    constants = {
        "w": tensor("w", rng.integers(low, high, shape)),
        "s": tensor("s", rng.uniform(0.01, 0.1, steps).astype(np.float32)),
        **({"z": tensor("z", rng.integers(low, high, steps))} if zero else {}),
    }
    more = {"axis": axis, "block_size": size} if size else {"axis": 1 - axis}
    nodes = [helper.make_node("DequantizeLinear", list(constants), ["d"], **more)]
    if way == "transposed":
        nodes.append(helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]))
    right = "t" if way == "transposed" else "d"
    if way == "gemm":
        nodes.append(helper.make_node("Gemm", ["x", right], ["y"], transB=1))
    else:
        nodes.append(helper.make_node("MatMul", ["x", right], ["y"]))
    return model(nodes, (3, k), constants)


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("way", ["plain", "transposed", "gemm"])
@pytest.mark.parametrize("kind", KINDS)
def test_dequantized_blocks_before_a_product_stay_packed(kind: str, way: str, zero: bool) -> None:
    assert is_packed(agrees(blocks(kind, way, 32, zero), (3, 80))) == [(4 if "4" in kind else 8, 32)]


@pytest.mark.parametrize("kind", ["int4", "uint4"])
def test_one_scale_per_output_is_one_block(kind: str) -> None:
    assert is_packed(agrees(blocks(kind, "plain", 0, True), (3, 80))) == [(4, 80)]


def test_four_bits_in_fields_of_numbers_are_read() -> None:
    assert is_packed(agrees(blocks("int4", "plain", 16, True, raw=False), (3, 80))) == [(4, 16)]


def test_dequantized_blocks_for_other_readers_are_floats() -> None:
    made = blocks("uint4", "plain", 32, True)
    made.graph.node[1].CopyFrom(helper.make_node("Gather", ["d", "i"], ["t"]))
    made.graph.initializer.append(numpy_helper.from_array(np.array([5, 7, 79]), "i"))
    made.graph.node.append(helper.make_node("MatMul", ["x", "d"], ["p"]))
    made.graph.node.append(helper.make_node("Add", ["p", "t"], ["y"]))
    agrees(made, (3, 80))


def test_four_bits_that_others_read_are_refused() -> None:
    made = blocks("int4", "plain", 32, False)
    made.graph.node[0].CopyFrom(helper.make_node("MatMul", ["x", "w"], ["d"]))
    with pytest.raises(BMError, match="'w' is of type int4, which only DequantizeLinear reads"):
        import_onnx(made)


@pytest.mark.parametrize(
    "target, precision", [("bm1684x", "f16"), ("bm1684x", "int8"), ("bm1684", "f32"), ("bm1880", "int8")]
)
def test_a_file_compiles_for_every_chip(tmp_path: Path, target: str, precision: str) -> None:
    made = n_bits(64, 96, 4, 32, "packed", bias=True)
    onnx.save(made, tmp_path / "net.onnx")
    x = np.random.default_rng(1).normal(size=(2, 3, 96)).astype(np.float32)
    calibration = {"data": {"x": x}} if precision == "int8" else {}
    result = bmcompiler.compile(
        str(tmp_path / "net.onnx"), target=target, quantize=precision, check="always", **calibration
    )
    assert all(row.where != "cpu" for row in result.rows)
    assert bool(is_packed(result.module)) == (precision == "f16")
    result.save(tmp_path / "net.bmodel")
    (found,) = Session(tmp_path / "net.bmodel").run({"x": x}).values()
    (want,) = run_module(import_onnx(made), {"x": x}).values()
    assert np.abs(found - want).max() <= 0.1 * np.abs(want).max()
