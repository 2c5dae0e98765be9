"""Models that carry Q/DQ pairs: the pairs go, their scales become thresholds, and no calibration data is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from bmcompiler.api import compile as compile_model
from bmcompiler.frontends.onnx import import_onnx
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.importing.absorb_qdq import AbsorbQdq, stated
from bmcompiler.passmanager import PassContext, Pipeline, run_pipeline

RNG = np.random.default_rng(3)


def qdq_model(scale: float, zero_point: np.generic) -> onnx.ModelProto:
    """conv, relu, max pool, inner product, with pairs as exporters put them; weights quantized per channel."""
    weight, matrix = RNG.integers(-127, 128, (4, 3, 3, 3), np.int8), RNG.integers(-127, 128, (4 * 16, 5), np.int8)
    constants = {
        "s_x": np.float32(0.02), "z_x": np.int8(0), "s": np.float32(scale), "z": zero_point,
        "w": weight, "s_w": np.float32([0.0002, 0.0004, 0.0003, 0.0001]), "z_w": np.zeros(4, np.int8),
        "m": matrix, "s_m": np.float32(0.004), "z_m": np.int8(0), "shape": np.asarray([1, -1]),
        "s_y": np.float32(0.05), "z_y": np.int8(0),
    }  # fmt: skip
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "s_x", "z_x"], ["x_q"]),
        node("DequantizeLinear", ["x_q", "s_x", "z_x"], ["x_d"]),
        node("DequantizeLinear", ["w", "s_w", "z_w"], ["w_d"], axis=0),
        node("Conv", ["x_d", "w_d"], ["c"], pads=[1, 1, 1, 1], name="conv"),
        node("Relu", ["c"], ["r"], name="relu"),
        node("QuantizeLinear", ["r", "s", "z"], ["r_q"]),
        node("MaxPool", ["r_q"], ["p_q"], kernel_shape=[2, 2], strides=[2, 2], name="pool"),
        node("DequantizeLinear", ["p_q", "s", "z"], ["p"]),
        node("Reshape", ["p", "shape"], ["f"]),
        node("DequantizeLinear", ["m", "s_m", "z_m"], ["m_d"]),
        node("MatMul", ["f", "m_d"], ["v"], name="fc"),
        node("QuantizeLinear", ["v", "s_y", "z_y"], ["v_q"]),
        node("DequantizeLinear", ["v_q", "s_y", "z_y"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "qdq",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 5))],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def optimized(model: onnx.ModelProto) -> Module:
    module = import_onnx(model)
    run_pipeline(module, Pipeline.parse("absorb-qdq,canonicalize"), PassContext())
    verify_module(module)
    return module


@pytest.mark.parametrize(
    ("zero_point", "threshold"),
    [(np.int8(0), 128 * 0.01), (np.uint8(0), 255 * 0.01 * 128 / 127), (np.uint8(128), 128 * 0.01)],
)
def test_pairs_become_thresholds_also_around_an_op_that_moves_elements(
    zero_point: np.generic, threshold: float
) -> None:
    module = optimized(qdq_model(0.01, zero_point))
    names = {op.name.removeprefix("tensorop.") for op in module.main.ops}
    assert not {"quantize_linear", "dequantize_linear"} & names
    found = stated(module.main)
    assert found["x"] == pytest.approx(128 * 0.02)
    assert found["v"] == pytest.approx(128 * 0.05)
    assert found["r"] == pytest.approx(threshold) and found["p_q"] == pytest.approx(threshold)


def test_results_differ_only_by_the_rounding_that_is_left_out() -> None:
    model = qdq_model(0.01, np.int8(0))
    feeds = {"x": RNG.uniform(-2, 2, (1, 3, 8, 8)).astype(np.float32)}
    before, after = run_module(import_onnx(model), feeds), run_module(optimized(model), feeds)
    np.testing.assert_allclose(after["y"], before["y"], atol=0.1)


def test_a_quantized_model_compiles_for_bm1880_without_calibration_data(tmp_path: Path) -> None:
    path = tmp_path / "qdq.onnx"
    model = qdq_model(0.01, np.int8(0))
    onnx.save(model, path)
    module = compile_model(path, target="bm1880").module
    assert module.main.arguments[0].dtype == "i8" and module.main.arguments[0].type.quant is not None
    assert module.main.arguments[0].type.quant.scale == pytest.approx(0.02)
    assert "tensorop.conv" in {op.name for op in module.main.ops if op.results and op.result.dtype == "i8"}


def test_pairs_with_different_scales_and_scales_per_channel_stay() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 2, 2, 2)))
    one, two = b.weight(np.float32(0.5), "one"), b.weight(np.float32(0.25), "two")
    many = b.weight(np.float32([0.5, 0.25]), "many")
    y = b.dequantize_linear(b.quantize_linear(x, one, dtype="i8"), two)
    z = b.dequantize_linear(b.quantize_linear(x, many, dtype="i8"), many)
    module = b.outputs([y, z], ["y", "z"])
    before = str(module)
    assert not AbsorbQdq().run(module, PassContext()).modified
    assert str(module) == before and not stated(module.main)


@pytest.mark.parametrize(("chip", "precision"), [("bm1684", "f32"), ("bm1684x", "f16"), ("dv700", "f16")])
def test_floats_say_that_the_integers_of_the_model_are_left_out(tmp_path: Path, chip: str, precision: str) -> None:
    onnx.save(qdq_model(0.05, np.int8(0)), tmp_path / "net.onnx")
    result = compile_model(tmp_path / "net.onnx", target=chip, quantize=precision)
    said = 'they are left out, it is computed in float. quantize="int8" keeps them'
    assert any(said in note for note in result.notes)
    kept = compile_model(tmp_path / "net.onnx", target="bm1684", quantize="int8")
    assert not any("left out" in note for note in kept.notes)
