"""Where integers should end is beyond what a few dozen samples show, by what two hundred others lose there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bmcompiler.evaluation.tails import tail_of
from bmcompiler.numeric.arrays import Array

LEVELS = 128
DRAWS = 200


def exponential(random: np.random.Generator, count: int) -> Array:
    return random.exponential(1, (count, 4))


def scaled(random: np.random.Generator, count: int) -> Array:
    return np.abs(random.normal(0, 1, (count, 4))) * np.exp(random.normal(0, 0.4, (count, 1)))


def lost(values: Array, end: float) -> float:
    """Relative error of what is cut off."""
    return float(np.sqrt(np.square(np.maximum(values - end, 0)).sum() / np.square(values).sum()))


@pytest.mark.parametrize("draw", [exponential, scaled])
def test_fewer_of_others_are_cut_off(draw: Callable[[np.random.Generator, int], Array]) -> None:
    random, before, after = np.random.default_rng(3), [], []
    for _ in range(DRAWS):
        seen, others = draw(random, 48), draw(random, 200)
        tail = tail_of([*seen])
        assert tail is not None and tail.largest == seen.max()
        before.append(lost(others, tail.largest))
        after.append(lost(others, tail.end(LEVELS)))
    assert np.median(before) > 0.03 and np.median(after) < 0.005
    assert np.quantile(after, 0.95) < 0.6 * np.quantile(before, 0.95)


def test_many_values_keep_their_steps() -> None:
    seen = np.abs(np.random.default_rng(4).normal(0, 1, (48, 100_000)))
    tail = tail_of([*seen])
    assert tail is not None and tail.end(LEVELS) == tail.largest


def test_nothing_is_told_of_few_samples_or_of_peaks_that_are_alike() -> None:
    steps = [np.array([float(k), 1.0]) for k in range(1, 17)]
    assert tail_of(steps) is not None
    assert tail_of(steps[:15]) is None
    assert tail_of([np.ones(4)] * 20) is None
    assert tail_of([np.zeros(4)] * 20) is None
    assert tail_of([*steps, np.array([np.inf, 0.0])]) is None
    assert tail_of([*steps, np.array([np.nan, 0.0])]) is None
