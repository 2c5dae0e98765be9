"""Fully connected layers of many inputs: their weights move at full bandwidth, and what they compute stays."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.profile import analysis_of
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.testing import check_op

CHIPS = ["bm1684", "bm1684x"]


@pytest.mark.parametrize("chip", CHIPS)
def test_a_deep_layer_takes_the_time_of_its_weights(chip: str) -> None:
    """Runs of 64 bytes made it 3.7 times as long on the BM1684X."""
    b = Builder.new("net")
    weight = b.weight(np.ones((6272, 4096), np.float32), "w")
    module = b.outputs([b.matmul(b.input("x", TensorType((1, 6272))), weight)], ["y"])
    result = bmcompiler.compile_module(module, target=chip, quantize="f32", check="never")
    analysis = analysis_of(chip, result.model)
    assert analysis is not None
    timing = analysis.timing()
    assert timing.cycles <= 1.1 * timing.bound


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape, columns", [((1, 2100), 2100), ((3, 3100), 1024), ((2, 2, 2049), 1100)])
def test_deep_products_are_those_of_evaluate(shape: tuple[int, ...], columns: int, transposed: bool, chip: str) -> None:
    sides = (columns, shape[-1]) if transposed else (shape[-1], columns)
    weights = np.random.default_rng(1).standard_normal((*shape[:-2], *sides)).astype(np.float32)
    check_op(
        lambda b, x: b.matmul(x, b.weight(weights, "w"), transpose_right=transposed),
        [shape],
        target=chip,
        quantize="f32",
        seeds=1,
        on_device=False,
    )
