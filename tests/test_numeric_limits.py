"""Arithmetic at its limits: the largest and the least that is still taken so, and the next number that is not."""

from __future__ import annotations

import threading
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from bmcompiler.numeric import arith, blas, factors, floats, fp32, fused, quant_modes, sampled
from bmcompiler.numeric.rounding import Rounding, shift_right

TINY = np.float32(2.0**-126)


def test_the_largest_multiplier_is_taken_as_it_is() -> None:
    assert factors.apart(factors.MOST_MULTIPLIER * 2.0**-31)[0].tolist() == [factors.MOST_MULTIPLIER, 31]
    assert factors.apart((1 << 31) - 2)[0].tolist() == [(1 << 31) - 2, 0]
    with pytest.raises(ValueError, match="below"):
        factors.apart(factors.MOST_MULTIPLIER)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_a_shift_by_all_bits_leaves_what_the_rounding_makes(dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.array([limits.min, limits.min + 1, -1, 0, 1, limits.max], dtype)
    bits = 8 * x.dtype.itemsize
    want = [int(np.floor(Fraction(int(value), 1 << bits) + Fraction(1, 2))) for value in x]
    assert shift_right(x, bits, Rounding.HALF_UP).tolist() == want


@pytest.mark.parametrize("scale", [quant_modes.SMALLEST_SCALE, quant_modes.LARGEST_SCALE])
def test_scales_reach_up_to_both_ends(scale: float) -> None:
    found = quant_modes.rescale(scale)
    assert found.residual * 2.0**-found.shift == scale
    beyond = scale * (2.0 if scale > 1 else 0.5)
    with pytest.raises(ValueError, match="a scale must be"):
        quant_modes.rescale(beyond)


def test_numbers_with_a_normal_reciprocal() -> None:
    assert quant_modes.is_single(2.0**-126) and quant_modes.is_single(2.0**126)
    assert not any(map(quant_modes.is_single, (2.0**-127, 2.0**127, 0.1, 2.0**-126 * (1 + 2.0**-30))))


@pytest.mark.parametrize(("dtype", "zero_point"), [("i8", -7), ("u8", 200), ("i8", 100)])
def test_halves_go_to_the_even_integer_before_the_zero_point(dtype: str, zero_point: int) -> None:
    x = np.arange(-700, 700, dtype=np.float32) / 2
    limits = np.iinfo(arith.NUMPY_DTYPES[dtype])
    want = [min(max(round(float(value)) + zero_point, limits.min), limits.max) for value in x]
    assert quant_modes.quantize_even(x, 1.0, dtype, zero_point).tolist() == want


def test_brain_floats_end_where_they_round_to_nothing() -> None:
    """7 * 73 = 511: the products are 2**-126 * (1 - 2**-9), which rounds up, and the next number below."""

    def bits(value: float) -> np.ndarray:
        return (np.array([value], np.float32).view(np.uint32) >> 16).astype(np.uint16)

    assert floats.BF16.multiply(bits(7 * 2.0**-60), bits(73 * 2.0**-75)).tolist() == [0x0080]
    assert floats.BF16.multiply(bits(6 * 2.0**-60), bits(85 * 2.0**-75)).tolist() == [0]


def test_a_product_that_is_the_smallest_normal_number_stays() -> None:
    one, ones = np.full((1, 1), 2.0**-63, np.float32), np.zeros((1, 1), np.float32)
    assert fused.fused_product(one, one, [1], ones)[0, 0] == TINY
    assert fused.fused_product(one, one * np.float32(0.75), [1], ones)[0, 0] == 0


@pytest.mark.parametrize(("a", "b", "want"), [(18631, 1801, TINY), (30, 1118481, 0)])
def test_a_product_rounds_up_to_the_smallest_normal_number_or_is_zero(a: int, b: int, want: float) -> None:
    """18631 * 1801 = 2**25 - 1: so many parts of 2**25 of 2**-126 round up; one less is 0."""
    found = fp32.multiply(np.array([a * 2.0**-80], np.float32), np.array([b * 2.0**-71], np.float32))
    assert found[0] == want


def test_two_threads_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []

    def note() -> None:
        ran.append(threading.get_ident())

    for threads in (1, 2):
        monkeypatch.setattr(blas, "_available", lambda threads=threads: threads)
        ran.clear()
        blas.in_parallel([note, note])
        assert len(ran) == 2 and (threading.get_ident() in ran) == (threads == 1)


CONV = {"strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0)}


@pytest.mark.parametrize(
    ("x", "weight", "groups", "more"),
    [
        ((1, 4, 5, 5), (4, 4, 1, 1), 0, {}),
        ((1, 4, 5, 5), (4, 3, 1, 1), 1, {}),
        ((1, 4, 5, 5), (3, 2, 1, 1), 2, {}),
        ((1, 4, 5, 5), (4, 4, 6, 1), 1, {}),
        ((1, 4, 5, 5), (4, 4, 1, 1), 1, {"strides": (0, 1)}),
    ],
)
def test_convolutions_that_do_not_fit_are_refused(
    x: tuple[int, ...], weight: tuple[int, ...], groups: int, more: dict[str, tuple[int, ...]]
) -> None:
    run = partial(arith.conv2d, np.ones(x, np.int8), np.ones(weight, np.int8), groups=groups, **{**CONV, **more})
    with pytest.raises(ValueError, match="fit"):
        run()


@pytest.mark.parametrize(("images", "results", "depth"), [(0, 3, 2), (1, 0, 2), (1, 3, 0)])
def test_convolutions_of_nothing_are_zeros(images: int, results: int, depth: int) -> None:
    x, weight = np.ones((images, depth, 5, 4), np.int8), np.ones((results, depth, 2, 2), np.int8)
    found = arith.conv2d(x, weight, groups=1, **CONV)
    assert found.shape == (images, results, 4, 3) and not found.any()


def test_sampled_sums_begin_where_they_are_told() -> None:
    random = np.random.default_rng(1)
    a, b, start = (random.standard_normal(shape).astype(np.float32) for shape in ((5, 2), (5, 3), (2, 1)))
    found = sampled.real_sums(a, b, start, lambda sums: sums)
    np.testing.assert_allclose(found, start + a.T.astype(np.float64) @ b, rtol=1e-6)
