"""Ops on numbers of every element type against Python's own integers and reals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_samples import evaluate

from bmcompiler.errors import RuntimeUseError
from bmcompiler.ir import DTYPES, TensorType
from bmcompiler.numeric.special import erf

INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
EXAMPLES = settings(max_examples=60, deadline=None)


def array(values: list[int], dtype: str) -> np.ndarray:
    return np.asarray(values, DTYPES[dtype][1])


def limits(dtype: str) -> np.iinfo[Any]:
    return np.iinfo(DTYPES[dtype][1])


def wrapped(value: int, dtype: str) -> int:
    """`value` modulo 2**bits in the range of the type."""
    low, span = int(limits(dtype).min), 1 << limits(dtype).bits
    return (value - low) % span + low


@st.composite
def pairs(draw: Any) -> tuple[str, list[int], list[int]]:
    dtype = draw(st.sampled_from(INTEGERS))
    low, high = int(limits(dtype).min), int(limits(dtype).max)
    number = st.one_of(st.integers(low, high), st.sampled_from([low, high, 0, 1]), st.integers(max(low, -9), 9))
    count = draw(st.integers(1, 8))
    lists = st.lists(number, min_size=count, max_size=count)
    return dtype, draw(lists), draw(lists)


@EXAMPLES
@given(pairs())
def test_add_sub_and_mul_wrap(case: tuple[str, list[int], list[int]]) -> None:
    dtype, a, b = case
    ways: list[tuple[str, Callable[[int, int], int]]] = [
        ("add", operator.add),
        ("sub", operator.sub),
        ("mul", operator.mul),
    ]
    for name, exact in ways:
        got = evaluate(name, array(a, dtype), array(b, dtype), wrap=True)
        assert got.tolist() == [wrapped(exact(x, y), dtype) for x, y in zip(a, b)]


@EXAMPLES
@given(pairs())
def test_quotients_are_cut_and_rests_follow_their_sign(case: tuple[str, list[int], list[int]]) -> None:
    dtype, a, b = case
    left, right = array(a, dtype), array(b, dtype)
    quotient, rest = evaluate("div", left, right), evaluate("mod", left, right, fmod=True)
    floor_rest = evaluate("mod", left, right)
    for x, y, *found in zip(a, b, quotient.tolist(), rest.tolist(), floor_rest.tolist()):
        if y == 0:
            assert found == [0, 0, 0]
            continue
        whole = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        assert found == [wrapped(whole, dtype), x - whole * y, x % y]


@EXAMPLES
@given(pairs(), st.sampled_from(["left", "right"]))
def test_bits_that_leave_the_element_are_lost(case: tuple[str, list[int], list[int]], direction: str) -> None:
    dtype, a, b = case
    bits = limits(dtype).bits
    far = [bits if not 0 <= y < bits else y for y in b]
    want = [wrapped(x << y if direction == "left" else x >> y, dtype) for x, y in zip(a, far)]
    assert evaluate("bit_shift", array(a, dtype), array(b, dtype), direction=direction).tolist() == want


@EXAMPLES
@given(pairs(), st.sampled_from(INTEGERS))
def test_truncating_casts_keep_the_low_bits(case: tuple[str, list[int], list[int]], target: str) -> None:
    dtype, a, _ = case
    got = evaluate("cast", array(a, dtype), dtype=target, truncate=True)
    assert got.tolist() == [wrapped(x, target) for x in a]


@pytest.mark.parametrize("target", INTEGERS)
def test_truncating_casts_cut_reals_towards_zero_and_stay_in_range(target: str) -> None:
    values = [0.9, -0.9, 1.5, 100.99, math.nan, math.inf, -math.inf, 1e30]
    low, high = int(limits(target).min), int(limits(target).max)
    got = evaluate("cast", np.asarray(values, np.float32), dtype=target, truncate=True)
    assert got.tolist() == [0, 0, 1, 100, 0, high, low, high]


def test_powers_of_integers() -> None:
    base = np.asarray([2, -3, 7, 2, 0], np.int32)
    assert evaluate("pow", base, np.asarray([10, 3, 0, 40, 5], np.int32)).tolist() == [1024, -27, 1, 0, 0]
    assert evaluate("pow", base, np.asarray([-1, -1, 0, -2, 1], np.int64)).tolist() == [0, 0, 1, 0, 0]
    assert evaluate("pow", base, np.float32([0.5])).tolist() == [1, 0, 2, 1, 0]


@EXAMPLES
@given(pairs(), st.sampled_from(["sum", "prod", "sum_square", "l1", "mean", "max", "min"]))
def test_integer_reductions(case: tuple[str, list[int], list[int]], method: str) -> None:
    dtype, a, _ = case
    got = evaluate("reduce", array(a, dtype), method=method, axes=(0,), keepdims=False, wrap=True)
    size = sum(abs(x) for x in a)
    if method == "mean":
        whole = abs(sum(a)) // len(a) * (-1 if sum(a) < 0 else 1)
        assert got == whole or size >= 2**63  # sums are exact as far as 64 bits hold them
        return
    exact = {
        "sum": sum(a),
        "prod": math.prod(a),
        "sum_square": sum(x * x for x in a),
        "l1": size,
        "max": max(a),
        "min": min(a),
    }
    assert got == wrapped(exact[method], dtype)


@pytest.mark.parametrize(
    ("method", "empty"),
    [
        ("sum", 0),
        ("prod", 1),
        ("max", -math.inf),
        ("min", math.inf),
        ("log_sum", -math.inf),
        ("log_sum_exp", -math.inf),
    ],
)
def test_reductions_of_nothing_give_the_neutral_element(method: str, empty: float) -> None:
    got = evaluate("reduce", np.zeros((2, 0, 3), np.float32), method=method, axes=(1,))
    assert got.tolist() == [[[empty] * 3]] * 2


def test_log_sum_exp_does_not_overflow() -> None:
    got = evaluate("reduce", np.float32([1000, 1000]), method="log_sum_exp", axes=(0,))
    assert got[0] == pytest.approx(1000 + math.log(2))


def test_erf_is_that_of_the_math_library() -> None:
    x = np.concatenate([np.linspace(-7, 7, 5001), 10.0 ** -np.arange(300), [0.0, np.inf, -np.inf]])
    np.testing.assert_allclose(erf(x), [math.erf(v) for v in x], rtol=1e-15, atol=0)
    assert np.isnan(erf(np.asarray([np.nan])))
    assert evaluate("erf", np.float16([0.5])).dtype == np.float16


def test_one_hot_beyond_the_depth_is_off_everywhere() -> None:
    got = evaluate("one_hot", np.asarray([0, -1, 3, -4]), np.float32([-1, 1]), depth=3, axis=0)
    assert got.T.tolist() == [[1, -1, -1], [-1, -1, 1], [-1, -1, -1], [-1, -1, -1]]


def test_top_k_of_equals_takes_the_first() -> None:
    values, indices = evaluate("top_k", np.float32([1, 3, 3, 2, 3]), k=3, axis=0)
    assert values.tolist() == [3, 3, 3] and indices.tolist() == [1, 2, 4]
    _, indices = evaluate("top_k", np.float32([1, 3, 1, 1, 3]), k=4, axis=0, largest=False)
    assert indices.tolist() == [0, 2, 3, 1]


def test_every_update_of_an_element_counts() -> None:
    x, indices, updates = np.float32([1, 2, 3]), np.asarray([0, 0, -1]), np.float32([4, 5, 6])
    for reduction, want in (("add", [10, 2, 9]), ("mul", [20, 2, 18]), ("max", [5, 2, 6]), ("min", [1, 2, 3])):
        assert evaluate("scatter_elements", x, indices, updates, axis=0, reduction=reduction).tolist() == want
        assert evaluate("scatter_nd", x, indices[:, None], updates, reduction=reduction).tolist() == want
    assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("op", "arguments", "attributes"),
    [
        ("gather", [np.asarray([3])], {}),
        ("gather", [np.asarray([-4])], {}),
        ("gather_elements", [np.asarray([3])], {}),
        ("gather_nd", [np.asarray([3])], {}),
        ("scatter_elements", [np.asarray([3]), np.float32([1])], {}),
        ("scatter_nd", [np.asarray([[-4]]), np.float32([1])], {}),
    ],
)
def test_indices_outside_their_axis_are_reported(
    op: str, arguments: list[np.ndarray], attributes: dict[str, Any]
) -> None:
    with pytest.raises(RuntimeUseError, match="outside an axis with 3 elements"):
        evaluate(op, np.float32([1, 2, 3]), *arguments, **attributes)


def test_running_sums_of_integers_wrap_and_empty_axes_stay_empty() -> None:
    x = np.asarray([100, 100, 100], np.int8)
    assert evaluate("cumulate", x, method="sum", axis=0).tolist() == [100, -56, 44]
    assert evaluate("cumulate", x, method="sum", axis=0, exclusive=True, reverse=True).tolist() == [-56, 100, 0]
    assert evaluate("cumulate", x[:0], method="prod", axis=0, exclusive=True, out=TensorType((0,), "i8")).shape == (0,)
