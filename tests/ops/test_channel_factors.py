"""Sums of products with a factor for each output channel: against exact fractions, and the verifier's sentences."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.errors import BMError
from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir import Block, Module, TensorType, Value, type_of_array
from bmcompiler.numeric import factors
from bmcompiler.ops import find_op

LIMITS = {"i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767)}


def run(name: str, arrays: list[np.ndarray], dtype: str, **attributes: Any) -> np.ndarray:
    operands = [Value(type_of_array(a), Block(), i) for i, a in enumerate(arrays)]
    op = find_op(name)(operands, {"mode": "channel", **attributes})
    op.results[0].type = TensorType(op.results[0].shape, dtype)
    op.verify_op(Module())
    return evaluate_op(op, arrays)[0]


def expected(total: np.ndarray, row: tuple[int, int], dtype: str, zero: int) -> np.ndarray:
    low, high = LIMITS[dtype]
    exact = [min(max(round(Fraction(int(v) * row[0], 1 << row[1])) + zero, low), high) for v in total.ravel()]
    return np.array(exact).reshape(total.shape)


@st.composite
def layers(draw: Any, weight_of: Any) -> tuple[list[np.ndarray], str, tuple[int, int, int]]:
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    kinds = [draw(st.sampled_from([np.int8, np.uint8])) for _ in range(2)]
    shape, kernel, channels = draw(weight_of)
    x, w = (rng.integers(np.iinfo(k).min, np.iinfo(k).max + 1, s).astype(k) for k, s in zip(kinds, (shape, kernel)))
    bias = rng.integers(-(1 << 16), 1 << 16, channels).astype(np.int32)
    rows = np.stack([rng.integers(1, 1 << 31, channels), rng.integers(30, 46, channels)], 1).astype(np.int32)
    dtype = draw(st.sampled_from(sorted(LIMITS)))
    points = tuple(draw(st.integers(*LIMITS[str(t)])) for t in (*(type_of_array(a).dtype for a in (x, w)), dtype))
    return [x, w, bias, rows], dtype, points  # type: ignore[return-value]


CONVS = st.sampled_from([((2, 4, 5, 4), (6, 2, 3, 2), 6), ((1, 3, 4, 4), (3, 1, 2, 2), 3)])


@settings(max_examples=30, deadline=None)
@given(layers(CONVS), st.sampled_from([(1, 1), (2, 1)]))
def test_conv(case: Any, strides: tuple[int, int]) -> None:
    (x, w, bias, rows), dtype, points = case
    group = x.shape[1] // w.shape[1]
    got = run("conv", [x, w, bias, rows], dtype, zero_points=points, pads=(1, 0, 1, 1), strides=strides, group=group)
    inside = np.pad(x.astype(int) - points[0], ((0, 0), (0, 0), (1, 0), (1, 1)))
    weight, per = w.astype(int) - points[1], len(w) // group
    for o, image in ((o, n) for o in range(len(w)) for n in range(len(x))):
        part = inside[image, o // per * w.shape[1] : (o // per + 1) * w.shape[1]]
        down, across = got.shape[2:]
        total = np.full((down, across), int(bias[o]))
        for r, s in np.ndindex(w.shape[2:]):
            rows_of = part[:, r : r + (down - 1) * strides[0] + 1 : strides[0]]
            total += np.tensordot(
                weight[o, :, r, s], rows_of[:, :, s : s + (across - 1) * strides[1] + 1 : strides[1]], 1
            )
        np.testing.assert_array_equal(got[image, o], expected(total, rows[o].tolist(), dtype, points[2]))


@settings(max_examples=30, deadline=None)
@given(layers(st.just(((1, 4, 3, 3), (4, 3, 2, 3), 6))))
def test_deconv_counts_what_it_inserts_as_nothing(case: Any) -> None:
    (x, w, bias, rows), dtype, points = case
    got = run("deconv", [x, w, bias, rows], dtype, zero_points=points, pads=(0, 1, 1, 0), strides=(2, 2), group=2)
    plain = find_op("deconv")(
        [Value(TensorType(a.shape), Block(), i) for i, a in enumerate((x, w))],
        {"pads": (0, 1, 1, 0), "strides": (2, 2), "group": 2},
    )
    reals = [x.astype(np.float32) - points[0], w.astype(np.float32) - points[1]]
    totals = evaluate_op(plain, reals)[0]  # exact: all sums are below 2**24
    for o, row in enumerate(rows.tolist()):
        want = expected(totals[:, o].astype(int) + int(bias[o]), row, dtype, points[2])
        np.testing.assert_array_equal(got[:, o], want)


@settings(max_examples=30, deadline=None)
@given(layers(st.just(((2, 3, 5), (4, 5), 4))), st.booleans())
def test_matmul_with_a_factor_per_column_or_one(case: Any, common: bool) -> None:
    (x, w, bias, rows), dtype, points = case
    rows = rows[:1] if common else rows
    got = run("matmul", [x, w, bias, rows], dtype, zero_points=points, transpose_right=True)
    total = (x.astype(int) - points[0]) @ (w.astype(int) - points[1]).T + bias
    for j in range(len(w)):
        want = expected(total[..., j], rows[0 if common else j].tolist(), dtype, points[2])
        np.testing.assert_array_equal(got[..., j], want)


def test_narrow_sums_are_shifted_and_saturated_before_the_factor_and_offsets_added_behind_it() -> None:
    x, w = np.array([[100, 1], [-128, 127]], np.int8), np.array([[127, 50], [3, -1]], np.int8)
    bias, rows = np.array([-5, 30000], np.int16), np.array([[1, 1, 7], [1, 3, -4000]], np.int32)
    got = run("matmul", [x, w, bias, rows], "i16", transpose_right=True, narrow=True, rshift=2)
    # totals 12745, 30299 and -9911, 29489: quarters, halves up; then a half and an eighth, halves to even
    assert got.tolist() == [[1600, 947 - 4000], [-1232, 922 - 4000]]
    most = [np.full((1, 2), 127, np.int8), np.full((2, 2), 127, np.int8)]
    clipped = run("matmul", [*most, bias, rows], "i16", transpose_right=True, narrow=True)
    assert clipped.tolist() == [[16126 + 7, 4096 - 4000]]  # totals 32253 and 62258, which becomes 32767


def test_shifts_of_channels_round_down_and_unsigned_results_have_unsigned_sums() -> None:
    x, w = np.array([[100, 1], [-128, 127]], np.int8), np.array([[127, 50], [3, -1]], np.int8)
    bias, rows = np.array([-5, 30000], np.int16), np.array([[5], [8]], np.int16)
    given = {"transpose_right": True, "narrow": True, "rshift": 2}
    # quarters 3186, 7575 and -2478, 7372 (halves up); 99.6, 29.6 and -77.4, 28.8
    assert run("matmul", [x, w, bias, rows], "i8", **given).tolist() == [[99, 29], [-78, 28]]
    assert run("matmul", [x, w, bias, rows], "u8", **given).tolist() == [[99, 29], [0, 28]]
    whole = {**given, "rshift": 0}
    far = np.array([[-3], [99]], np.int16)  # shifts are 0 to 15
    assert run("matmul", [x, w, bias, far], "i16", **whole)[0].tolist() == [12745, 0]
    many = [np.full((1, 9), 127, np.int8), np.full((2, 9), 127, np.int8), np.zeros(2, np.int16)]
    assert run("matmul", [*many, np.full((2, 1), 9, np.int16)], "u8", **whole).tolist() == [[127, 127]]
    assert run("matmul", [*many, np.full((2, 1), 9, np.int16)], "i8", **whole).tolist() == [[63, 63]]


def test_sums_and_biases_saturate_to_32_bits_before_the_factor() -> None:
    x, w = np.full((1, 2), 127, np.int8), np.full((1, 2), 127, np.int8)
    bias = np.array([np.iinfo(np.int32).max], np.int32)
    got = run("matmul", [x, w, bias, np.array([[1, 25]], np.int32)], "i8", transpose_right=True)
    assert got.tolist() == [[64]]  # (2**31 - 1) / 2**25; without saturation 64.0009


BYTES = TensorType((1, 2, 4, 4), "i8")
OPERANDS = [BYTES, TensorType((3, 2, 1, 1), "i8"), TensorType((3,), "i32"), TensorType((3, 2), "i32")]


@pytest.mark.parametrize(
    ("types", "attributes", "reason"),
    [
        (OPERANDS[:3], {"mode": "channel"}, "mode channel needs a bias and factors"),
        (OPERANDS, {}, "no other mode has factors"),
        (OPERANDS, {"mode": "channel", "scale": 0.5}, "scale must be 0"),
        (OPERANDS, {"mode": "channel", "rshift": 3}, "rshift must be 0, got 3"),
        (OPERANDS, {"mode": "channel", "zero_points": (0, 200, 0)}, "the weight zero point must fit i8, got 200"),
        (
            [*OPERANDS[:3], TensorType((2, 2), "i32")],
            {"mode": "channel"},
            r"must have shape \[3, 2\], \[3, 3\] or \[1, 2\]",
        ),
        ([*OPERANDS[:3], TensorType((3, 2), "i8")], {"mode": "channel"}, "factors must be i32 or i16"),
        ([*OPERANDS[:2], TensorType((3,), "u16"), OPERANDS[3]], {"mode": "channel"}, "bias must be i16 or i32"),
        (
            [*OPERANDS[:3], TensorType((3, 1), "i16")],
            {"mode": "channel"},
            r"factors of i16 must have shape \[3, 1\], zero_points be 0, and sums narrow",
        ),
        (OPERANDS[:3], {"narrow": True}, "narrow belong to a mode"),
        ([TensorType(t.shape) for t in OPERANDS], {}, "factors belong to the integer form"),
    ],
)
def test_the_verifier_says_what_is_missing(types: list[TensorType], attributes: dict[str, Any], reason: str) -> None:
    op = find_op("conv")([Value(t, Block(), i) for i, t in enumerate(types)], attributes)
    with pytest.raises(BMError, match=reason):
        op.verify_op(Module())


def test_a_weighted_sum_adds_what_zero_points_make() -> None:
    x = np.array([[-128, 5, 127]], np.int8)
    value = (3 << 4) - 7 * 5
    op = find_op("affine_sum")(
        [Value(type_of_array(x), Block(), 0)], {"multipliers": (7,), "rshift": 4, "value": value}
    )
    assert evaluate_op(op, [x])[0].tolist() == [[(7 * (-128 - 5) + 8) // 16 + 3, 3, (7 * (127 - 5) + 8) // 16 + 3]]


def test_factors_are_what_they_stand_for() -> None:
    np.testing.assert_allclose(factors.real(factors.apart([0.1, 3.5])), [0.1, 3.5], rtol=1e-9)
