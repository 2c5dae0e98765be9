"""Sums, stages and LRN of the device model."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dv_data import golden
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bmcompiler.backends.dv.arithmetic.accumulate import (
    Accumulator,
    convolve,
    convolve_depthwise,
    inner_product,
    insert_zeros,
)
from bmcompiler.backends.dv.arithmetic.exact import _cut
from bmcompiler.backends.dv.arithmetic.stages import activate, average_pool, lrn, max_pool, to_half
from bmcompiler.backends.dv.driver.commands import Pads, Pair
from bmcompiler.backends.dv.driver.structs import Activation

Half = NDArray[np.float16]


def any_halves(random: np.random.Generator, shape: tuple[int, ...], wild: bool) -> Half:
    """Usual values, or all finite patterns alike."""
    if not wild:
        return random.standard_normal(shape).astype(np.float16)
    bits = random.integers(0, 0x7C00, shape) | random.integers(0, 2, shape) << 15
    return bits.astype(np.uint16).view(np.float16)


@given(
    st.tuples(st.integers(5, 8), st.integers(5, 8), st.integers(1, 9), st.integers(1, 4)),
    st.tuples(*[st.integers(1, 3)] * 2),
    st.tuples(*[st.integers(0, 2)] * 4),
    st.tuples(*[st.integers(1, 2)] * 4),
    st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_sums_are_exact(
    dims: tuple[int, int, int, int],
    kernel: tuple[int, int],
    pads: tuple[int, int, int, int],
    steps: tuple[int, int, int, int],
    wild: bool,
) -> None:
    (w, h, c, m), (kx, ky), (sx, sy, dx, dy) = dims, kernel, steps
    random = np.random.default_rng(w * h * c * m)
    x, weights = any_halves(random, (w, h, c), wild), any_halves(random, (m, c, ky, kx), wild)
    bias = any_halves(random, (m,), wild)
    found = convolve(x, weights, bias, Pads(*pads), Pair(sx, sy), Pair(dx, dy))
    padded = np.pad(x, (pads[:2], pads[2:], (0, 0))).astype(float)
    for at in np.ndindex(*found.shape[:2]):
        for channel in range(m):
            total = math.fsum(
                padded[at[0] * sx + i * dx, at[1] * sy + j * dy, k] * float(weights[channel, k, j, i])
                for i, j, k in np.ndindex(kx, ky, c)
            )
            assert found[(*at, channel)] == np.float32(total + float(bias[channel]))


@pytest.mark.parametrize("axis", ["w", "h", "c", "depthwise w", "depthwise h"])
def test_sums_count_their_products_along_every_axis(axis: str) -> None:
    """Eleven products that fit 53 bits one by one and not together: what is small is lost in a sum in some order."""
    random = np.random.default_rng(1)
    rows = random.permuted(np.tile(np.array([65504] * 5 + [-65504] * 5 + [2**-24], np.float16), (60, 1)), axis=1)
    shape = {"w": (11, 1, 1), "h": (1, 11, 1), "c": (1, 1, 11)}[axis.rsplit(maxsplit=1)[-1]]
    some, (kx, ky, _) = convolve_depthwise if " " in axis else convolve, shape
    weights = np.full((1, 1 if " " in axis else shape[2], ky, kx), 2047, np.float16)
    for row in rows:
        assert some(row.reshape(shape), weights, np.zeros(1, np.float16)) == np.float32(2047 * 2**-24)


def test_depthwise_is_a_convolution_with_a_diagonal_kernel() -> None:
    random = np.random.default_rng(3)
    x, weights, bias = (any_halves(random, shape, False) for shape in ((9, 7, 5), (5, 1, 3, 2), (5,)))
    full = np.zeros((5, 5, 3, 2), np.float16)
    full[range(5), range(5)] = weights[:, 0]
    for accumulator in (Accumulator.EXACT, Accumulator.FLOAT32):
        where = (Pads(1, 0, 2, 1), Pair(2, 1), Pair(1, 2), accumulator)
        np.testing.assert_array_equal(convolve_depthwise(x, weights, bias, *where), convolve(x, full, bias, *where))


def test_accumulators_agree_where_all_are_exact() -> None:
    random = np.random.default_rng(4)
    x = random.integers(-2, 3, (6, 6, 70)).astype(np.float16)
    bias = random.integers(-2, 3, 5).astype(np.float16)
    for k, dilation in ((1, 1), (3, 1), (3, 2), (5, 1)):
        weights = random.integers(-1, 2, (5, 70, k, k)).astype(np.float16)
        results = [convolve(x, weights, bias, dilation=Pair(1, dilation), accumulator=each) for each in Accumulator]
        for other in results[1:]:
            np.testing.assert_array_equal(results[0], other)


def test_narrow_accumulators_stay_near_the_exact_sum() -> None:
    random = np.random.default_rng(5)
    x, weights, bias = (any_halves(random, shape, False) for shape in ((5, 5, 40), (4, 40, 3, 3), (4,)))
    exact, single, narrow = (convolve(x, weights, bias, accumulator=each) for each in Accumulator)
    assert 0 < np.abs(single - exact).max() < 1e-4
    assert 1e-4 < np.abs(narrow - exact).max() < 0.2


@pytest.mark.parametrize("accumulator", Accumulator)
def test_infinities_and_nan_spread(accumulator: Accumulator) -> None:
    x = np.array([np.inf, 1, 2], np.float16)
    weights = np.array([[1, 1, 1], [-1, 0, 0], [0, 1, 1]], np.float16)
    with np.errstate(invalid="ignore"):
        found = inner_product(x, weights, np.zeros(3, np.float16), accumulator)
    assert found[0] == np.inf and found[1] == -np.inf and np.isnan(found[2])


def test_zero_insertion() -> None:
    x = np.arange(1, 5, dtype=np.float16).reshape(2, 2, 1)
    assert insert_zeros(x, Pair(2, 3))[..., 0].tolist() == [[1, 0, 0, 2], [0, 0, 0, 0], [3, 0, 0, 4]]


def test_pooling() -> None:
    x = -np.arange(1, 13, dtype=np.float32).reshape(4, 3, 1)
    assert max_pool(x, Pair(2, 2), Pair(2, 2), Pads(1, 1, 1, 0))[..., 0].tolist() == [[-1, -2], [-4, -5], [-10, -11]]
    total = average_pool(x, Pair(2, 3), Pair(2, 1), Pads(), 0x3000)
    assert total[..., 0].tolist() == [[-21 / 8], [-57 / 8]]
    assert average_pool(x, Pair(2, 2), Pair(4, 4), Pads(1, 0, 1, 0), 0x3C00)[0, 0, 0] == -1


@pytest.mark.parametrize(
    ("function", "param", "expected"),
    [
        (Activation.NONE, 0, [-8, -1, 0, 1, 8]),
        (Activation.TANH, 0, np.tanh([-8, -1, 0, 1, 8])),
        (Activation.LEAKY_RELU, 0, [0, 0, 0, 1, 8]),
        (Activation.LEAKY_RELU, 0x3400, [-2, -0.25, 0, 1, 8]),
        (Activation.SIGMOID, 0, 1 / (1 + np.exp([8, 1, 0, -1, -8.0]))),
        (Activation.ELU, 0, [*np.expm1([-8.0, -1]), 0, 1, 8]),
        (Activation.RELU6, 0, [0, 0, 0, 1, 6]),
    ],
)
def test_activations(function: int, param: int, expected: list[float]) -> None:
    x = np.array([-8, -1, 0, 1, 8], np.float32)
    found = to_half(activate(x, function, param))
    np.testing.assert_array_equal(found, np.asarray(expected, np.float64).astype(np.float16))
    assert not np.signbit(found[2])


def test_prelu_has_a_slope_per_channel() -> None:
    x = np.full((1, 1, 2), -4, np.float32)
    assert activate(x, Activation.PRELU, 0, np.array([0.5, 0.25], np.float16)).tolist() == [[[-2, -1]]]


def test_lrn_of_the_vendor_model() -> None:
    data = golden()
    x = data["lrn0_in"].view(np.float16).transpose(2, 1, 0)
    found = to_half(lrn(x)).transpose(2, 1, 0).view(np.int16).astype(int)
    assert np.abs(found - data["lrn0_out"].view(np.int16)).max() <= 1


def test_lrn_of_large_and_empty_maps() -> None:
    x = np.zeros((1, 1, 16), np.float16)
    x[..., 5] = 60000
    found = lrn(x)
    assert np.isfinite(found).all() and not found[..., :5].any()


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_parts_of_numbers_have_as_few_bits_as_there_can_be(parts: int) -> None:
    random = np.random.default_rng(parts)
    for bits in range(1, 41):
        top = 2.0**bits
        values = np.array([0, 1, -1, top - 1, 1 - top, *np.trunc(random.uniform(-top, top, 20))])
        cut, most = _cut(values * 2.0**-24, -24, bits, parts), -(-bits // parts)
        np.testing.assert_array_equal(sum(cut), values * 2.0**-24)
        for number, part in enumerate(reversed(cut)):
            whole = part * 2.0 ** (24 - number * most)
            assert len(cut) == parts and (whole == np.trunc(whole)).all() and (abs(whole) < 2.0**most).all()
