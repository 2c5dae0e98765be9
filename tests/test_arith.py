"""Exact integer arithmetic against naive 64-bit formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bmcompiler.numeric import arith
from bmcompiler.numeric.blas import _controls, one_blas_thread

WIDTHS = [("i1", "i1"), ("u1", "i1"), ("u1", "u1"), ("i2", "i1"), ("i2", "i2"), ("i4", "i2"), ("i4", "i4")]
Pair = tuple[int, int]
LIMITS = {"i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767), "u16": (0, 65535), "i32": (-(2**31), 2**31 - 1)}


def naive_conv(
    x: NDArray[Any],
    w: NDArray[Any],
    geometry: tuple[tuple[int, int], tuple[int, int, int, int], tuple[int, int], int],
) -> NDArray[np.int64]:
    strides, pads, dilations, groups = geometry
    top, bottom, left, right = pads
    x = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    oc, icg, kh, kw = w.shape
    oh = (x.shape[2] - (kh - 1) * dilations[0] - 1) // strides[0] + 1
    ow = (x.shape[3] - (kw - 1) * dilations[1] - 1) // strides[1] + 1
    out = np.zeros((x.shape[0], oc, oh, ow), np.int64)
    per_group = oc // groups
    for o in range(oc):
        first = (o // per_group) * icg
        for y in range(oh):
            for z in range(ow):
                rows = slice(y * strides[0], y * strides[0] + (kh - 1) * dilations[0] + 1, dilations[0])
                columns = slice(z * strides[1], z * strides[1] + (kw - 1) * dilations[1] + 1, dilations[1])
                window = x[:, first : first + icg, rows, columns]
                out[:, o, y, z] = (window * w[o].astype(np.int64)).sum(axis=(1, 2, 3))
    return out


@given(x=st.integers(-(2**31), 2**31 - 1), shift=st.integers(0, 31))
def test_round_shift_rounds_half_up_without_overflow(x: int, shift: int) -> None:
    expected = (x + (1 << (shift - 1))) >> shift if shift else x
    assert int(arith.round_shift(np.array([x], np.int32), shift)[0]) == expected
    by_array = arith.round_shift(np.array([x, x], np.int32), np.array([shift, 0], np.uint8))
    assert by_array.tolist() == [expected, x]


def test_round_shift_examples_of_the_chip() -> None:
    assert arith.round_shift(np.array([-3, 3, -1, 1]), 1).tolist() == [-1, 2, 0, 1]


def test_negative_shift_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        arith.round_shift(np.array([1]), -1)
    with pytest.raises(ValueError, match="negative"):
        arith.round_shift(np.array([1]), np.array([-1]))


@given(values=st.lists(st.integers(-(2**40), 2**40), min_size=1), dtype=st.sampled_from(sorted(LIMITS)))
def test_saturate_clips_to_the_range_of_the_dtype(values: list[int], dtype: str) -> None:
    low, high = LIMITS[dtype]
    got = arith.saturate(np.array(values, np.int64), dtype)
    assert got.dtype == arith.NUMPY_DTYPES[dtype]
    assert got.tolist() == [min(max(v, low), high) for v in values]


def test_saturate_between_narrow_types_of_other_sign() -> None:
    assert arith.saturate(np.array([-5, 127], np.int8), "u8").tolist() == [0, 127]
    assert arith.saturate(np.array([200, 3], np.uint8), "i8").tolist() == [127, 3]
    assert arith.saturate(np.array([2**32 - 1], np.uint32), "i32").tolist() == [2**31 - 1]


def test_quantize_real_follows_the_floor_rule() -> None:
    x = np.array([-2.0, -0.5 / 128, -0.51 / 128, 0.0, 0.5 / 128, 0.999, 5.0])
    assert arith.quantize_real(x, 1.0).tolist() == [-128, 0, -1, 0, 1, 127, 127]
    back = arith.dequantize(np.array([-128, 64], np.int8), 2.0)
    assert back.dtype == np.float32 and back.tolist() == [-2.0, 1.0]


@st.composite
def conv_cases(draw: st.DrawFn) -> dict[str, Any]:
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    dilations = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    size = [(k - 1) * d + 1 + draw(st.integers(0, 5)) for k, d in zip(kernel, dilations)]
    groups = draw(st.integers(1, 3))
    return {
        "x_shape": (draw(st.integers(1, 3)), groups * draw(st.integers(1, 4)), *size),
        "per_group": draw(st.integers(1, 3)),
        "kernel": kernel,
        "strides": draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
        "pads": draw(st.tuples(*[st.integers(0, 2)] * 4)),
        "dilations": dilations,
        "groups": groups,
        "dtypes": draw(st.sampled_from(WIDTHS[:-1])),
        "seed": draw(st.integers(0, 2**32 - 1)),
    }


def full_range(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


@settings(max_examples=80, deadline=None)
@given(case=conv_cases())
def test_conv2d_equals_the_naive_sum(case: dict[str, Any]) -> None:
    rng = np.random.default_rng(case["seed"])
    x = full_range(rng, case["x_shape"], case["dtypes"][0])
    groups = case["groups"]
    w_shape = (groups * case["per_group"], x.shape[1] // groups, *case["kernel"])
    w = full_range(rng, w_shape, case["dtypes"][1])
    arguments = (case["strides"], case["pads"], case["dilations"], groups)
    got = arith.conv2d(x, w, strides=arguments[0], pads=arguments[1], dilations=arguments[2], groups=groups)
    np.testing.assert_array_equal(got, naive_conv(x, w, arguments))


@pytest.mark.parametrize("value", [-128, 127])
def test_deep_sums_of_extreme_values_are_exact(value: int) -> None:
    x = np.full((1, 700, 3, 3), value, np.int8)
    w = np.full((2, 700, 3, 3), -128, np.int8)
    w[1, ::2] = 127
    np.testing.assert_array_equal(arith.conv2d(x, w), naive_conv(x, w, ((1, 1), (0, 0, 0, 0), (1, 1), 1)))
    row, columns = x.reshape(1, -1), w.reshape(2, -1).T
    np.testing.assert_array_equal(arith.matmul(row, columns), row.astype(int) @ columns.astype(int))


@pytest.mark.parametrize("ends", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("dtypes", [("i1", "i1"), ("u1", "i1"), ("u1", "u1"), ("i2", "i1"), ("u2", "u1"), ("i2", "i2")])
def test_sums_that_leave_32_bits_are_exact(dtypes: tuple[str, str], ends: tuple[int, int]) -> None:
    """As deep as the extremes of both types need to leave 32 bits, and one less."""
    limits = [np.iinfo(dtype) for dtype in dtypes]
    one, other = ((limit.min, limit.max)[end] for limit, end in zip(limits, ends))
    deepest = (1 << 31) // max(abs(int(one) * int(other)), 1)
    for depth in {min(each, 140_000) for each in (deepest, deepest + 1)}:
        a, b = np.full((1, depth), one, dtypes[0]), np.full((depth, 1), other, dtypes[1])
        assert arith.matmul(a, b).tolist() == [[depth * int(one) * int(other)]]
        image, weight = a.reshape(1, depth, 1, 1), b.reshape(1, depth, 1, 1)
        assert arith.conv2d(image, weight).ravel().tolist() == [depth * int(one) * int(other)]


def test_conv2d_in_row_blocks_equals_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    x, w = full_range(rng, (3, 4, 11, 9), "i1"), full_range(rng, (5, 4, 3, 2), "i1")
    expected = naive_conv(x, w, ((2, 1), (1, 0, 1, 2), (1, 1), 1))
    for block in (1, 500, 1 << 22):
        monkeypatch.setattr(arith, "_COLUMN_BLOCK_VALUES", block)
        np.testing.assert_array_equal(arith.conv2d(x, w, strides=(2, 1), pads=(1, 0, 1, 2)), expected)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 3000), st.integers(1, 5)),
    batch=st.integers(0, 2),
    dtypes=st.sampled_from(WIDTHS),
    seed=st.integers(0, 99),
)
def test_matmul_equals_the_integer_product(
    shape: tuple[int, int, int], batch: int, dtypes: tuple[str, str], seed: int
) -> None:
    r, k, c = shape
    rng = np.random.default_rng(seed)
    a = full_range(rng, (*[2] * batch, r, k), dtypes[0])
    b = full_range(rng, (*[2] * batch, k, c), dtypes[1])
    np.testing.assert_array_equal(arith.matmul(a, b), np.matmul(a.astype(np.int64), b.astype(np.int64)))


@given(
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    pads=st.tuples(*[st.integers(0, 2)] * 4),
    seed=st.integers(0, 99),
)
def test_pooling_windows(kernel: Pair, strides: Pair, pads: tuple[int, int, int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = full_range(rng, (2, 3, 5, 6), "i1")
    edges = ((0, 0), (0, 0), pads[:2], pads[2:])
    for value, got in (
        (0, arith.pool_sum(x, kernel, strides, pads)),
        (-128, arith.pool_max(x, kernel, strides, pads)),
        (7, arith.pool_max(x, kernel, strides, pads, 7)),
    ):
        padded = np.pad(x.astype(np.int64), edges, constant_values=value)
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))[:, :, :: strides[0], :: strides[1]]
        expected = windows.sum(axis=(4, 5)) if value == 0 else windows.max(axis=(4, 5))
        np.testing.assert_array_equal(got, expected)


def test_windows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        arith.conv2d(np.zeros((1, 1, 2, 2), np.int8), np.zeros((1, 1, 3, 3), np.int8))
    with pytest.raises(ValueError, match="do not fit"):
        arith.conv2d(np.zeros((1, 2, 4, 4), np.int8), np.zeros((1, 1, 3, 3), np.int8))


def test_blas_threads_are_restored_after_nested_use() -> None:
    controls = _controls()
    if controls is None:
        pytest.skip("numpy does not use OpenBLAS here")
    before = controls[0]()
    with one_blas_thread:
        with one_blas_thread:
            arith.matmul(np.ones((2, 2), np.int8), np.ones((2, 2), np.int8))
        assert controls[0]() == 1
    assert controls[0]() == before
