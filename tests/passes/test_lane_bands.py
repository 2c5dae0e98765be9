"""Convolutions of few channels to one, as depthwise ones of bands of rows: nearly the same numbers, in less time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.lane_bands import LaneBands
from bmcompiler.passmanager import PassContext
from bmcompiler.target import find_target
from bmcompiler.testing import check_op

ATTENTION = {"pads": (3, 3, 3, 3)}
CHIPS = ["bm1684", "bm1684x"]


def conv(
    shape: tuple[int, ...], kernel: tuple[int, ...], *, biased: bool = True, gate: bool = False, **attributes: Any
) -> Module:
    b, rng = Builder.new("net"), np.random.default_rng(3)
    x = b.relu(b.input("x", TensorType(shape)))
    weight = b.weight(rng.standard_normal(kernel).astype(np.float32), "w")
    bias = b.weight(rng.standard_normal(kernel[0]).astype(np.float32), "b") if biased else None
    with b.at("conv"):
        y = b.conv(x, weight, bias, **attributes)
    return b.outputs([b.sigmoid(y) if gate else y], ["y"])


def kinds(module: Module, chip: str) -> list[str]:
    """Ops after the pass, weights left out."""
    LaneBands().run(module, PassContext(target=find_target(chip)))
    verify_module(module)
    return [op.short_name for op in module.main.ops if op.operands and op.results]


@pytest.mark.parametrize(
    ("shape", "kernel", "attributes"),
    [
        ((1, 2, 240, 320), (1, 2, 7, 7), ATTENTION),
        ((1, 2, 240, 320), (1, 2, 7, 7), ATTENTION | {"activation": "relu"}),
        ((2, 1, 200, 160), (1, 1, 9, 5), {"pads": (0, 4, 2, 2), "activation": "relu"}),
        ((1, 2, 480, 320), (1, 2, 7, 7), {"strides": (2, 1), "pads": (3, 2, 3, 3), "biased": False}),
        ((1, 2, 208, 200), (1, 2, 5, 5), {"dilations": (3, 2)}),
    ],
)
def test_sums_are_those_of_the_convolution(
    shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    module = conv(shape, kernel, **attributes)
    inputs = {"x": np.random.default_rng(2).standard_normal(shape).astype(np.float32)}
    (before,) = run_module(module, inputs).values()
    made = kinds(module, "bm1684")
    assert made.count("conv") == 1 and "gather" in made and made.count("add") == shape[1] - 1
    (after,) = run_module(module, inputs).values()
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "kernel", "attributes"),
    [
        ((1, 2, 8, 8), (1, 2, 7, 7), ATTENTION),
        ((1, 2, 241, 320), (1, 2, 7, 7), ATTENTION),
        ((1, 2, 240, 320), (8, 2, 7, 7), ATTENTION),
        ((1, 64, 56, 56), (1, 64, 3, 3), {"pads": (1, 1, 1, 1)}),
    ],
)
def test_what_gains_nothing_or_has_no_bands_stays(
    shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    assert kinds(conv(shape, kernel, **attributes), "bm1684") == ["relu", "conv"]


@pytest.mark.parametrize("chip", CHIPS)
def test_maps_of_spatial_attention_take_a_third_of_the_time(chip: str) -> None:
    pipeline = find_target(chip).pipeline("f32", 2)
    assert ",lane-bands" in pipeline
    cycles = []
    for passes in (pipeline, pipeline.replace(",lane-bands", "")):
        module = conv((1, 2, 240, 320), (1, 2, 7, 7), gate=True, **ATTENTION)
        found = estimate(bmcompiler.compile_module(module, target=chip, quantize="f32", pipeline=passes, check="never"))
        assert found is not None and not found.cpu_records
        cycles.append(found.cycles)
    assert 3 * cycles[0] < cycles[1]


@pytest.mark.parametrize("chip", CHIPS)
def test_programs_are_what_the_network_means(chip: str) -> None:
    weight = np.random.default_rng(4).standard_normal((1, 2, 7, 7)).astype(np.float32)
    check_op(
        lambda b, x: b.conv(b.relu(x), b.weight(weight, "w"), **ATTENTION),
        [(1, 2, 240, 320)],
        target=chip,
        quantize="f32",
        seeds=1,
        on_device=False,
    )
