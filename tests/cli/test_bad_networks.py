"""Networks, samples and tables that cannot be right: one line that names file, layer, reason and remedy."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_files import PROTOTXT, SHAPE, caffemodel, onnx_model, weights
from refusals import CAFFE, OUT, TABLE, Refused, folder, originals, refused

__all__ = ["folder", "originals", "refused"]  # fixtures
SAMPLES = np.random.default_rng(7).normal(0, 1, (4, *SHAPE[1:])).astype(np.float32)


# -- networks ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ('"ReLU"', '"ReLUU"', ["layer 'relu1' (ReLUU)", "not supported; the nearest supported types: ReLU", "Remedy"]),
        (
            "num_output: 3",
            "num_output: 5",
            ["layer 'conv1' (Convolution)", "[3, 2, 3, 3] in net.caffemodel", "[5, 2, 3"],
        ),
        ('bottom: "data"', 'bottom: "dat"', ["layer 'conv1'", "'dat' is written by no layer (did you mean 'data'?)"]),
        ("dim: 2 dim: 6", "dim: 3 dim: 6", ["layer 'conv1' (Convolution)", "expected [3, 3, 3, 3]"]),
        ("input_param { shape { dim: 1 dim: 2 dim: 6 dim: 6 } }", "", ["layer 'data'", "no fixed shape", "--shapes"]),
        ("kernel_size: 2", "kernel_size: 20", ["layer 'pool1' (Pooling)", "does not fit"]),
        ("pool: MAX", "pool: MEDIAN", ["line 10", "takes one of MAX, AVE, STOCHASTIC"]),
    ],
)
def test_caffe_nets_that_cannot_be(old: str, new: str, parts: list[str], refused: Refused, folder: Path) -> None:
    (folder / "bad.prototxt").write_text(PROTOTXT.replace(old, new, 1))
    refused(f"compile bad.prototxt net.caffemodel --target bm1880 {TABLE} {OUT}", 1, "bad.prototxt: ", *parts)


@pytest.mark.parametrize("line", [f"compile net.prototxt {{}} --target bm1880 {TABLE} {OUT}"])
def test_weights_that_cannot_be(line: str, refused: Refused, folder: Path) -> None:
    arrays = weights()
    missing = "net.prototxt: layer 'conv1' (Convolution): has no weights", "Remedy: give the .caffemodel"
    refused(line.format(""), 1, *missing)
    (folder / "w.caffemodel").write_bytes(caffemodel({"conv1": arrays["conv1"]}))
    refused(line.format("w.caffemodel"), 1, "layer 'ip1' (InnerProduct): has no weights in w.caffemodel")
    for value in (np.nan, np.inf):
        broken = {name: [blobs[0] * np.float32(value), blobs[1]] for name, blobs in arrays.items()}
        (folder / "w.caffemodel").write_bytes(caffemodel(broken))
        refused(line.format("w.caffemodel"), 1, "w.caffemodel: layer 'conv1", "numbers of 'conv1.weight' are")


def _no_weight(model: Any) -> None:
    del model.graph.initializer[0]


def _no_tensor(model: Any) -> None:
    model.graph.node[1].input[0] = "nothing"


def _channels(model: Any) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 3


def _unknown(model: Any) -> None:
    model.graph.node[1].op_type = "Reluu"


def _dynamic(model: Any) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (_no_weight, ["layer 'conv1' (Conv", "tensor 'w'"]),
        (_no_tensor, ["layer 'act1' (Relu", "tensor 'nothing'"]),
        (_channels, ["layer 'conv1' (Conv", "3 input channels"]),
        (_unknown, ["layer 'act1' (Reluu", "Remedy"]),
        (_dynamic, ["input 'data'", "dynamic", "--shapes"]),
    ],
)
def test_onnx_nets_that_cannot_be(
    change: Callable[[Any], None], parts: list[str], refused: Refused, folder: Path
) -> None:
    model = onnx_model()
    change(model)
    (folder / "bad.onnx").write_bytes(model.SerializeToString())
    refused(f"compile bad.onnx --target bm1880 --data calib.npz {OUT}", 1, "bad.onnx: ", *parts)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("tensorop.relu", "tensorop.rello", ["bad.mlir: ", "'rello'"]),
        ("1x3x6x6", "1x3x6x7", ["bad.mlir: line "]),
        ('sha256 = "', 'sha256 = "0', ["bad.weights.npz: weight 'conv1", "sha256 differs", "Remedy"]),
        ('key = "conv1', 'key = "x', ["bad.weights.npz: weight 'x", "missing"]),
    ],
)
@pytest.mark.parametrize(
    "line", [f"compile bad.mlir --target bm1880 {TABLE} {OUT}", "opt bad.mlir --pipeline canonicalize -o x.mlir"]
)
def test_ir_text_that_cannot_be(
    line: str, old: str, new: str, parts: list[str], refused: Refused, folder: Path
) -> None:
    shutil.copy("net.weights.npz", "bad.weights.npz")
    (folder / "bad.mlir").write_text((folder / "net.mlir").read_text().replace(old, new, 1))
    refused(line, 1, *parts)


def test_ir_weights_that_are_missing_or_damaged(refused: Refused, folder: Path) -> None:
    shutil.copy("net.mlir", "bad.mlir")
    line = f"compile bad.mlir --target bm1880 {TABLE} {OUT}"
    refused(line, 1, "bad.mlir: its weights file bad.weights.npz does not exist", "keep both files together")
    (folder / "bad.weights.npz").write_text("no zip")
    refused(line, 1, "bad.weights.npz: not a readable weights file")


# -- data and tables --------------------------------------------------------------------------------------------------
DATA = [
    ({"dat": SAMPLES}, ["'data'", "dat"]),
    ({"data": SAMPLES[:, :1]}, ["[4, 1, 6, 6]", "2, 6, 6"]),
    ({"data": SAMPLES[0]}, ["'data'", "[2, 6, 6]"]),
    ({"data": SAMPLES[:0]}, []),
    ({"data": SAMPLES * np.nan}, ["'data'", "NaN"]),
    ({"data": SAMPLES.astype(str)}, ["array 'data' cannot be read", "numbers"]),
    ({"data": SAMPLES.astype(complex)}, ["array 'data' cannot be read", "numbers"]),
    ({"data": np.array([None])}, ["array 'data' cannot be read", "numbers"]),
    ({"data": SAMPLES, "more": SAMPLES}, ["'more'"]),
]


@pytest.mark.parametrize(("arrays", "parts"), DATA)
@pytest.mark.parametrize(
    "line",
    [
        f"compile {CAFFE} {OUT} --data bad.npz",
        "calibrate net.prototxt net.caffemodel --data bad.npz -o x.table",
        "run net.bmodel --data bad.npz -o x.npz",
    ],
)
def test_data_that_cannot_be(line: str, arrays: dict[str, Any], parts: list[str], refused: Refused) -> None:
    np.savez("bad.npz", **arrays)
    refused(line, 1, "bad.npz: ", *parts)


def test_constant_calibration_data_and_fractions_for_raw(refused: Refused) -> None:
    np.savez("bad.npz", data=SAMPLES * 0)
    refused(f"compile {CAFFE} {OUT} --data bad.npz", 1, "bad.npz: array 'data' is constant", "Remedy: use real data")
    refused("run net.bmodel --raw --data calib.npz -o x.npz", 1, "calib.npz: input 'data'", "whole numbers of int8")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("data\n", ["line 1 is no 'name threshold'", "Remedy"]),
        ("data big\n", ["line 1 is no 'name threshold'"]),
        ("# x\ndata -1\n", ["line 2: threshold -1.0 is not a positive number"]),
        ("data nan\n", ["line 1: threshold nan is not a positive number"]),
        ("data 1e300\n", ["line 1: threshold 1e+300 is beyond the range of float32"]),
        ("data 1\ndata 2\n", ["line 2: tensor 'data' occurs twice", "Remedy"]),
        ("name: 'x'\nlayer { name: 3 }", ["line 2"]),
        ("name: 'x'\nlayer { name: 'data' threshold_y: -2 }", ["data", "-2.0 is not a positive number"]),
    ],
)
def test_tables_that_cannot_be(text: str, parts: list[str], refused: Refused, folder: Path) -> None:
    (folder / "bad.table").write_text(text)
    refused(f"compile {CAFFE} {OUT} --calibration-table bad.table", 1, "bad.table: ", *parts)


def test_tables_of_another_network(refused: Refused, folder: Path) -> None:
    (folder / "bad.table").write_text("other 4\n")
    line = f"compile {CAFFE} {OUT} --calibration-table bad.table"
    refused(line, 1, "has a threshold for tensor", "'data'", "Remedy: make the table again")
