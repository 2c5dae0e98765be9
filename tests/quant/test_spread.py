"""Samples that are taken from all over meet all kinds of what comes in turns."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.inputs.held_back import parted
from bmcompiler.inputs.source import InputData
from bmcompiler.inputs.spread import spread


@pytest.mark.parametrize(("count", "of"), [(1, 1), (1, 9), (3, 4), (7, 7), (16, 50), (16, 1000), (0, 5)])
def test_numbers_rise_and_come_from_all_parts(count: int, of: int) -> None:
    found = spread(count, of)
    parts = [(k * of // count, (k + 1) * of // count) for k in range(count)]
    assert len(found) == count
    assert all(low <= number < high for number, (low, high) in zip(found, parts))


@pytest.mark.parametrize("kinds", range(2, 7))
@pytest.mark.parametrize(("count", "of"), [(16, 32), (16, 48), (16, 64), (32, 128), (128, 512), (100, 300)])
def test_what_comes_in_turns_is_met_about_alike(kinds: int, count: int, of: int) -> None:
    met = np.bincount(spread(count, of) % kinds, minlength=kinds)
    assert count / kinds / 2 <= met.min() + 1 and met.max() - 1 <= 2 * count / kinds, met


@pytest.mark.parametrize("kinds", [2, 3, 4, 5])
def test_what_is_held_back_of_kinds_in_turns_is_of_all_kinds(kinds: int) -> None:
    """As faces and other pictures in turn: of every fourth one only other pictures would judge."""
    numbers = np.arange(64)
    parts = parted(InputData({"x": numbers}))
    assert parts is not None
    rest, held_back = (np.asarray(each["x"]) for each in parts)
    assert sorted([*rest, *held_back]) == numbers.tolist() and len(held_back) == 16
    assert all(np.bincount(part % kinds, minlength=kinds).min() >= len(part) / kinds / 2 for part in (rest, held_back))
