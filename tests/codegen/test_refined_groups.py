"""Groups are changed one place at a time, and cut twice as often while that makes the run quicker."""

from __future__ import annotations

from math import inf

import pytest

from bmcompiler.codegen.groups.refine import Span, refined


@pytest.mark.parametrize(("start", "wanted"), [(4, 32), (3, 24), (1, 1)])
def test_rows_are_cut_twice_as_often_while_that_is_quicker(start: int, wanted: int) -> None:
    def cost(spans: list[Span], most: float) -> float:
        if [span[:2] for span in spans] != [(0, 2)]:
            return inf
        rows = spans[0][2][2]
        return 1000 / rows + rows  # what waits for the first slice, and what each slice begins with

    given = [(0, 2, (1, 1, start, 1))]
    assert refined(given, cost(given, inf), cost, 4) == (
        [(0, 2, (1, 1, wanted, 1))],
        cost([(0, 2, (1, 1, wanted, 1))], inf),
    )


def test_a_long_run_is_planned_a_few_times_alone() -> None:
    asked: list[list[Span]] = []

    def cost(spans: list[Span], most: float) -> float:
        asked.append(spans)
        return inf

    given: list[Span] = [(number, number + 2, (1, 1, 4, 1)) for number in range(0, 800, 2)]
    assert refined(given, 1.0, cost, 800) == (given, 1.0)
    assert len(asked) == 3
