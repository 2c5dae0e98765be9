"""Products of 16-bit floats with 16-bit results: quick where the rounding is certain, the unit's bits everywhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from bmcompiler.numeric import half_products
from bmcompiler.numeric.fused import fused_product
from bmcompiler.numeric.half_products import half_product
from bmcompiler.numeric.halves import BF16, FP16, Half

Floats = NDArray[np.float32]
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]
ROWS, COLUMNS = 24, 64


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return rng.standard_normal(shape).astype(np.float32)


def _wide(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return normal(rng, shape) * np.exp2(rng.uniform(-14, 6, shape)).astype(np.float32)


def _channels(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return normal(rng, shape) * np.exp2(rng.uniform(-20, 4, (1, shape[1]))).astype(np.float32)


def _dead(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return np.where(rng.random((1, shape[1])) < 0.3, np.float32(-0.0), normal(rng, shape)).astype(np.float32)


DRAWS: dict[str, Draw] = {
    "normal": normal,
    "rectified": lambda rng, shape: np.maximum(normal(rng, shape), 0),
    "exponents over decades": _wide,
    "channels over decades": _channels,
    "dead channels": _dead,
    "whole numbers, whose sums are ties": lambda rng, shape: rng.integers(-64, 65, shape).astype(np.float32),
    "equal terms, which cancel": lambda rng, shape: rng.choice(np.array([-1.5, 1.5], np.float32), shape),
    "tiny": lambda rng, shape: normal(rng, shape) * np.float32(2.0**-70),
    "huge": lambda rng, shape: normal(rng, shape) * np.float32(2.0**60),
    "zero": lambda rng, shape: np.zeros(shape, np.float32),
}
DEPTHS: dict[str, list[int]] = {
    "part of a group": [7],
    "groups and a rest": [32] * 3 + [5],
    "rests of taps": [32] * 9 + [3] * 9,
    "many chunks": [32] * 37,
}


def cases(half: Half, draws: tuple[str, str], groups: list[int], seed: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    a, b = (
        half.widen(half.narrow(DRAWS[name](rng, (sum(groups), count)))) for name, count in zip(draws, (ROWS, COLUMNS))
    )
    return a, b, normal(rng, (ROWS, 1)) * np.float32(2.0 ** int(rng.integers(-8, 8)))


@pytest.mark.parametrize("half", [FP16, BF16], ids=lambda half: half.name)
@pytest.mark.parametrize("other", ["normal", "exponents over decades", "equal terms, which cancel"])
@pytest.mark.parametrize("draw", list(DRAWS))
def test_the_bits_are_those_of_the_unit(half: Half, draw: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_products, "_SMALL", 0)
    for seed, groups in enumerate(DEPTHS.values()):
        a, b, start = cases(half, (draw, other), groups, seed)
        for first in (start, np.zeros((1, 1), np.float32), np.full((1, 1), -0.0, np.float32)):
            with np.errstate(all="ignore"):
                expected = half.narrow(fused_product(a, b, groups, first))
            assert np.array_equal(half_product(a, b, groups, first, half), expected), (groups, first.ravel()[:1])


@pytest.mark.parametrize("half", [FP16, BF16], ids=lambda half: half.name)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_infinities_and_nan_are_those_of_the_unit(half: Half, value: float) -> None:
    groups = DEPTHS["many chunks"]
    a, b, start = cases(half, ("normal", "normal"), groups, 0)
    for array, place in ((a, (40, 3)), (b, (40, 3)), (start, (3, 0))):
        broken = array.copy()
        broken[place] = value
        given = [broken if each is array else each for each in (a, b, start)]
        with np.errstate(all="ignore"):
            expected = half.narrow(fused_product(given[0], given[1], groups, given[2]))
        assert np.array_equal(half_product(given[0], given[1], groups, given[2], half), expected)


def test_few_results_are_uncertain_and_those_are_wrong_without_the_units_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise nothing is won by the interval, or nothing asked of what settles the rest."""
    groups, found = DEPTHS["groups and a rest"], []

    def unsettled(bits: NDArray[np.uint16], uncertain: NDArray[np.bool_], *rest: object) -> NDArray[np.uint16]:
        found.append(uncertain.mean())
        return bits

    monkeypatch.setattr(half_products, "_settled", unsettled)
    for half, most in ((FP16, 0.12), (BF16, 0.02)):
        a, b, start = cases(half, ("normal", "rectified"), groups, 0)
        found.clear()
        low = half_product(a, b, groups, start, half)
        assert 0 < np.mean(found) < most
        assert not np.array_equal(low, half.narrow(fused_product(a, b, groups, start)))
