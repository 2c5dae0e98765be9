"""Rows and columns that no window reaches: engines count windows by their steps, so a single one steps over these."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder

SETTINGS = [("bm1684", "f32"), ("bm1684", "int8"), ("bm1684x", "f32"), ("bm1684x", "f16"), ("bm1684x", "int8")]
KINDS = ["conv", "depthwise", "max_pool", "avg_pool"]


def net(kind: str, shape: tuple[int, int, int, int], kernel: tuple[int, int], strides: tuple[int, int]) -> Module:
    b, rng = Builder.new("net"), np.random.default_rng(0)
    x = b.relu(b.input("x", TensorType(shape)))
    if "pool" in kind:
        pool = b.max_pool if kind == "max_pool" else b.avg_pool
        return b.outputs([pool(x, kernel=kernel, strides=strides)], ["y"])
    channels = shape[1]
    size = (channels, 1, *kernel) if kind == "depthwise" else (7, channels, *kernel)
    weight = b.weight(rng.standard_normal(size).astype(np.float32), "w")
    return b.outputs([b.conv(x, weight, strides=strides, group=channels if kind == "depthwise" else 1)], ["y"])


@pytest.mark.parametrize("chip, precision", SETTINGS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "rows, kernel, strides",
    [((6, 2), (2, 1), (1, 2)), ((3, 3), (1, 1), (4, 3)), ((5, 9), (2, 2), (7, 7)), ((20, 20), (2, 2), (19, 19))],
)
def test_rows_behind_a_single_window_are_stepped_over(
    kind: str, rows: tuple[int, int], kernel: tuple[int, int], strides: tuple[int, int], chip: str, precision: str
) -> None:
    module = net(kind, (2, 3, *rows), kernel, strides)
    data = {"x": np.random.default_rng(1).standard_normal((4, 3, *rows)).astype(np.float32)}
    given = {"data": data} if precision == "int8" else {}
    result = bmcompiler.compile_module(module, target=chip, quantize=precision, check="always", **given)
    assert all(row.where == chip for row in result.rows), result.rows
