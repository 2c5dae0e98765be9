"""Caffe nets that are quantized already, with the vendor's table: their integers reach the chip as they are."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

sys.path.extend(str(Path(__file__).parents[1] / "frontends" / kind) for kind in ("caffe", "onnx"))
from caffe_nets import Arrays, header, layer, save
from onnx_models import graph_model

from bmcompiler.driver import Options, Result, compile_network
from bmcompiler.errors import CalibrationError
from bmcompiler.ir import Operation
from bmcompiler.quant.table import CalibrationTable, LayerEntry, save_table
from bmcompiler.target import find_target

IP = "inner_product_param {{ num_output: {} }}"
LENET = (
    header((1, 1, 12, 12))
    + layer("Convolution", "convolution_param { num_output: 6 kernel_size: 3 }", "conv1", "data", "conv1")
    + layer("ReLU", "", "relu1", "conv1", "conv1")
    + layer("Pooling", "pooling_param { pool: MAX kernel_size: 2 stride: 2 }", "pool1", "conv1", "pool1")
    + layer("InnerProduct", IP.format(16), "ip1", "pool1", "ip1")
    + layer("ReLU", "", "relu2", "ip1", "ip1")
    + layer("InnerProduct", IP.format(10), "ip2", "ip1", "ip2")
)
SHAPES = {"conv1": (6, 1, 3, 3), "ip1": (16, 150), "ip2": (10, 16)}
THRESHOLDS = {"data": 1.0, "conv1": 2.22406, "pool1": 1.39003, "ip1": 3.56166, "ip2": 5.5}
READS = {"conv1": "data", "ip1": "pool1", "ip2": "ip1"}


def float_weights() -> dict[str, Arrays]:
    random = np.random.default_rng(5)
    return {
        name: [random.normal(0, 0.3, shape).astype(np.float32), random.normal(0, 0.2, shape[0]).astype(np.float32)]
        for name, shape in SHAPES.items()
    }


def integers(weights: dict[str, Arrays]) -> tuple[dict[str, Arrays], CalibrationTable]:
    """The vendor's integers and table (bm1880.md 11.2)."""
    found: dict[str, Arrays] = {}
    shifts: dict[str, int] = {}
    for name, (w, b) in weights.items():
        tx, ty = THRESHOLDS[READS[name]], THRESHOLDS[name]
        r = shifts[name] = int(np.floor(np.log2(127.49 / (np.abs(w).max() * tx / ty))))
        found[name] = [np.floor(w * (tx / ty) * 2.0**r + 0.5), np.floor(b * (128 / ty) * 2.0**r + 0.5)]
    entries = [LayerEntry(name, (t,), right_shift_width=shifts.get(name)) for name, t in THRESHOLDS.items()]
    return found, CalibrationTable("lenet", tuple(entries))


def compiled(folder: Path, weights: dict[str, Arrays], table: CalibrationTable, pipeline: str | None = None) -> Result:
    folder.mkdir(exist_ok=True)
    save_table(table, folder / "table.pb2")
    options = Options(target="bm1880", table=folder / "table.pb2", pipeline=pipeline, name="lenet")
    return compile_network(*save(folder, LENET, weights), options)


def layer_op(found: Result, name: str) -> Operation:
    """The convolution or matrix product of a layer; what it reads has the threshold of the table."""
    op = next(op for op in found.module.main.ops if op.location == (name,) and op.short_name in ("conv", "matmul"))
    quant = op.operands[0].type.quant
    assert quant is not None and quant.threshold == pytest.approx(THRESHOLDS[READS[name]])
    return op


def test_integer_weights_and_float_weights_become_the_same_program(tmp_path: Path) -> None:
    real = float_weights()
    quantized, table = integers(real)
    found = compiled(tmp_path / "integers", quantized, table)
    for name, (w, b) in quantized.items():
        op = layer_op(found, name)
        weight, bias = (found.module.weights[value.op.attributes["key"]] for value in op.operands[1:] if value.op)
        assert sorted(weight.ravel()) == sorted(np.asarray(w).ravel()) and (bias.ravel() == b).all()
        assert op.attributes["rshift"] == next(e.right_shift_width for e in table.layers if e.name == name)
    assert any("integers already" in note for note in found.notes)
    strict = find_target("bm1880").pipeline("int8", 2).replace(",quantize,", ",quantize{strict_table=true},")
    expected = compiled(tmp_path / "real", real, table, strict)
    assert not any("integers already" in note for note in expected.notes)
    assert [command.cmdbuf for command in found.model.commands] == [one.cmdbuf for one in expected.model.commands]
    assert [bytes(one) for one in found.model.weights] == [bytes(one) for one in expected.model.weights]


def test_a_smaller_shift_of_the_table_is_kept(tmp_path: Path) -> None:
    quantized, table = integers(float_weights())
    weight, bias = quantized["ip2"]
    quantized["ip2"] = [np.floor(np.asarray(weight) / 4), bias]  # no largest shift any more
    found = compiled(tmp_path, quantized, table)
    op = layer_op(found, "ip2")
    key = next(value.op.attributes["key"] for value in op.operands[1:] if value.op)
    assert sorted(found.module.weights[key].ravel()) == sorted(quantized["ip2"][0].ravel())


def test_a_table_without_shifts_is_refused(tmp_path: Path) -> None:
    quantized, table = integers(float_weights())
    bare = replace(table, layers=tuple(replace(entry, right_shift_width=None) for entry in table.layers))
    with pytest.raises(CalibrationError, match=r"layer 'conv1'.*no right_shift_width"):
        compiled(tmp_path, quantized, bare)


def plugin_elu(codes: np.ndarray, alpha: float, tx: float, ty: float) -> np.ndarray:
    """int8 by the arithmetic of the vendor's public ELU plug-in: its cast to int cuts off."""
    reals = np.float32(codes) * np.float32(tx) / np.float32(128)
    results = np.float32(np.maximum(reals, 0) + alpha * (np.exp(np.minimum(reals, 0, dtype=np.float64)) - 1))
    return np.clip(np.trunc(np.float64(results * np.float32(128) / np.float32(ty)) + 0.5), -128, 127)


def with_elu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The net as the vendor's example of customized layers has it, with an ELU as the last layer."""
    elu = layer("ELU", "elu_param { alpha: 0.1 }", "customized2", "ip2", "customized2")
    monkeypatch.setattr(sys.modules[__name__], "LENET", LENET + elu)
    monkeypatch.setitem(THRESHOLDS, "customized2", 5.0)


def test_an_elu_is_rounded_as_the_vendors_plugin_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_elu(monkeypatch)
    weights, table = integers(float_weights())
    found = compiled(tmp_path, weights, table)
    lut = next(op for op in found.module.main.ops if op.short_name == "lut")
    entries = found.module.weights[next(v.op.attributes["key"] for v in lut.operands[1:] if v.op)]
    codes = np.arange(256).astype(np.uint8).view(np.int8)
    wanted = plugin_elu(codes, 0.1, THRESHOLDS["ip2"], THRESHOLDS["customized2"])
    assert (entries == wanted).all() and wanted[255] == 0 and wanted[128] == -2
    bare = replace(table, layers=tuple(replace(entry, right_shift_width=None) for entry in table.layers))
    rounded = compiled(tmp_path / "real", float_weights(), bare)  # a table without integers: to the nearest
    lut = next(op for op in rounded.module.main.ops if op.short_name == "lut")
    nearest = rounded.module.weights[next(v.op.attributes["key"] for v in lut.operands[1:] if v.op)]
    assert set(np.unique(nearest - wanted)) == {-1, 0} and (nearest[:128] == wanted[:128]).all()


def twin(weights: dict[str, Arrays]) -> onnx.ModelProto:
    """The net in ONNX as Caffe2's exporter names it: NAME_VERSION, a new version for a layer in place."""
    constants = {
        f"{name}_{part}_0": np.float32(array) for name, pair in weights.items() for part, array in zip("wb", pair)
    }
    constants["flat_0"] = np.array([1, 150], np.int64)
    square = {"kernel_shape": [2, 2], "strides": [2, 2]}
    node = onnx.helper.make_node
    nodes = [
        node("Conv", ["data_0", "conv1_w_0", "conv1_b_0"], ["conv1_1"]),
        node("Relu", ["conv1_1"], ["conv1_2"]),
        node("MaxPool", ["conv1_2"], ["pool1_1"], **square),
        node("Reshape", ["pool1_1", "flat_0"], ["OC2_DUMMY_0"]),
        node("Gemm", ["OC2_DUMMY_0", "ip1_w_0", "ip1_b_0"], ["ip1_1"], transB=1),
        node("Relu", ["ip1_1"], ["ip1_2"]),
        node("Gemm", ["ip1_2", "ip2_w_0", "ip2_b_0"], ["ip2_1"], transB=1),
        node("Elu", ["ip2_1"], ["customized2_1"], alpha=0.1),
    ]
    return graph_model(nodes, {"data_0": (1, 1, 12, 12)}, ["customized2_1"], constants)


@pytest.mark.parametrize("quantized", [True, False])
def test_the_onnx_twin_becomes_the_same_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quantized: bool
) -> None:
    with_elu(monkeypatch)
    weights, table = integers(float_weights())
    wanted = compiled(tmp_path, weights, table)
    onnx.save(twin(weights if quantized else float_weights()), tmp_path / "twin.onnx")
    strict = find_target("bm1880").pipeline("int8", 2).replace(",quantize,", ",quantize{strict_table=true},")
    options = Options(target="bm1880", table=tmp_path / "table.pb2", pipeline=None if quantized else strict)
    found = compile_network(tmp_path / "twin.onnx", None, options)
    assert [one.cmdbuf for one in found.model.commands] == [one.cmdbuf for one in wanted.model.commands]
    assert [bytes(one) for one in found.model.weights] == [bytes(one) for one in wanted.model.weights]


def test_versions_of_blobs_need_a_table_without_them(tmp_path: Path) -> None:
    onnx.save(twin(float_weights()), tmp_path / "twin.onnx")
    save_table(CalibrationTable.of({"data_0": 1.0, "conv1": 2.0}), tmp_path / "table.pb2")
    with pytest.raises(CalibrationError, match=r"no threshold|has a threshold for tensor 'conv1_"):
        compile_network(tmp_path / "twin.onnx", None, Options(target="bm1880", table=tmp_path / "table.pb2"))
