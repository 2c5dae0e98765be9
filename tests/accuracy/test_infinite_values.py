"""Infinite numbers inside of a net (masks, padding before maxima) count as no error, and nothing is said of them.

But where outputs are no numbers because the chip's floats end too early, that is a warning.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bmcompiler
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.report.summary import summary

SAMPLES = np.random.default_rng(3).standard_normal((8, 4, 8, 8)).astype(np.float32)
SEEN = np.arange(8) % 3 > 0


def masked(b: Builder, x: Value) -> Value:
    """Every third column is the lowest there is."""
    lowest = b.weight(np.full((1, 4, 8, 8), -np.inf, np.float32))
    kept: Value = b.where(b.weight(np.broadcast_to(SEEN, (1, 4, 8, 8))), x, lowest)
    return kept


def padded(b: Builder, x: Value) -> Value:
    """Columns of the lowest there is on both sides."""
    around: Value = b.pad(x, pads=(0, 0, 0, 0, 0, 0, 1, 1), value=-np.inf)
    return around


def net(ends: Callable[[Builder, Value], Value]) -> Module:
    """A convolution, what makes infinite numbers of it, maxima over columns, and a product."""
    rng = np.random.default_rng(0)
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 4, 8, 8), "f32"))
    weight, factors = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 4, 3, 3), (8, 5)))
    found = b.reduce(ends(b, b.conv(x, b.weight(weight), pads=(1, 1, 1, 1))), method="max", axes=(3,), keepdims=False)
    b.function.set_outputs([b.matmul(found, b.weight(factors))], ["y"])
    return b.module


@pytest.mark.parametrize("ends", [masked, padded])
@pytest.mark.parametrize("chip", ["bm1684", "bm1684x", "bm1880"])
def test_infinite_numbers_count_as_no_error(chip: str, ends: Callable[[Builder, Value], Value]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        result = bmcompiler.compile_module(net(ends), target=chip, quantize="int8", data={"x": SAMPLES})
    assert result.accuracy is not None
    assert result.accuracy.outputs[0].error < 0.05
    assert all(np.isfinite(layer.sqnr) for layer in result.accuracy.worst)


def beyond_halves(gain: float) -> Module:
    """Sums of a convolution `gain` times larger than usual, brought back to their size behind it."""
    rng = np.random.default_rng(0)
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 4, 8, 8), "f32"))
    weight = gain * rng.standard_normal((4, 4, 3, 3)).astype(np.float32)
    with b.at("large"):
        large = b.conv(x, b.weight(weight), pads=(1, 1, 1, 1))
    with b.at("small"):
        small = b.mul(b.relu(large), b.weight(np.full((1, 4, 1, 1), 1 / gain, np.float32)))
    b.function.set_outputs([small], ["y"])
    return b.module


@pytest.mark.parametrize(
    ("chip", "precision", "data"),
    [
        ("dv700", "f16", None),
        ("dv700", "f16", {"x": SAMPLES}),
        ("dv700", "int8", None),
        ("dv700", "int8", {"x": SAMPLES}),
        ("bm1684x", "f16", None),  # with samples such layers stay in f32 there
    ],
)
def test_outputs_that_are_no_numbers_where_float_has_some_are_a_warning(
    chip: str, precision: str, data: dict[str, np.ndarray] | None
) -> None:
    result = bmcompiler.compile_module(beyond_halves(15000.0), target=chip, quantize=precision, data=data, check=1)
    (warning,) = result.warnings
    assert "output 'y' holds NaN or infinity (first in layer '" in warning
    assert chip != "bm1684x" or "'large" in warning
    assert "numbers in float" in warning
    assert "Remedy" in warning
    quiet = bmcompiler.compile_module(beyond_halves(1.0), target=chip, quantize=precision, data=data, check=1)
    assert not quiet.warnings


def test_samples_keep_in_f32_what_f16_does_not_hold() -> None:
    data = {"x": SAMPLES}
    result = bmcompiler.compile_module(beyond_halves(15000.0), target="bm1684x", quantize="f16", data=data, check=1)
    assert not result.warnings
    assert result.accuracy is not None
    assert result.accuracy.outputs[0].error < 1e-3


@pytest.mark.parametrize("precision", ["f16", "int8"])
def test_a_chip_of_16_bit_floats_is_compared_with_float_on_samples(precision: str) -> None:
    data = {"x": SAMPLES}
    result = bmcompiler.compile_module(beyond_halves(1.0), target="dv700", quantize=precision, data=data)
    assert result.accuracy is not None
    assert 0 < result.accuracy.outputs[0].error < 0.02


def logarithm() -> Module:
    b = Builder.new("net")
    with b.at("log"):
        found = b.log(b.input("x", TensorType((1, 4, 8, 8), "f32")))
    b.function.set_outputs([found], ["y"])
    return b.module


@pytest.mark.parametrize(
    ("chip", "precision"), [("dv700", "f16"), ("bm1684x", "f16"), ("bm1684x", "f32"), ("bm1684", "f32")]
)
def test_samples_that_float_makes_no_numbers_of_are_a_warning(chip: str, precision: str) -> None:
    result = bmcompiler.compile_module(logarithm(), target=chip, quantize=precision, data={"x": SAMPLES}, check=1)
    (warning,) = result.warnings
    assert "output 'y' holds NaN or infinity (first in layer 'log')" in warning
    assert "as in float. Remedy: check that the data are prepared as the network expects" in warning


def test_reports_of_what_is_no_number_are_json_and_readable(tmp_path: Path) -> None:
    data = {"x": SAMPLES}
    result = bmcompiler.compile_module(beyond_halves(15000.0), target="dv700", quantize="f16", data=data, check="never")
    result.report(tmp_path / "r.json")
    found = json.loads((tmp_path / "r.json").read_text(), parse_constant=pytest.fail)
    assert found["accuracy"]["outputs"][0]["error"] is None
    assert "y no number from float" in summary(result, width=200)


def test_what_is_no_number_in_float_either_is_no_warning() -> None:
    b = Builder.new("net")
    b.function.set_outputs([b.log(b.input("x", TensorType((1, 4, 8, 8), "f32")))], ["y"])
    result = bmcompiler.compile_module(b.module, target="bm1684x", quantize="f16", check=1)
    assert result.checked is not None
    assert result.checked.samples == 1
    assert not result.warnings
