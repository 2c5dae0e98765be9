"""Means of large windows in two stages, where a chip is faster so: nearly the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.split_means import SplitMeans
from bmcompiler.passmanager import PassContext


def mean(size: tuple[int, int], dtype: str = "f32", **attributes: Any) -> Module:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 24, *size), dtype))
    return b.outputs([b.avg_pool(x, **attributes)], ["y"])


def kernels(module: Module) -> list[tuple[int, int]]:
    """Of the means after the pass."""
    SplitMeans().run(module, PassContext(target=TARGET))
    verify_module(module)
    return [op.kernel for op in module.main.ops if op.short_name == "avg_pool"]


@pytest.mark.parametrize(("size", "kernel"), [((80, 80), (80, 80)), ((60, 40), (30, 40)), ((14, 70), (14, 70))])
def test_means_are_as_exact_as_before(size: tuple[int, int], kernel: tuple[int, int]) -> None:
    module, x = mean(size, kernel=kernel, strides=kernel), np.random.default_rng(2).standard_normal((1, 24, *size))
    inputs = {"x": x.astype(np.float32)}
    (before,) = run_module(module, inputs, target=TARGET).values()
    assert len(kernels(module)) == 2
    (after,) = run_module(module, inputs, target=TARGET).values()
    (down, across), (_, _, h, w) = kernel, after.shape
    exact = inputs["x"].astype(np.float64).reshape(1, 24, h, down, w, across).mean((3, 5))
    assert np.abs(after - exact).max() <= max(np.abs(before - exact).max(), 1e-7)


@pytest.mark.parametrize(
    ("size", "attributes"),
    [
        ((7, 7), {"kernel": (7, 7)}),
        ((80, 1), {"kernel": (80, 1)}),
        ((80, 80), {"kernel": (40, 40), "strides": (20, 40)}),
        ((80, 80), {"kernel": (41, 80), "strides": (41, 80), "pads": (2, 0, 0, 0)}),
    ],
)
def test_what_gains_nothing_or_overlaps_stays(size: tuple[int, int], attributes: dict[str, Any]) -> None:
    assert kernels(mean(size, **attributes)) == [attributes["kernel"]]
