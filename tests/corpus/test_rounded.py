"""Bounds of errors follow the network: where it cancels they are wide, elsewhere as narrow as its type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .checks import CheckError, Trial, near_float
from .graph import Graph
from .rounded import STEPS, bounds, filled_rows, relative_error, too_far


def trial(offset: float, precision: str = "f32") -> Trial:
    """x + offset - offset + 1 / 8."""
    g = Graph(np.random.default_rng(1))
    x = g.input("x", g.random.uniform(-1, 1, (1, 4, 5, 6)).astype(np.float32))
    y = g.add("Sub", g.add("Relu", g.add("Add", x, g.constant(offset))), g.constant(offset))
    g.outputs = [g.add("Add", y, g.constant(0.125))]
    return Trial(g.model(), g.inputs, g.inputs, "bm1684x", precision, 1)


def bound(of: Trial) -> float:
    return next(iter(bounds(of.model, of.batch, of.real, of.precision).values()))


@pytest.mark.parametrize("precision", STEPS)
def test_bounds_grow_with_what_a_network_cancels(precision: str) -> None:
    step = STEPS[precision]
    assert 8 * step <= bound(trial(1, precision)) < 20 * step
    assert 100 * step < bound(trial(100, precision)) < 2000 * step


def test_what_is_too_large_for_a_type_has_no_bound() -> None:
    assert bound(trial(70000, "f16")) == np.inf
    assert bound(trial(70000, "bf16")) < np.inf


def test_no_number_is_no_error_where_roundings_give_none_either() -> None:
    """Infinity less infinity: the compilation warns of it, with the first layer that holds one."""
    asked = trial(70000, "f16")
    nothing: Any = {name: np.full_like(value, np.nan) for name, value in asked.outputs.items()}
    asked.outputs = nothing
    near_float(asked)


def test_an_error_beyond_roundings_is_found() -> None:
    asked = trial(1)
    near_float(asked)
    wrong: Any = {name: value * (1 + 12 * 2.0**-10) for name, value in asked.outputs.items()}
    asked.outputs = wrong
    with pytest.raises(CheckError, match="at most"):
        near_float(asked)


def test_a_list_without_entries_is_its_room_of_minus_ones() -> None:
    wanted, room = np.zeros((0, 3), np.int64), np.full((20, 3), -1, np.int32)
    assert relative_error(filled_rows(room, wanted), wanted) == 0
    room[0] = 0
    assert relative_error(filled_rows(room, wanted), wanted) == np.inf


def test_terms_of_one_sign_are_rounded_alike() -> None:
    """A mean of 2,632 equal numbers is 100 steps off where they are added one by one; one of mixed signs walks."""

    def mean(center: float) -> float:
        g = Graph(np.random.default_rng(1))
        x = g.input("x", (center + g.random.uniform(0.9, 1, (1, 1, 28, 94))).astype(np.float32))
        g.outputs = [g.add("ReduceMean", x, axes=[2, 3])]
        return bound(Trial(g.model(), g.inputs, g.inputs, "bm1684x", "f32", 1))

    assert 2e-5 < mean(0) < 3e-4
    assert mean(-0.92) < 2e-5


def test_what_a_long_sum_means_is_never_too_far() -> None:
    """ONNX Runtime adds a map of 540 x 960 up one by one, and is up to 6e-4 from its mean; a program need not be."""
    g = Graph(np.random.default_rng(1))
    codes = g.random.choice([-0.43, 1.17, 1.61, 3.37], (1, 3, 540, 960), p=[0.02, 0.38, 0.3, 0.3]).astype(np.float32)
    g.outputs = [g.add("GlobalAveragePool", g.input("x", codes))]
    asked = Trial(g.model(), g.inputs, g.inputs, "bm1684x", "f32", 1)
    ((name, summed),) = asked.real.items()
    meant = codes.astype(np.float64).mean((2, 3), keepdims=True).astype(np.float32)
    far = 10 * relative_error(meant, summed)
    assert far > 1e-3
    assert too_far(asked.model, asked.batch, asked.real, {name: meant}, "f32") is None
    assert too_far(asked.model, asked.batch, asked.real, {name: meant * (1 + far)}, "f32") is not None


@pytest.mark.parametrize("axes", [[2, 3], [0, 1, 2, 3]])
def test_it_is_known_what_sums_over_axes_mean(axes: list[int]) -> None:
    g = Graph(np.random.default_rng(1))
    g.outputs = [g.add("ReduceMean", g.input("x", g.random.uniform(0, 1, (2, 3, 4, 5)).astype(np.float32)), axes=axes)]
    asked = Trial(g.model(), g.inputs, g.inputs, "bm1684x", "f32", 1)
    ((name, summed),) = asked.real.items()
    assert too_far(asked.model, asked.batch, asked.real, {name: summed * 1.01}, "f32") is not None
