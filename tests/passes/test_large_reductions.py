"""Reductions of more elements than a tile holds are made of pieces, on the chip, and mean the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target
from bmcompiler.testing import check_op

LARGE = (1, 2, 66000)
"""More elements than the fields of a chip count, on top of what a tile holds."""
CASES: dict[str, Callable[[Builder, Value], Value]] = {
    **{
        method: lambda b, x, method=method: b.reduce(x, method=method, axes=(2,))
        for method in ("sum", "mean", "max", "min", "l1", "sum_square")
    },
    "mean over an axis before": lambda b, x: b.reduce(b.reshape(x, shape=(1, 66000, 2)), method="mean", axes=(1,)),
    "mean without axes": lambda b, x: b.reduce(
        b.reshape(x, shape=(1, 2, 300, 220)), method="mean", axes=(2, 3), keepdims=False
    ),
    "mvn": lambda b, x: b.mean_variance_norm(x, axes=(2,), epsilon=1e-5),
    "centred": lambda b, x: b.mean_variance_norm(x, axes=(1, 2), normalize_variance=False),
    "l2": lambda b, x: b.l2_normalize(x, axes=(2,), epsilon=1e-9),
    "layer norm": lambda b, x: b.layer_norm(x, _vector(b, 1), _vector(b, 2), axis=2, epsilon=1e-3),
    "rms norm": lambda b, x: b.rms_norm(x, _vector(b, 1), axis=2),
}


def _vector(b: Builder, seed: int) -> Value:
    return b.weight(np.random.default_rng(seed).uniform(0.5, 2, LARGE[2]).astype(np.float32), "v")


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize("name", CASES)
def test_any_size_runs_on_the_chip(name: str, chip: str) -> None:
    """The bits of `evaluate`, and near the op's meaning."""
    check_op(CASES[name], [LARGE], target=chip, quantize="f32", seeds=1, levels=(2,), close=1e-4)


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_differences_from_a_mean_stay_f32(precision: str) -> None:
    """Values around 100 that spread by 1: a mean rounded to 8 or 11 bits would shift the result."""

    b = Builder.new("net")
    weight = b.weight(np.ones((1, 1, 1, 1), np.float32), "w")
    x = b.conv(b.input("x", TensorType((2, 1, 300, 220))), weight, b.weight(np.full(1, 100, np.float32), "o"))
    module = b.outputs([b.mean_variance_norm(x, axes=(2, 3), epsilon=1e-5)], ["y"])
    context = PassContext(target=find_target("bm1684x"))
    assert run_pipeline(module, f"legalize{{form=same}},half-precision{{dtype={precision}}}", context)
    wide = [op for op in module.main.ops if op.short_name in ("sub", "reduce", "mul", "div", "sqrt")]
    assert wide and all(op.results[0].type.dtype == "f32" for op in wide)


@pytest.mark.parametrize(
    "shape, axes",
    [((1, 2, 4096), (2,)), ((1, 65537, 2), (1,)), ((300, 2, 300), (0, 2))],
    ids=["few", "prime", "apart"],
)
def test_others_stay(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Few elements, a prime number of them, axes with another between."""
    b = Builder.new("net")
    x = b.input("x", TensorType(shape))
    module = b.outputs([b.mean_variance_norm(x, axes=axes)], ["y"])
    run_pipeline(module, "legalize{form=same}", PassContext(target=find_target("bm1684x")))
    assert "mean_variance_norm" in [op.short_name for op in module.main.ops]
