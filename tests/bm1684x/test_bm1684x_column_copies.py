"""Columns of rows in lanes that are taken and joined: in local memory, with the bits of evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from bm1684x_nets import BM1684X, FULL
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bmcompiler
from bmcompiler.analysis.profile import analysis_of
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder


def swapped(b: Builder, x: Value, at: int) -> Value:
    """The columns from `at` on before the others."""
    *outer, width = x.shape
    first, last = (
        b.slice(x, starts=[0, 0, 0, lo], ends=[*outer, hi], steps=[1] * 4) for lo, hi in ((0, at), (at, width))
    )
    return b.concat(last, first, axis=3)


def rotation(shape: tuple[int, ...], at: int, dtype: str) -> Module:
    """A value and its swapped columns, by sums that other ops make and read."""
    b = Builder.new("net")
    x = b.input("x", TensorType(shape))
    y = b.relu(b.cast(x, dtype=dtype) if dtype != "f32" else x)
    y = b.add(b.mul(y, y), swapped(b, y, at))
    module = b.outputs([b.cast(y, dtype="f32") if dtype != "f32" else y], ["y"])
    verify_module(module)
    return module


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 2), st.integers(1, 150), st.integers(1, 9), st.integers(2, 70), st.integers(1, 69),
    st.sampled_from(("f32", "f16", "bf16")), st.sampled_from((FULL, FULL, 16384)), st.sampled_from((0, 2)),
)  # fmt: skip
@example(1, 512, 16, 128, 64, "f16", FULL, 2)
@example(1, 1, 16, 128, 64, "bf16", FULL, 2)
def test_programs_give_the_bits_of_evaluation(
    n: int, c: int, h: int, w: int, at: int, dtype: str, lanes: int, level: int
) -> None:
    module = rotation((n, c, h, w), min(at, w - 1), dtype)
    x = np.random.default_rng(n + c + h + w).normal(size=(n, c, h, w)).astype(np.float32)
    with BM1684X.local_memory(lanes):
        BM1684X.check(module, inputs={"x": x}, level=level, device=lanes == FULL)


@pytest.mark.parametrize("shape", [(1, 512, 16, 128), (1, 70, 3, 32)])
def test_nothing_of_a_rotation_goes_through_global_memory(shape: tuple[int, ...]) -> None:
    module = rotation(shape, shape[3] // 2, "f32")
    result = bmcompiler.compile_module(module, target="bm1684x", quantize="f16", check="never")
    analysis = analysis_of("bm1684x", result.model)
    assert analysis is not None
    moved = {layer.kind: layer.loaded + layer.stored for layer in analysis.timing().layers}
    assert moved["slice"] == moved["concat"] == 0
