"""The integers of bm1880.md 11.2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmcompiler.passes.quantization.formulas import largest_shift, linear, product_threshold, rescaling, sum_multipliers

ratios = st.floats(1e-6, 200)
thresholds = st.floats(1e-3, 1e3)


@pytest.mark.parametrize(
    ("ratio", "limit", "expected"),
    [
        (1.39003 / 2.22406, 255, (160, 8)),  # vendor: pooling
        (3.76546 / 3.56166, 255, (135, 7)),  # vendor: pooling
        (1.0, 127, (64, 6)),  # vendor: leaky relu, positive side
        (0.1, 127, (102, 10)),  # vendor: leaky relu, negative side of slope 0.1
        (1 / 9, 255, (228, 11)),  # 3x3 mean between equal thresholds
        (1000.0, 255, (255, 0)),
        (0.0, 255, (0, 31)),
    ],
)
def test_published_multipliers(ratio: float, limit: int, expected: tuple[int, int]) -> None:
    assert rescaling(ratio, limit) == expected


def test_vendor_average_pooling_constant() -> None:
    """A 3x3 mean was seen as 248 >> 10: the thresholds' ratio must then be near 248 * 9 / 1024."""
    assert rescaling(248 / 1024 * 9 / 9) == (248, 10)


@given(ratios)
def test_rescaling_is_as_fine_as_eight_bits_allow(ratio: float) -> None:
    multiplier, shift = rescaling(ratio)
    assert 0 <= multiplier <= 255 and 0 <= shift <= 31
    assert abs(multiplier / 2**shift - ratio) <= 0.5 / 2**shift
    assert shift == 31 or multiplier >= 127


@given(st.lists(st.floats(-100, 100).filter(lambda r: abs(r) > 1e-3), min_size=1, max_size=6))
def test_sums_stay_in_sixteen_bits_until_the_last_term(terms: list[float]) -> None:
    multipliers, shift = sum_multipliers(terms)
    assert max(map(abs, multipliers)) <= 127 and 0 <= shift <= 15
    if max(map(abs, terms)) * max(1, len(terms) - 1) < 100:
        assert sum(abs(m) for m in multipliers[:-1]) * 128 <= 32767
        for m, ratio in zip(multipliers, terms):
            assert abs(m / 2**shift - ratio) <= 0.5 / 2**shift


@given(thresholds, thresholds, thresholds)
def test_a_product_is_a_shift_away(left: float, right: float, wanted: float) -> None:
    threshold, shift = product_threshold(left, right, wanted)
    assert threshold == pytest.approx(left * right / 128 * 2**shift)
    assert threshold >= wanted * (1 - 1e-6) or shift == 31
    assert shift == 0 or threshold < 2 * wanted * (1 + 1e-6)


@given(st.integers(0, 2**32 - 1), thresholds, thresholds, st.floats(1e-4, 10), st.floats(0, 100))
def test_the_shift_is_the_largest_that_fits(seed: int, tx: float, ty: float, size: float, bias_size: float) -> None:
    random = np.random.default_rng(seed)
    weight, bias = random.normal(0, size, (4, 3)), random.normal(0, bias_size, 4)
    ints = linear(weight, bias, tx, ty)
    assert ints.bias is not None and ints.threshold >= ty
    assert np.abs(ints.weight.astype(int)).max() <= 127 and 0 <= ints.shift <= 31
    factor = tx / ints.threshold * 2.0**ints.shift
    np.testing.assert_array_equal(ints.weight, np.floor(weight * factor + 0.5))
    np.testing.assert_array_equal(ints.bias, np.floor(bias * 128 / ints.threshold * 2.0**ints.shift + 0.5))
    if ints.shift < 31:
        more_weight = np.floor(np.abs(weight).max() * factor * 2 + 0.5)
        more_bias = np.floor(np.abs(bias).max() * 256 / ints.threshold * 2.0**ints.shift + 0.5)
        assert more_weight > 127 or more_bias > 32767
    np.testing.assert_allclose(ints.weight * ints.weight_scale, weight, atol=ints.weight_scale)
    np.testing.assert_allclose(ints.bias * ints.bias_scale, bias, atol=ints.bias_scale)


def test_weights_without_a_large_bias_use_seven_bits() -> None:
    ints = linear(np.array([[0.3, -0.2]]), np.array([0.01]), 4.0, 5.0)
    assert 64 <= np.abs(ints.weight.astype(int)).max() <= 127


def test_weights_too_large_for_shift_0_raise_the_threshold() -> None:
    ints = linear(np.array([[1000.0]]), None, 10.0, 1.0)
    assert ints.shift == 0 and ints.threshold == 128.0 and ints.bias is None


def test_zero_weights_need_no_shift() -> None:
    ints = linear(np.zeros((2, 2)), np.zeros(2), 1.0, 1.0)
    assert ints.shift == 0 and not ints.weight.any()


def test_largest_shift_counts_the_rounding() -> None:
    assert largest_shift(127.4, 127) == 0 and largest_shift(127.6, 127) == -1
