"""pytest examples/custom_layer: what the chips compute is what our functions say."""

from __future__ import annotations

from typing import Any

import pytest

from bmcompiler import testing

SHAPES = list(testing.random_shapes(4, (1, 3), (1, 70), (1, 40), (1, 33)))


@pytest.mark.parametrize("shape", SHAPES)
def test_abs_diff_on_the_bm1880(shape: tuple[int, ...]) -> None:
    def make(b: Any, x: Any, y: Any) -> Any:
        return b.customized(x, y, sub_type="AbsDiff", f32_params=[0.5], output_shapes=[shape])

    testing.check_op(make, [shape, shape], target="bm1880", close=0.05)


@pytest.mark.parametrize("shape", SHAPES)
def test_soft_gate_on_the_bm1684(shape: tuple[int, ...]) -> None:
    testing.check_op(lambda b, x, g: b.soft_gate(x, g, alpha=2.0), [shape] * 2, target="bm1684", close=1e-5)


@pytest.mark.parametrize("target", ["bm1880", "bm1684"])
def test_sort_rows_runs_on_the_host_of_any_chip(target: str) -> None:
    def make(b: Any, x: Any) -> Any:
        return b.customized(x, sub_type="SortRows", output_shapes=[x.shape])

    testing.check_op(make, [(2, 3, 4, 5)], target=target, on_device=False)
