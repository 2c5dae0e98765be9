"""Whole networks on the BM1684X in f32: the bits of evaluation, near ONNX Runtime, and cycles beside the vendor's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from fetched import third_party

import bmcompiler
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.runtime.simulator.bm1684x.analysis import analyze
from bmcompiler.testing import check_network, random_arrays

MODELS = Path(__file__).resolve().parents[2] / "models"
VENDOR = {"mobilenetv2_160": 617_000, "light_resnet50": 5_010_000}
"""Cycles of the vendor's own programs in f32, by its own profile, which our table of cycles is fitted to."""


def test_lenet_at_every_level() -> None:
    files = MODELS / "lenet/deploy.prototxt", MODELS / "lenet/lenet.caffemodel"
    checked = check_network(*files, target="bm1684x", seeds=1, close=1e-5)
    assert {row.where for row in checked.result.rows} <= {"bm1684x", "view"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "share"), [("mobilenetv2_160", 0.5), ("light_squeezenet", 0), ("vit_64", 0)])
def test_networks(name: str, share: float) -> None:
    path = third_party(f"{name}.onnx")
    checked = check_network(path, target="bm1684x", levels=(2,), seeds=1)
    assert all(row.where != "cpu" for row in checked.result.rows)
    inputs = random_arrays(checked.result.module, 0)
    reference = onnxruntime.InferenceSession(path)
    wanted = reference.run(None, inputs)[0]
    (found,) = checked.result.session().run(inputs).values()
    assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()
    assert not share or analyze(checked.result.model).timing().cycles <= share * VENDOR[name]


@pytest.mark.slow
def test_resnet50_takes_less_than_the_vendors_program() -> None:
    """The products of its layers alone would take 4.29 M cycles; cells of 2 x 2 results take fewer."""
    result = bmcompiler.compile(third_party("light_resnet50.onnx"), target="bm1684x")
    assert analyze(result.model).timing().cycles <= 0.8 * VENDOR["light_resnet50"]


@pytest.mark.parametrize(("precision", "near"), [("f32", 1e-5), ("f16", 2e-3)])
def test_fast_sums_are_near_those_of_the_chip(precision: str, near: float) -> None:
    """Convolutions and a product of matrices, whose numbers are added in any order."""
    b, rng = Builder.new("net"), np.random.default_rng(0)

    def w(*shape: int) -> Value:
        return b.weight((rng.standard_normal(shape) / 10).astype(np.float32), f"w{shape}")

    x = b.conv(b.input("x", TensorType((1, 3, 16, 16))), w(40, 3, 5, 5), w(40), strides=(2, 2))
    x = b.relu(b.conv(x, w(70, 40, 1, 1), w(70)))
    module = b.outputs([b.matmul(b.reshape(x, shape=(1, 70 * 36)), w(70 * 36, 30))], ["y"])
    model = bmcompiler.compile_module(module, target="bm1684x", quantize=precision).model
    inputs = {"x": rng.standard_normal((1, 3, 16, 16)).astype(np.float32)}
    exact, fast = (Session(model, fast=each).run(inputs)["y"] for each in (False, True))
    assert np.abs(exact - fast).max() <= near * np.abs(exact).max()
