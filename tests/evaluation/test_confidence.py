"""What is said of decisions and errors of other samples holds of these, as often as is said."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.evaluation.confidence import SURE, larger_at_most, share_at_least
from bmcompiler.evaluation.measures import Count

DRAWS = 400


def held(share: float, steps: int, each: int, spread: float = 0.0) -> float:
    """How often the bound is below the true share. spread: variance of shares of steps, over that of one decision."""
    random, times = np.random.default_rng(1), 0
    for _ in range(DRAWS):
        if spread:
            size = 1 / spread - 1
            shares = random.beta(share * size, (1 - share) * size, steps)
        else:
            shares = np.full(steps, share)
        least = share_at_least([Count(float(kept), each) for kept in random.binomial(each, shares)])
        assert least is not None
        times += least <= share
    return times / DRAWS


@pytest.mark.parametrize(("share", "steps", "each"), [(0.95, 16, 7), (0.8, 16, 1), (0.99, 40, 50), (0.5, 16, 10)])
def test_bounds_of_independent_decisions_hold(share: float, steps: int, each: int) -> None:
    assert held(share, steps, each) >= SURE - 0.03


@pytest.mark.parametrize("share", [0.9, 0.7])
def test_bounds_of_decisions_that_are_lost_together_hold_nearly_as_often(share: float) -> None:
    assert held(share, 16, 40, spread=0.2) >= SURE - 0.06


def test_decisions_of_pictures_that_differ_say_less() -> None:
    alike, apart = [Count(9, 10)] * 16, [Count(10, 10)] * 14 + [Count(2, 10)] * 2
    assert sum(alike, Count()) == sum(apart, Count())
    some, fewer = map(share_at_least, (alike, apart))
    assert some == pytest.approx(0.854, abs=1e-3)  # 144 of 160 by Wilson's formula
    assert fewer is not None and fewer < 0.8


def test_the_more_decisions_the_nearer_is_the_bound() -> None:
    bounds = [share_at_least([Count(1, 1)] * n) for n in (1, 16, 100, 10_000)]
    assert bounds == pytest.approx([0.270, 0.855, 0.974, 0.9997], abs=1e-3)
    assert share_at_least([Count(0, 5)]) == 0.0


def test_nothing_is_said_without_decisions_or_of_cosines() -> None:
    assert share_at_least([]) is None
    assert share_at_least([Count(0.0, 0)]) is None
    assert share_at_least([Count(3.98, 4)]) is None


def errors_held(spread: float, steps: int) -> tuple[float, float]:
    """How often bounds hold of 200 others, and by what they are above them mostly (in errors)."""
    random = np.random.default_rng(2)
    noise = np.exp(random.normal(0, spread, (steps, DRAWS)))
    signal = np.exp(random.normal(0, 0.2, (steps, DRAWS)))
    others = np.exp(random.normal(0, spread, (200, DRAWS))).mean(0) / np.exp(0.2**2 / 2)
    bounds = larger_at_most(noise, signal) * noise.sum(0) / signal.sum(0)
    return float((bounds >= others).mean()), float(np.median(np.sqrt(bounds / others)))


@pytest.mark.parametrize(("spread", "steps", "above"), [(0.3, 16, 1.15), (0.8, 16, 1.4), (0.8, 64, 1.2), (0.3, 4, 1.4)])
def test_bounds_of_errors_hold_though_few_samples_make_most_of_them(spread: float, steps: int, above: float) -> None:
    held, more = errors_held(spread, steps)
    assert held >= SURE - 0.02
    assert 1 < more < above


def test_parts_are_told_apart_and_nothing_is_said_of_what_is_not_known() -> None:
    noise = np.array([[1.0, 1.0, 0.0, np.nan, 1.0], [1.0, 3.0, 0.0, 1.0, 1.0], [1.0, 2.0, 0.0, 1.0, 1.0]])
    signal = np.array([[2.0, 2.0, 1.0, 1.0, 0.0]] * 3)
    found = larger_at_most(noise, signal)
    assert found[[0, 2, 3, 4]].tolist() == [1.0, 1.0, 1.0, 1.0] and found[1] > 2
    assert larger_at_most(noise[:1], signal[:1]).tolist() == [1.0] * 5
