"""How far apart the bits of 16-bit floats lie, by which the model of the device chooses how to add exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmcompiler.backends.dv.arithmetic.exact import exponents


@given(st.lists(st.floats(width=16, allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_values_are_multiples_of_a_unit_below_a_power(drawn: list[float]) -> None:
    values = np.array(drawn, np.float16)
    unit, top = exponents(values) or (99, 99)
    exact = np.abs(values.astype(np.float64))
    assert (exact / 2.0**unit == np.rint(exact / 2.0**unit)).all() and (exact < 2.0**top).all() | (exact == 0).all()
    if exact.any():  # no further apart than the format makes them
        assert exact.max() >= 2.0 ** (top - 1) or top == -13
        assert exact[exact > 0].min() < 2.0 ** (unit + 11)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_no_number_has_none(value: float) -> None:
    assert exponents(np.array([1, value], np.float16)) is None
    assert exponents(np.zeros(3, np.float16)) == (0, 0) and exponents(np.ones(1, np.float16)) == (-10, 1)
