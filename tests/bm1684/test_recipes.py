"""Recipes: close to the functions they stand for, and on the chip bit for bit what evaluation says."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from recipe_cases import CASES, Array, Case
from recipe_chip import record, run_on_chip

from bmcompiler.backends.lanes.recipes import (
    Plane,
    Recorder,
    Register,
    activations,
    exponential,
    logic,
    powers,
    rounding,
    trigonometry,
)
from bmcompiler.errors import EncodingError

SHAPE = (2, 67, 3, 5)


def _samples(case: Case, count: int) -> NDArray[np.float32]:
    """Evenly spread values, both ends, and for wide ranges whole numbers, halves and zeros."""
    random = np.random.default_rng(count)
    values = random.uniform(case.low, case.high, count).astype(np.float32)
    values[:2] = case.low, case.high
    if case.low < 0 and case.high > 3:
        values[2:10] = [0.5, -0.5, 1.5, 2.5, 1.0, -1.0, 3.0, 2.0]
    return values


@pytest.mark.parametrize("name", CASES)
def test_recipe_is_close_to_its_function(name: str) -> None:
    case = CASES[name]
    x = _samples(case, 20000)
    with np.errstate(all="ignore"):
        exact = case.exact(x.astype(np.float64))
    result = record(case.recipe, 1, *case.arguments).evaluate(x)
    assert np.allclose(result, exact, case.relative, case.absolute)


@pytest.mark.parametrize("name", CASES)
def test_commands_compute_what_evaluation_says(name: str) -> None:
    case = CASES[name]
    x = _samples(case, math.prod(SHAPE))
    x[-6:] = np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40
    x = x.reshape(SHAPE)
    steps = record(case.recipe, 1, *case.arguments)
    _same_bits(run_on_chip(steps, x, shape=SHAPE), steps.evaluate(x))
    assert steps.cycles(SHAPE) > 0


def _same_bits(a: Array, b: Array) -> None:
    """Equal bits; of NaN only that it is one (numpy and the chip have no rule for its sign)."""
    both = np.isnan(a) & np.isnan(b)
    assert np.array_equal(np.where(both, 0, a.view(np.int32)), np.where(both, 0, b.view(np.int32)))


def test_edges_of_functions() -> None:
    def of(recipe: Callable[..., Any], *values: float) -> list[float]:
        return record(recipe, 1).evaluate(np.array(values, np.float32)).tolist()

    assert of(exponential.exp, -500, 0, 1000) == [0, 1, math.inf]
    assert of(exponential.log, 0, 1) == [-math.inf, 0]
    assert math.isnan(of(exponential.log, -1)[0])
    assert of(exponential.sigmoid, -500, 0, 500) == pytest.approx([0, 0.5, 1], abs=1e-6)
    assert of(powers.sqrt, 0) == [0]
    assert math.isnan(of(powers.sqrt, -1)[0])
    assert of(exponential.tanh, -50, 0, 50) == pytest.approx([-1, 0, 1], abs=1e-6)
    assert of(activations.softsign, -1e38, 1e38) == pytest.approx([-1, 1], abs=1e-6)
    assert of(trigonometry.atan, -1e38, 1e38) == pytest.approx([-math.pi / 2, math.pi / 2], abs=1e-6)


@pytest.mark.parametrize("method", logic.COMPARISONS)
def test_comparisons(method: str) -> None:
    values = np.array([-np.inf, -1.5, -0.0, 0.0, 1.0, np.inf, np.nan], np.float32)
    a, b = (grid.reshape(1, 1, 7, 7) for grid in np.meshgrid(values, values))
    steps = record(logic.COMPARISONS[method], 2)
    expected = getattr(np, method)(a, b)
    assert np.array_equal(steps.integers(a, b), expected.astype(np.int32))
    _same_bits(run_on_chip(steps, a, b, shape=a.shape), steps.evaluate(a, b))


def test_questions_about_floats() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert record(logic.is_nan, 1).integers(x).tolist() == [1, 0, 0, 0]
    assert record(logic.is_inf, 1, True, True).integers(x).tolist() == [0, 1, 1, 0]
    assert record(logic.is_inf, 1, False, True).integers(x).tolist() == [0, 0, 1, 0]
    assert record(logic.is_inf, 1, False, False).integers(x).tolist() == [0, 0, 0, 0]


def test_power_of_two_tiles() -> None:
    x, y = (g.astype(np.float32) for g in np.meshgrid([-2.5, -1, 0, 0.5, 1, 3], [-3, -2, -0.5, 0, 0.5, 1, 2, 3]))
    steps = record(powers.power, 2)
    with np.errstate(all="ignore"):
        exact = np.power(x, y)
    exact = np.where(np.isinf(exact), np.nan, exact)
    result = steps.evaluate(x, y)
    known = (x != 0) | (y >= 0)
    assert np.allclose(result[known], exact[known], 1e-5, 1e-6, equal_nan=True)


def test_quotients_are_right() -> None:
    random = np.random.default_rng(2)
    a, b = (random.integers(1, 4000, 50000).astype(np.float32) for _ in range(2))
    steps = record(powers.quotient, 2)
    assert np.array_equal(steps.evaluate(a * b, b), a)
    assert np.array_equal(steps.evaluate(a, b), a / b)
    edges = steps.evaluate(*(np.array(v, np.float32) for v in ([1, -1, 5, 0, 1], [0, 0, np.inf, 0, np.nan])))
    assert edges[:3].tolist() == [np.inf, -np.inf, 0]
    assert np.isnan(edges[3:]).all()


@pytest.mark.parametrize("like_dividend", [False, True])
def test_remainders_at_the_edges(like_dividend: bool) -> None:
    values = np.array([-np.inf, -7.25, -2, -0.0, 0, 2, 7.25, np.inf, np.nan], np.float32)
    a, b = np.meshgrid(values, values)
    with np.errstate(all="ignore"):
        exact = np.fmod(a, b) if like_dividend else np.mod(a, b)
    assert np.array_equal(record(powers.remainder, 2, like_dividend).evaluate(a, b), exact, equal_nan=True)


def test_integers_become_floats_exactly() -> None:
    random = np.random.default_rng(0)
    x = random.integers(-(2**31), 2**31, (1, 70, 2, 3)).astype(np.int32)
    steps = record(rounding.int_to_float, 1)
    assert np.array_equal(steps.evaluate(x), x.astype(np.float32))
    _same_bits(run_on_chip(steps, x, shape=x.shape), steps.evaluate(x))


@pytest.mark.parametrize(("bits", "signed"), [(8, True), (8, False), (16, True), (16, False)])
def test_narrow_integers_of_each_slot(bits: int, signed: bool) -> None:
    words = np.random.default_rng(bits).integers(-(2**31), 2**31, (1, 3, 4, 5)).astype(np.int32)
    narrow = words.view(f"{'i' if signed else 'u'}{bits // 8}")
    for slot in range(32 // bits):
        steps = record(rounding.narrow_to_float, 1, bits, signed, slot)
        assert np.array_equal(steps.evaluate(words), narrow[..., slot :: 32 // bits].astype(np.float32))
        _same_bits(run_on_chip(steps, words, shape=words.shape), steps.evaluate(words))


def test_rounding_to_integers_takes_halves_away_from_zero() -> None:
    x = np.array([0.5, -0.5, 1.5, -2.5, 0.49999997, 8388609.0, 127.5, 1e10], np.float32)
    assert record(rounding.round_away_to_int, 1).integers(x).tolist() == [1, -1, 2, -3, 0, 8388609, 128, 2**31 - 1]
    assert record(rounding.quantize, 1, -128.0, 127.0).integers(x).tolist() == [1, -1, 2, -3, 0, 127, 127, 127]


def test_operands_broadcast_through_their_strides() -> None:
    random = np.random.default_rng(1)
    x, row = (random.standard_normal(s).astype(np.float32) for s in (SHAPE, (1, 67, 1, 5)))
    steps = record(lambda m, a, b: m.sub(m.mul(a, b), 2.0), 2)
    result = steps.evaluate(x, row)
    assert np.array_equal(result, x * row - np.float32(2))
    _same_bits(run_on_chip(steps, x, row, shape=SHAPE), result)


def test_sigmoid_by_cells_at_the_ends_of_its_range() -> None:
    """Where the numbers of cells would begin again, and between two cells."""
    x = np.array([-1e30, -16, -15.9376, -15.937, 15.89, 15.9, 15.9376, 16, 1e30, 0.0625, -0.0625], np.float32)
    steps = record(activations.sigmoid_by_cells, 1)
    exact = 1 / (1 + np.exp(-np.maximum(x, -700).astype(np.float64)))
    result = steps.evaluate(x)
    assert np.allclose(result, exact, 0, 1.5e-7)
    assert not result[:3].any() and result[3] > 0
    _same_bits(run_on_chip(steps, x.reshape(1, 11, 1, 1), shape=(1, 11, 1, 1)).reshape(-1), result)


def test_totals_that_are_read_again_are_refused() -> None:
    def read_again(m: Recorder, x: Register) -> Register:
        total = m.add(x, 1.0)
        return m.add(m.mac(total, x, x), total)

    def of_an_input(m: Recorder, x: Register) -> Register:
        return m.mac(x, x, x)

    for recipe in (read_again, of_an_input):
        with pytest.raises(EncodingError, match="is an input or read again after something was added to it"):
            _ = record(recipe, 1).registers


def test_infinite_limits_need_no_command() -> None:
    limits = ((-1.0, 1.0), (-1.0, math.inf), (-math.inf, 1.0))
    assert [len(record(activations.clip, 1, *each).steps) for each in limits] == [2, 1, 1]


def test_planes_are_used_again() -> None:
    steps = record(lambda m, x: m.add(m.mul(m.add(x, 1.0), 2.0), 3.0), 1)
    assert steps.registers == 0
    assert record(exponential.exp, 1).registers <= 3


def test_commands_without_stride_registers_refuse_strides() -> None:
    steps = record(exponential.exp, 1)
    with pytest.raises(EncodingError, match="default layout"):
        record(powers.root, 1).emit(None, SHAPE, [Plane(0, (0, 1, 0, 0))], 4096, [8192] * 3)  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="scratch planes"):
        steps.emit(None, SHAPE, [0], 4096)  # type: ignore[arg-type]
