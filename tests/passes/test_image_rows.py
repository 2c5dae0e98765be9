"""Queries, keys and values of windows lie as their heads are cut from them, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.profile import analysis_of
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ir.keys import IMAGE_ROWS
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target

WIDTH, HEADS = 96, 3


def attention(windows: int = 32, tokens: int = 49, products: int = 3, read: bool = False, dtype: str = "f16") -> Module:
    """Of windows; read: somebody else reads what the products read."""
    b, random = Builder.new("net"), np.random.default_rng(0)

    def weight(*shape: int) -> Value:
        return b.weight((random.standard_normal(shape) / 8).astype(TensorType((), dtype).numpy), "w")

    x = b.relu(b.input("x", TensorType((windows * tokens, WIDTH), dtype)))
    parts = []
    for _ in range(products):
        flat = b.matmul(x, weight(WIDTH, WIDTH), weight(WIDTH))
        cut = b.reshape(flat, shape=(windows, tokens, HEADS, WIDTH // HEADS))
        parts.append(b.permute(cut, order=(0, 2, 1, 3)))
    query, key, value = (*parts, *parts[-1:] * (3 - products))
    mixed = b.matmul(b.softmax(b.matmul(query, key, transpose_right=True), axis=3), value)
    rows = b.reshape(b.permute(mixed, order=(0, 2, 1, 3)), shape=(windows * tokens, WIDTH))
    return b.outputs([b.add(rows, x) if read else rows], ["y"])


def noted(module: Module, target: str = "bm1684x") -> list[int]:
    context = PassContext(target=find_target(target))
    run_pipeline(module, "image-rows", context)
    assert not run_pipeline(module, "image-rows", context)
    return [op.attributes[IMAGE_ROWS] for op in module.main.ops if IMAGE_ROWS in op.attributes]


@pytest.mark.parametrize("products", [2, 3])
def test_products_of_windows_are_noted(products: int) -> None:
    assert noted(attention(products=products)) == [49] * products


@pytest.mark.parametrize(
    "module",
    [
        attention(products=1),  # the operand would be moved in place of the result
        attention(tokens=64, windows=16),  # images fill their lanes
        attention(windows=300),  # more products than one tile has
        attention(tokens=3, windows=200),  # few rows fill few lanes
        attention(read=True),  # others read rows as they lie
    ],
)
def test_others_stay(module: Module) -> None:
    assert not noted(module)


def test_other_targets_have_no_such_layout() -> None:
    assert not noted(attention(), "bm1880")


def test_programs_keep_every_bit_and_are_quicker() -> None:
    cycles = []
    for change in ("", "-image-rows"):
        pipeline = str(find_target("bm1684x").pipeline("f16", 2))
        chosen = ",".join(name for name in pipeline.split(",") if f"-{name}" != change)
        result = bmcompiler.compile_module(
            attention(dtype="f32"), target="bm1684x", quantize="f16", pipeline=chosen, check="always"
        )
        analysis = analysis_of("bm1684x", result.model)
        assert analysis is not None and not analysis.races()
        cycles.append(analysis.timing().cycles)
    assert cycles[0] < 0.95 * cycles[1]
