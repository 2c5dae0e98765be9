"""Roundings of integers and floats, and flushed denormals, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from exact_rounding import rounded, sixteen
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.numeric import fp32
from bmcompiler.numeric.floats import BF16, FP16, FP32, FloatType
from bmcompiler.numeric.narrowing import to_bf16, to_fp16
from bmcompiler.numeric.rounding import Rounding, shift_right, whole
from bmcompiler.numeric.sampled import chosen, convolution_sums, sampled_sums

_MODES = st.sampled_from(list(Rounding))
_PATTERNS = st.integers(0, (1 << 32) - 1)
_NEAR_EDGES = st.tuples(st.sampled_from([0, 1 << 31]), st.sampled_from([1, 0x70, 0x71, 0x72, 0x7F, 0x80, 0x8E, 0xFE]))
_WORDS = st.one_of(
    _PATTERNS,
    st.builds(lambda edge, low: edge[0] | edge[1] << 23 | low, _NEAR_EDGES, st.integers(0, (1 << 23) - 1)),
    st.builds(
        lambda edge, kept, bits, beside: edge[0] | edge[1] << 23 | (kept << bits) + beside & (1 << 23) - 1,
        _NEAR_EDGES,
        st.integers(0, (1 << 12) - 1),
        st.integers(11, 16),
        st.integers(-1, 1),
    ),
)
"""Numbers, mostly of the exponents where forms begin and end, and the neighbours of what has few bits and of ties."""


def floats(words: list[int]) -> np.ndarray:
    return np.array(words, np.uint32).view(np.float32)


@given(st.data(), st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]), _MODES)
def test_right_shifts_round_exactly(data: st.DataObject, kind: str, mode: Rounding) -> None:
    limits = np.iinfo(kind)
    near_ties = st.builds(lambda a, b: (a << 1 | 1) << b, st.integers(-64, 64), st.integers(0, 5))
    numbers = st.one_of(st.integers(int(limits.min), int(limits.max)), near_ties.map(lambda v: v % int(limits.max)))
    values = data.draw(st.lists(numbers, min_size=1, max_size=8))
    bits = data.draw(st.lists(st.integers(0, 63), min_size=len(values), max_size=len(values)))
    x = np.array(values, kind)
    want = [rounded(Fraction(v, 1 << b), mode) for v, b in zip(values, bits)]
    assert shift_right(x, np.array(bits), mode).tolist() == want
    assert shift_right(x, bits[0], mode).tolist() == [rounded(Fraction(v, 1 << bits[0]), mode) for v in values]


@given(
    st.lists(st.one_of(_WORDS, st.integers(-40, 40).map(lambda v: int(np.float32(v / 4).view(np.uint32)))), min_size=1),
    _MODES,
)
def test_floats_become_whole(words: list[int], mode: Rounding) -> None:
    x = floats(words)
    for before, after in zip(x, whole(x, mode)):
        if not np.isfinite(before):
            assert before.view(np.uint32) == after.view(np.uint32)
        else:
            assert int(after) == rounded(Fraction(float(before)), mode)
            assert np.signbit(after) == np.signbit(before)


@settings(max_examples=200)
@given(st.lists(_WORDS, min_size=1), _MODES)
def test_sixteen_bit_floats_are_rounded_as_asked(words: list[int], mode: Rounding) -> None:
    x = floats(words)
    for form, mantissa, least, infinite in ((to_fp16, 10, -14, 0x7C00), (to_bf16, 7, -126, 0x7F80)):
        for value, got in zip(x, form(x, mode).tolist()):
            sign = int(np.signbit(value)) << 15
            if not np.isfinite(value):
                assert got == sign | (0x7FFF if np.isnan(value) else infinite)
                continue
            exact = abs(Fraction(float(value)))
            exact = exact if exact >= Fraction(2) ** -126 else Fraction(0)
            assert got == sign | sixteen(exact, bool(sign), mode, mantissa, least, infinite)


@given(st.lists(_WORDS, min_size=1))
def test_sums_that_a_proof_does_not_take_in_order_keep_half_of_their_bits(words: list[int]) -> None:
    x = fp32.flush(floats(words))[None]
    one, none = np.ones((1, 1), np.float32), np.zeros((x.shape[1], 1), np.float32)
    with sampled_sums():
        found = convolution_sums(x, one, none, lambda a, b, c: a.T)[:, 0]
    in_order = chosen(x)
    for at, (value, got) in enumerate(zip(x[0], found)):
        if at in in_order or not np.isfinite(value):
            assert value.tobytes() == got.tobytes() or (np.isnan(value) and np.isnan(got))
            continue
        bits = int(np.abs(value).view(np.uint32))
        assert int(np.abs(got).view(np.uint32)) == rounded(Fraction(bits, 1 << 12), Rounding.HALF_EVEN) << 12
        assert np.signbit(got) == np.signbit(value) or not value


def test_unknown_modes_are_refused() -> None:
    one = np.ones(2, np.float32)
    for refused in (lambda: whole(one, 8), lambda: to_bf16(one, 8), lambda: shift_right(np.ones(2, np.int32), 3, 8)):
        with pytest.raises(ValueError, match="8"):
            refused()


def _flushed(x: Fraction) -> Fraction:
    """An exact result as the chip has it: rounded to 24 bits whatever the exponent, zero below 2**-126."""
    size = abs(x)
    if not x:
        return x
    exponent = math.floor(math.log2(size))
    exponent += (size >= Fraction(2) ** (exponent + 1)) - (size < Fraction(2) ** exponent)
    step = Fraction(2) ** (exponent - 23)
    size = rounded(size / step, Rounding.HALF_EVEN) * step
    return Fraction(0) if size < Fraction(2) ** -126 else size if x > 0 else -size


_SMALL = st.builds(
    lambda sign, exponent, mantissa: sign << 31 | exponent << 23 | mantissa,
    st.integers(0, 1),
    st.one_of(st.integers(1, 30), st.integers(60, 70)),
    st.one_of(st.integers(0, (1 << 23) - 1), st.sampled_from([0, 1, 2, (1 << 23) - 1, (1 << 23) - 2])),
)


@settings(max_examples=300)
@given(st.lists(st.tuples(_SMALL, _SMALL), min_size=1))
def test_sums_and_products_near_the_smallest_numbers_are_flushed(pairs: list[tuple[int, int]]) -> None:
    a, b = (floats(list(side)) for side in zip(*pairs))
    for got, form in ((fp32.multiply(a, b), lambda x, y: x * y), (fp32.add(a, b), lambda x, y: x + y)):
        exact = [_flushed(form(Fraction(float(x)), Fraction(float(y)))) for x, y in zip(a, b)]
        assert [Fraction(float(value)) for value in got] == exact


def test_products_between_the_two_edges_are_zero() -> None:
    """2**-126 * (1 - 2**-24 + 2**-48 ...) rounds up to 2**-126 on the grid of denormals, and to less without them."""
    a, b = np.float32(1 - 2.0**-24), np.float32(2.0**-126)
    assert fp32.multiply(floats([int(a.view(np.uint32))]), floats([int(b.view(np.uint32))])) == 0
    assert np.float32(a * b) == np.float32(2.0**-126)


@given(st.lists(st.tuples(_WORDS, _WORDS), min_size=1))
def test_not_a_number_is_that_of_the_first_operand(pairs: list[tuple[int, int]]) -> None:
    a, b = (floats([word | 0x7F80_0000 for word in side]) for side in zip(*pairs))
    with np.errstate(all="ignore"):
        results = [fp32.add(a, b), fp32.subtract(a, b), fp32.multiply(a, b)]
    for result in results:
        for x, y, got in zip(a, b, result):
            if np.isnan(x) or np.isnan(y):
                assert got.view(np.uint32) == (x if np.isnan(x) else y).view(np.uint32) | 0x0040_0000
            elif np.isnan(got):
                assert got.view(np.uint32) == 0xFFC0_0000


@settings(max_examples=50)
@given(st.lists(_WORDS, min_size=1, max_size=40), st.lists(_WORDS, min_size=1, max_size=12), st.booleans())
def test_horner_is_a_product_and_a_sum_per_coefficient(x: list[int], c: list[int], ordinary: bool) -> None:
    values, coefficients = floats(x), floats(c)
    if ordinary:
        coefficients = (np.arange(len(c)) % 3 - 1).astype(np.float32) * np.float32(2.0**-99)
    with np.errstate(all="ignore"):
        total = np.full_like(values, fp32.flush(coefficients)[-1])
        for k in range(len(coefficients) - 2, -1, -1):
            total = fp32.add(fp32.multiply(total, values), np.full_like(values, coefficients[k]))
        got = fp32.horner(values, coefficients)
    assert got.view(np.uint32).tolist() == total.view(np.uint32).tolist()


def test_horner_of_one_element_does_not_know_of_the_coefficients_of_another() -> None:
    """One has NaN among them: where they differ by element, each counts for its own."""
    x = np.array([0.5, -2.0, 3.0], np.float32)
    coefficients = np.array([[1.0, 2.0, 4.0], [-1.0, np.nan, 0.5], [0.25, 1.0, -8.0]], np.float32)
    got = fp32.horner(x, coefficients)
    assert [float(got[0]), float(got[2])] == [1.0 - 0.5 + 0.0625, 4.0 + 1.5 - 72.0]
    assert np.isnan(got[1])


@pytest.mark.parametrize("kind", [FP32, FP16, BF16], ids=lambda kind: kind.name)
def test_of_equal_numbers_a_bound_is_its_second_operand(kind: FloatType) -> None:
    """Zeros of two signs are equal numbers, and a NaN is neither above nor below: bits say which one was taken."""
    top = np.uint32(31) if kind is FP32 else np.uint16(15)
    zero = top.dtype.type(0)
    nan = top.dtype.type(0x7FC00000 if kind is FP32 else 0x7E00 if kind is FP16 else 0x7FC0)
    one, minus = zero, top.dtype.type(1) << top
    for a, b, highest, lowest in (
        (one, minus, minus, minus),
        (minus, one, one, one),
        (nan, one, one, nan),
        (one, nan, nan, one),
    ):
        left, right = (np.array([bits]).view(np.float32) if kind is FP32 else np.array([bits]) for bits in (a, b))
        for bound, expected in ((kind.maximum, highest), (kind.minimum, lowest)):
            assert bound(left, right).view(top.dtype) == expected
