"""Plans of products of few columns are what their programs take: of kernels, the quicker one is chosen by them."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.target import find_target

THIN = {
    "rows of two": ((1, 4096, 2), (2, 2)),
    "rows of three": ((1, 1024, 3), (3, 2)),
    "few columns of a deep one": ((1, 512, 64), (64, 10)),
    "two rows of many": ((4, 2, 1024), (4, 1024, 2)),
}
MODES = [("bm1684", "f32"), ("bm1684x", "f32"), ("bm1684x", "f16")]


def _product(left: tuple[int, ...], right: tuple[int, ...]) -> Module:
    b = Builder.new("net")
    x = b.input("x", TensorType(left, "f32"))
    if len(right) == 2:
        y = b.weight(np.random.default_rng(0).standard_normal(right).astype(np.float32), "w")
    else:
        y = b.input("y", TensorType(right, "f32"))
    return b.outputs([b.matmul(x, y)], ["z"])


@pytest.mark.parametrize(("chip", "precision"), MODES)
@pytest.mark.parametrize("name", THIN)
def test_a_thin_product_is_planned_as_long_as_it_takes(name: str, chip: str, precision: str) -> None:
    result = bmcompiler.compile_module(_product(*THIN[name]), target=chip, quantize=precision, check="never")
    planned, found = find_target(chip).planned_cycles(result.module.main, 0), estimate(result)
    assert planned is not None
    assert found is not None
    assert 0.75 * found.cycles < planned < 1.6 * found.cycles
