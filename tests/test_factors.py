"""Factors as multipliers and shifts, and integers times them, against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmcompiler.numeric import factors
from bmcompiler.numeric.rounding import Rounding, shift_right

I32 = st.integers(-(1 << 31), (1 << 31) - 1)
MULTIPLIERS = st.integers(0, factors.MOST_MULTIPLIER)
SHIFTS = st.integers(0, factors.MOST_SHIFT)
LIMITS = {"i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767)}


@given(I32, MULTIPLIERS, SHIFTS, st.sampled_from(sorted(LIMITS)), st.integers(-128, 255))
def test_one_rounding_to_the_nearest_even_number(x: int, m: int, s: int, dtype: str, zero: int) -> None:
    low, high = LIMITS[dtype]
    exact = min(max(round(Fraction(x * m, 1 << s)) + zero, low), high)
    assert factors.requantize(np.array([x], np.int32), np.array([m]), np.array([s]), dtype, zero)[0] == exact


@given(st.lists(st.tuples(I32, MULTIPLIERS, SHIFTS), min_size=1, max_size=20))
def test_it_is_the_shift_of_the_chip(rows: list[tuple[int, int, int]]) -> None:
    x, m, s = (np.array(column, np.int64) for column in zip(*rows))
    shifted = np.clip(shift_right(x * m, s, Rounding.HALF_EVEN), -(1 << 31), (1 << 31) - 1)
    np.testing.assert_array_equal(factors.requantize(x, m, s, "i32"), shifted)


@given(st.floats(2.0**-21, 2.0**30, width=32))
def test_a_float32_factor_is_exact(factor: float) -> None:
    (row,) = factors.apart(factor)
    assert Fraction(int(row[0]), 1 << int(row[1])) == Fraction(factor)


@given(st.floats(2.0**-13, 2.0**30))
def test_any_other_factor_is_off_by_less_than_a_part_in_a_thousand_million(factor: float) -> None:
    row = factors.apart(np.array([factor]))
    assert abs(factors.real(row)[0] - factor) <= factor * 2.0**-30
    assert 0 <= row[0, 1] <= factors.MOST_SHIFT and row[0, 0] > 0


def test_small_factors_end_at_zero() -> None:
    assert factors.apart(0.0)[0, 0] == 0
    assert factors.apart(2.0**-60)[0, 0] == 0
    assert factors.apart(np.nextafter(1.0, 0))[0].tolist() == [1 << 30, 30]


@pytest.mark.parametrize("factor", [-1.0, 2.0**31, np.inf, np.nan])
def test_what_is_no_factor_is_refused(factor: float) -> None:
    with pytest.raises(ValueError, match="finite, not negative and below"):
        factors.apart(factor)


@pytest.mark.parametrize("factor", [0.003, 2.0**-110])
@pytest.mark.parametrize("offset", [-7.25, 2.0**-120, 0.0])
def test_real_factors_round_each_step_to_float32(factor: float, offset: float) -> None:
    x = np.random.default_rng(0).integers(-(1 << 31), 1 << 31, (2, 500), np.int32)
    x[:, :3] = 0, 1, -1
    factors_, offsets = np.float32([[factor], [-2 * factor]]), np.float32([[offset], [-offset]])
    product = (np.float32(x).astype(np.float64) * factors_).astype(np.float32)
    total = (product.astype(np.float64) + offsets).astype(np.float32)
    want = np.clip(np.rint(total), -128, 127)
    np.testing.assert_array_equal(factors.requantize_real(x, factors_, offsets, "i8"), want)
