"""Rows in an order known at compile time: loaded by a gather, with the bits of evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from bm1684x_nets import BM1684X, FULL

import bmcompiler
from bmcompiler.analysis.profile import analysis_of
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder


def ordered(rows: int, width: int, shape: tuple[int, ...], dtype: str, functions: bool = True) -> Module:
    """A gather between functions, or of the input."""
    b = Builder.new("net")
    x = b.input("x", TensorType((rows, width)))
    value = b.cast(b.relu(x), dtype=dtype) if functions and dtype != "f32" else x
    order = np.random.default_rng(rows).integers(-rows, rows, shape).astype(np.int32)
    made = b.gather(value, b.weight(order, "order"))
    made = b.relu(made) if functions else made
    module = b.outputs([b.cast(made, dtype="f32") if made.dtype != "f32" else made], ["y"])
    verify_module(module)
    return module


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize(
    "rows, width, shape, dtype, lanes",
    [
        (196, 96, (196,), "f16", FULL),
        (100, 33, (65,), "f32", FULL),
        (50, 24, (70, 4), "bf16", FULL),
        (300, 32, (1000, 3), "f32", 16384),  # tiles of rows
    ],
)
def test_programs_give_the_bits_of_evaluation(
    rows: int, width: int, shape: tuple[int, ...], dtype: str, lanes: int, level: bmcompiler.Level
) -> None:
    x = np.random.default_rng(1).standard_normal((rows, width)).astype(np.float32)
    with BM1684X.local_memory(lanes):
        BM1684X.check(ordered(rows, width, shape, dtype), inputs={"x": x}, level=level, device=lanes == FULL)


def test_no_row_is_copied_inside_global_memory() -> None:
    """The rows of an input are loaded in their order and stored: once each, little slower than the bus."""
    module = ordered(3136, 96, (3136,), "f32", functions=False)
    result = bmcompiler.compile_module(module, target="bm1684x", quantize="f32")
    analysis = analysis_of("bm1684x", result.model)
    assert analysis is not None
    timing = analysis.timing()
    assert timing.loaded == timing.stored == 3136 * 96 * 4
    assert timing.cycles < 1.2 * (timing.loaded + timing.stored) / 54
