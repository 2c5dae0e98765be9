"""Streaming histograms and the thresholds chosen from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bmcompiler.options import METHODS
from bmcompiler.quant.histogram import LEVELS, Histogram, threshold

RANDOM = np.random.default_rng(0)
NORMAL = RANDOM.normal(size=200_000).astype(np.float32)
finite = st.floats(-(2.0**60), 2.0**60, width=32)


def filled(*parts: np.ndarray, bins: int = 2048) -> Histogram:
    histogram = Histogram(bins)
    for part in parts:
        histogram.add(part)
    return histogram


@given(st.lists(arrays.arrays(np.float32, st.integers(1, 40), elements=finite), min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_counts_are_those_of_one_histogram_over_all_data(parts: list[np.ndarray]) -> None:
    histogram = filled(*parts, bins=256)
    data = np.abs(np.concatenate([part.ravel() for part in parts])).astype(np.float64)
    assert histogram.largest == data.max()
    assert histogram.zeros == (data == 0).sum()
    assert histogram.total == data.size
    if histogram.limit:
        assert data.max() < histogram.limit
        index = np.floor(data / histogram.width).astype(int)
        np.testing.assert_array_equal(histogram.counts, np.bincount(index, minlength=256))


def test_equals_numpy_histogram() -> None:
    histogram = filled(NORMAL)
    counts, _ = np.histogram(np.abs(NORMAL), 2048, (0, histogram.limit))
    np.testing.assert_array_equal(histogram.counts, counts)


def test_the_order_of_the_data_does_not_matter() -> None:
    parts = np.split(NORMAL * np.linspace(0.1, 9, NORMAL.size, dtype=np.float32), 10)
    np.testing.assert_array_equal(filled(*parts).counts, filled(*parts[::-1]).counts)


def test_an_odd_number_of_bins_grows_too() -> None:
    histogram = filled(np.ones(3), np.full(4, 100.0), bins=3 * 128 + 1)
    assert histogram.total == 7 and histogram.largest == 100


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        filled(np.array([1.0, value]))


@pytest.mark.parametrize("method", METHODS)
def test_zeros_alone_have_no_threshold(method: str) -> None:
    assert threshold(filled(np.zeros(100)), method) == 0
    assert threshold(Histogram(), method) == 0


@pytest.mark.parametrize("method", METHODS)
def test_even_spread_needs_the_whole_range(method: str) -> None:
    data = np.random.default_rng(5).uniform(-3, 3, 100_000)
    assert threshold(filled(data), method) == pytest.approx(3, rel=0.01)


@pytest.mark.parametrize("method", ["kl", "percentile"])
def test_single_outliers_do_not_stretch_the_range(method: str) -> None:
    assert threshold(filled(NORMAL, np.array([50.0])), method) < 5


def test_max_is_exact() -> None:
    assert threshold(filled(NORMAL), "max") == np.abs(NORMAL).max()


@pytest.mark.parametrize("percentile", [90, 99, 99.9, 100])
def test_percentile_is_within_a_bin_of_numpy(percentile: float) -> None:
    histogram = filled(NORMAL)
    exact = np.percentile(np.abs(NORMAL), percentile)
    assert threshold(histogram, "percentile", percentile) == pytest.approx(exact, abs=2 * histogram.width)


def quantization_error(data: np.ndarray, limit: float) -> float:
    step = limit / LEVELS
    return float(np.square(np.clip(np.round(data / step), -LEVELS, LEVELS - 1) * step - data).mean())


@pytest.mark.parametrize("data", [NORMAL, RANDOM.laplace(size=200_000), np.append(NORMAL, 50)])
def test_mse_is_close_to_the_best_threshold(data: np.ndarray) -> None:
    magnitudes = np.abs(data)
    best = min(quantization_error(magnitudes, t) for t in np.linspace(2, magnitudes.max(), 200))
    assert quantization_error(magnitudes, threshold(filled(data), "mse")) < 1.05 * best


def test_kl_is_near_the_smallest_divergence_computed_step_by_step() -> None:
    histogram = filled(np.random.default_rng(11).laplace(size=50_000), bins=512)
    counts = histogram.used()
    scores = {cut: divergence(counts, cut) for cut in range(LEVELS, counts.size + 1)}
    chosen = int(np.ceil(threshold(histogram, "kl") / histogram.width))
    allowed = [cut for cut in scores if counts[:cut].sum() >= 0.9995 * counts.sum()]
    assert scores[chosen] == pytest.approx(min(scores[cut] for cut in allowed), rel=1e-6)


def divergence(counts: np.ndarray, cut: int) -> float:
    """KL divergence of the clipped distribution from its 128-level form, group by group."""
    clipped = counts[:cut].astype(float)
    clipped[-1] += counts[cut:].sum()
    spread = np.zeros(cut)
    for level in range(LEVELS):
        group = slice(level * cut // LEVELS, (level + 1) * cut // LEVELS)
        occupied = clipped[group] > 0
        if occupied.any():
            spread[group] = np.where(occupied, max(counts[group].sum(), 1e-4) / occupied.sum(), 0)
    p, q = clipped / clipped.sum(), spread / counts[:cut].sum()
    return float(sum(a * np.log(a / b) for a, b in zip(p, q) if a > 0))


def test_kl_keeps_the_image_when_most_values_are_a_constant_background() -> None:
    background = np.repeat(np.float32([0.11, 0.23, 0.37, 0.52]), 20_000)
    image = np.abs(np.random.default_rng(11).normal(1.5, 1, 20_000))
    assert threshold(filled(background, image), "kl") > np.percentile(image, 99)


def test_few_values_keep_their_range() -> None:
    data = np.random.default_rng(11).normal(size=200)
    assert threshold(filled(data), "kl") == pytest.approx(np.abs(data).max(), rel=0.05)
