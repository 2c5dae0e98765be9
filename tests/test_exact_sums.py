"""Integers that float32 holds end as integers do, and steps by block give what steps on whole arrays give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.numeric import arith, exact_sums, quant_modes
from bmcompiler.numeric.by_block import by_block

_DTYPES = ("i8", "u8", "i16", "u16", "i32")


@settings(max_examples=60)
@given(
    most=st.integers(1, exact_sums.HELD),
    bias=st.integers(0, 2**31 - 1),
    shift=st.integers(0, 31),
    dtype=st.sampled_from(_DTYPES),
    seed=st.integers(0, 99),
)
def test_sums_as_floats_end_as_integers_do(most: int, bias: int, shift: int, dtype: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    total = np.append(random.integers(-most, most, 40, endpoint=True), [most, -most, most - 1])
    added = random.integers(-bias, bias, total.shape, endpoint=True).astype(np.int32)
    wanted = arith.requantize(total + added, shift, dtype)
    found = exact_sums.requantized(total.astype(np.float32), added, shift, dtype)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype in (wanted.dtype, np.float32)


def test_sums_stay_floats_where_these_are_exact_alone() -> None:
    near, half = np.array([exact_sums.HELD - 8], np.float32), 1 << 3
    assert exact_sums.is_held(exact_sums.requantized(near.copy(), None, 4, "i16"))
    assert not exact_sums.is_held(exact_sums.requantized(near + half, None, 4, "i16"))
    assert not exact_sums.is_held(exact_sums.requantized(near.copy(), None, 4, "i32"))


@pytest.mark.parametrize("scale", [0.3, 0.011, 1.0, 1.7, 300.3, 70_000.0, 8_000_000.0])
@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_the_low_mode_is_the_same_of_floats(scale: float, dtype: str) -> None:
    total, factor = np.arange(-70_000, 70_000, 7), quant_modes.rescale(scale)
    bias = np.array([3], np.int16)
    found = quant_modes.low(total.astype(np.float32), factor, dtype, bias)
    np.testing.assert_array_equal(found, quant_modes.low(total, factor, dtype, bias))


@given(shift=st.integers(0, 15), dtype=st.sampled_from(_DTYPES[:4]), seed=st.integers(0, 9))
@settings(max_examples=20)
def test_floors_of_quotients_are_those_of_integers(shift: int, dtype: str, seed: int) -> None:
    x = np.random.default_rng(seed).integers(-32768, 65535, (4, 9))
    shifts = np.array([[shift], [0], [15], [7]], np.int16)
    wanted = exact_sums.floor_shifted(x, shifts, dtype)
    np.testing.assert_array_equal(exact_sums.floor_shifted(x.astype(np.float32), shifts, dtype), wanted)
    np.testing.assert_array_equal(wanted, arith.saturate(np.floor(x / 2.0**shifts).astype(np.int64), dtype))


@pytest.mark.parametrize("shape", [(2, 3, 150, 170), (1, 70, 999), (90_001,), (3, 1, 40_000), (5,), (2, 0, 7)])
def test_blocks_are_put_together(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    x = random.integers(-99, 99, shape)
    y, z = random.integers(-99, 99, (*shape[-2:-1], 1)), random.integers(-99, 99, (1,) * len(shape))
    found = by_block(lambda x, y, none, z: x * y + z, np.dtype(np.int32), x, y, None, z)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, x * y + z)


@pytest.mark.parametrize("kernel, groups", [(1, 1), (3, 1), (3, 12), (3, 4)])
@pytest.mark.parametrize("most", [127, 3])
def test_sums_of_products_are_the_same_as_floats(kernel: int, groups: int, most: int) -> None:
    random, channels = np.random.default_rng(0), 12 if groups > 1 else 1200
    x = random.integers(0, most, (2, channels, 5, 6), endpoint=True).astype(np.uint8)
    weight = random.integers(-most, most, (24, channels // groups, kernel, kernel)).astype(np.int8)
    wanted = arith.conv2d(x, weight, pads=(1, 1, 0, 1), groups=groups)
    found = arith.conv2d(x, weight, pads=(1, 1, 0, 1), groups=groups, floats=True)
    np.testing.assert_array_equal(found, wanted)
    assert exact_sums.is_held(found) or (most, channels) == (127, 1200)
    np.testing.assert_array_equal(
        arith.matmul(x[0, 0], weight[0, 0, :1].repeat(6, 0), floats=True),
        arith.matmul(x[0, 0], weight[0, 0, :1].repeat(6, 0)),
    )
