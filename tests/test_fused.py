"""Sums of products of 16-bit floats against exact fractions, on every kind of value."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.numeric.fused import fused_product
from bmcompiler.numeric.halves import BF16, FP16, Half

_TINY = Fraction(2) ** -126
_LARGE = Fraction(2) ** 128


def _rounded(x: Fraction) -> np.float32:
    """To fp32, nearest even; below 2**-126 it is 0."""
    if abs(x) < _TINY:
        return np.float32(0)
    exponent = math.floor(math.log2(abs(x)))
    while abs(x) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(x) < Fraction(2) ** exponent:
        exponent -= 1
    result = round(x / Fraction(2) ** (exponent - 23)) * Fraction(2) ** (exponent - 23)
    return np.float32(math.copysign(math.inf, x)) if abs(result) >= _LARGE else np.float32(float(result))


def _group(a: list[float], b: list[float]) -> np.float32:
    with np.errstate(all="ignore"):
        products = [np.float32(x) * np.float32(y) for x, y in zip(a, b)]
    if any(np.isnan(products)) or (np.inf in products and -np.inf in products):
        return np.float32(np.nan)
    for value in (np.inf, -np.inf):
        if value in products:
            return np.float32(value)
    exact = [Fraction(float(p)) if abs(p) >= float(_TINY) else Fraction(0) for p in products]
    largest = max(map(abs, exact))
    if not largest:
        return np.float32(0)
    exponent = math.frexp(float(largest))[1] - 1
    step = Fraction(2) ** (exponent - 24)
    return _rounded(sum((Fraction(math.trunc(p / step)) for p in exact), Fraction(0)) * step)


@pytest.mark.parametrize("half", [FP16, BF16], ids=lambda half: half.name)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_groups_are_cut_added_and_rounded_once(half: Half, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 32), min_size=1, max_size=3))
    depth = sum(sizes)
    seed = data.draw(st.integers(0, 1 << 20))
    close = data.draw(st.booleans())
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 16, (2, depth)).astype(np.uint16)
    if close:  # exponents near to each other, so that much cancels
        bits = half.narrow(rng.normal(size=(2, depth)).astype(np.float32))
    a, b = half.widen(bits)
    found = fused_product(a[:, None], b[:, None], sizes, np.zeros((1, 1), np.float32))[0, 0]
    total, at = np.float32(0), 0
    with np.errstate(all="ignore"):
        for size in sizes:
            total = total + _group(a[at : at + size].tolist(), b[at : at + size].tolist())
            total = total if not abs(total) < float(_TINY) else np.float32(0)
            at += size
    assert np.array_equal(found, total, equal_nan=True)


def test_blocks_and_transposition_change_nothing() -> None:
    rng = np.random.default_rng(5)
    a, b = (FP16.widen(FP16.narrow(rng.normal(size=(40, n)).astype(np.float32))) for n in (70, 1100))
    start = rng.normal(size=(70, 1)).astype(np.float32)
    whole = fused_product(a, b, [32, 8], start)
    assert np.array_equal(fused_product(b, a, [32, 8], start.T), whole.T)
    assert np.array_equal(fused_product(a[:, 60:], b[:, 1000:], [32, 8], start[60:]), whole[60:, 1000:])
