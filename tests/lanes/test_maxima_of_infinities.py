"""Maxima of windows that hold -inf alone, as the vendors' C models give them: the lowest number of fp32."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.target import find_target

LOWEST = np.finfo(np.float32).min


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize("kind", ["max_pool", "reduce"])
def test_what_is_negative_infinity_alone(kind: str, chip: str) -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 3, 8, 8), "f32"))
    x = b.add(x, x)
    y = b.max_pool(x, kernel=(2, 2), strides=(2, 2)) if kind == "max_pool" else b.reduce(x, method="max", axes=(2, 3))
    module = b.outputs([y], ["y"])
    data = np.full((1, 3, 8, 8), -np.inf, np.float32)
    data[:, 2, 1::2, ::2] = 1
    result = bmcompiler.compile_module(module, target=chip)
    assert not [row for row in result.rows if row.where == "cpu"]
    (y,) = result.run({"x": data}).values()
    (meant,) = run_module(result.module, {"x": data}, target=find_target(chip)).values()
    np.testing.assert_array_equal(y, meant)
    assert (y[:, :2] == LOWEST).all() and (y[:, 2] == 2).all()
