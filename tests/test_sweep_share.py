"""Sweeps that one run leaves out are asked by another."""

from __future__ import annotations

from pathlib import Path

import pytest
from repeated_cases import REPEATED, is_swept
from sweep_share import Share

NAMES = [f"tests/test_{number}.py::test_it[{number % 7}]" for number in range(2_000)]


def test_a_part_is_its_share_of_all_and_the_same_twice() -> None:
    asked = [name for name in NAMES if Share.read("0x870195fc/2").holds(name)]
    assert 900 < len(asked) < 1_100
    assert asked == [name for name in NAMES if Share(0x870195FC, 2).holds(name)]
    assert all(Share.read("7/1").holds(name) for name in NAMES)


def test_a_dozen_commits_ask_all() -> None:
    assert {name for seed in range(12) for name in NAMES if Share(seed, 2).holds(name)} == set(NAMES)


@pytest.mark.parametrize("text", ["2", "1/0", "x/2", "1/2/3"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Share.read(text)


@pytest.mark.parametrize("test", sorted(REPEATED))
def test_what_is_asked_in_part_has_cases(test: str) -> None:
    file, _, name = test.partition("::")
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    (decorated,) = [part for part in text.split("\n\n\n") if f"\ndef {name}(" in part]
    assert "@pytest.mark.parametrize(" in decorated


def test_cases_are_left_out_and_whole_tests_are_not() -> None:
    names = [f"tests/test_cliffs.py::test_moved_elements_are_those_of_evaluate[{case}]" for case in range(300)]
    assert 170 < sum(is_swept(name) for name in names) < 230
    assert not is_swept("tests/test_cliffs.py::test_another[1]")
    assert not is_swept("tests/test_cliffs.py::test_moved_elements_are_those_of_evaluate")
