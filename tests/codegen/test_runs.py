"""Index lists as runs: every index at its place, and few runs for the lists that real layers have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.codegen.runs import IndexRun, runs


def spread(found: list[IndexRun]) -> list[tuple[int, int]]:
    """(position, index) of everything the runs move."""
    moved = []
    for run in found:
        for steps in np.ndindex(*(axis.size for axis in run.axes)):
            at = run.at + sum(i * axis.dst for i, axis in zip(steps, run.axes))
            moved.append((at, run.start + sum(i * axis.src for i, axis in zip(steps, run.axes))))
    return sorted(moved)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=40))
def test_runs_move_every_index(indices: list[int]) -> None:
    assert spread(runs(np.array(indices, np.int64))) == list(enumerate(indices))


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.integers(0, 30), st.integers(0, 30)))
def test_runs_to_given_positions(moves: dict[int, int]) -> None:
    places = sorted(moves)
    assert spread(runs(np.array([moves[at] for at in places], np.int64), np.array(places, np.int64))) == sorted(
        moves.items()
    )


@pytest.mark.parametrize(
    ("indices", "count"),
    [
        ([], 0),
        ([7], 1),
        (list(range(9)), 1),
        ([3, 5, 7], 1),
        ([0, 0, 1, 1, 2, 2], 1),
        ([0, 1, 2] * 3, 1),
        ([0, 1, 1, 2, 2, 3, 3, 4], 1),
        ([0, 3, 1, 4, 2, 5], 1),
        ([0, 0, 0, 1, 1, 2, 2, 3, 3, 3], 3),
        ([5, 0, 1, 2, 3], 2),
        ([i * 2 // 3 for i in range(300)], 2),
        ([i * 5 // 3 for i in range(300)], 2),
        ([i * 3 // 7 for i in range(700)], 2),
    ],
)
def test_few_runs(indices: list[int], count: int) -> None:
    found = runs(np.array(indices, np.int64))
    assert spread(found) == list(enumerate(indices))
    assert sum(run.copies for run in found) <= count


def test_what_runs_backwards_counts_its_elements() -> None:
    assert sum(run.copies for run in runs(np.array([3, 2, 1, 0, 1, 2, 3]))) == 4


def test_mirrored_borders_are_looped_over_and_nothing_else() -> None:
    assert sum(run.copies for run in runs(np.pad(np.arange(20), 3, mode="reflect"))) == 7
