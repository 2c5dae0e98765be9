"""Every compilation to fewer bits with samples says how far it is from float, and warns when that is far."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.quant.table import CalibrationTable, save_table
from bmcompiler.report.data import report_data
from bmcompiler.report.page import page
from bmcompiler.report.summary import layer_tables, summary

CHIPS = ("bm1684", "bm1880")
SAMPLES = np.random.default_rng(3).standard_normal((16, 4, 8, 8)).astype(np.float32)


def two_heads(gain: float) -> Module:
    """A convolution whose last output channel is `gain` times smaller than the others."""
    rng = np.random.default_rng(0)
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 4, 8, 8), "f32"))
    weight = rng.standard_normal((5, 4, 3, 3)).astype(np.float32)
    weight[-1] *= gain
    b.function.set_outputs([b.conv(x, b.weight(weight), pads=(1, 1, 1, 1))], ["y"])
    return b.module


def compiled(module: Module, chip: str, **options: Any) -> bmcompiler.Result:
    return bmcompiler.compile_module(module, target=chip, quantize="int8", data={"x": SAMPLES}, **options)


@pytest.mark.parametrize("chip", CHIPS)
def test_the_error_stands_in_summary_json_and_page(chip: str) -> None:
    result = compiled(two_heads(1.0), chip)
    assert result.accuracy is not None
    (output,) = result.accuracy.outputs
    assert 0 < output.error < 0.02
    assert not result.warnings
    text = summary(result)
    assert f"{output.error:.3%}" in text
    assert "least exact layers" in layer_tables(result)
    data = report_data(result)
    assert json.loads(json.dumps(data))["accuracy"]["outputs"][0]["name"] == "y"
    assert "Difference from float" in page(data)


@pytest.mark.parametrize(("dtype", "most"), [("f16", 1e-3), ("bf16", 1e-2)])
def test_floats_of_16_bits_say_their_error_too(dtype: str, most: float) -> None:
    result = bmcompiler.compile_module(two_heads(1.0), target="bm1684x", quantize=dtype, data={"x": SAMPLES})
    assert result.accuracy is not None
    (output,) = result.accuracy.outputs
    assert most / 100 < output.error < most
    assert f"{output.error:.3%}" in summary(result)


@pytest.mark.parametrize("chip", CHIPS)
def test_a_channel_that_dies_is_a_warning(chip: str) -> None:
    result = compiled(two_heads(1e-4), chip, pipeline=low_only(chip))
    assert any("channel 4 is always the same on the chip" in text for text in result.warnings)


@pytest.mark.parametrize("chip", CHIPS)
def test_a_range_that_is_hardly_used_is_a_warning(chip: str, tmp_path: Path) -> None:
    module = two_heads(1.0)
    save_table(CalibrationTable.of({"x": 4.0, "conv/conv": 4000.0}, "net"), tmp_path / "t.table")
    result = compiled(module, chip, table=tmp_path / "t.table", pipeline=low_only(chip))
    text = "\n".join(result.warnings)
    assert "of its codes" in text
    assert "from float. Remedy: bmnet-accuracy" in text


def test_float_compilations_say_nothing() -> None:
    result = bmcompiler.compile_module(two_heads(1.0), target="bm1684", quantize="f32")
    assert result.accuracy is None


def low_only(chip: str) -> str:
    """The plainest int8 pipeline: nothing that would mend the net."""
    return {
        "bm1684": "canonicalize,calibrate{method=max},quantize{scheme=scale,mode=low,io=integer},dead-code",
        "bm1880": "canonicalize,legalize,calibrate{method=max},quantize{mode=low},dead-code",
    }[chip]
