"""Ids and waits of commands in groups against a plain count, whatever is issued and wherever groups end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmcompiler.backends.bm168x.builder import OTHER, Engine, GroupBuilder, Ticket
from bmcompiler.instructions.order import STREAMS

STEPS = st.lists(
    st.one_of(
        st.none(),  # a program ends here: the next command begins a group
        st.tuples(st.sampled_from(STREAMS), st.none() | st.lists(st.integers(1, 12), max_size=4)),
    ),
    max_size=40,
)
"""Commands of an engine, which depend on all so far or on those so many commands ago."""


@given(st.integers(1, 5), STEPS)
def test_a_command_waits_for_the_newest_of_its_group_that_it_depends_on(most: int, steps: list[Any]) -> None:
    compare(most, steps)


@pytest.mark.parametrize("ends", [(), (2,), (3,), (2, 5), (4, 8, 12)])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_group_is_taken_for_an_earlier_one(most: int, ends: tuple[int, ...]) -> None:
    """Every command depends on all before it, and programs end in between."""
    steps: list[Any] = []
    for number in range(24):
        steps += [(list(STREAMS)[number % 2], list(range(1, number + 1)))] + [None] * (number + 1 in ends)
    compare(most, steps)


def compare(most: int, steps: list[Any]) -> None:
    """Issue commands, end programs, and count the same here."""
    builder, counted, group = GroupBuilder(most), dict.fromkeys(STREAMS, 0), 0
    tickets: list[Ticket] = []
    made: list[tuple[int, Engine, int]] = []  # the same as tickets, counted here
    groups, wanted = [], []
    for step in steps:
        if step is None:
            groups += builder.finish()
            counted, group = dict.fromkeys(STREAMS, 0), group + any(counted.values())
            continue
        engine, back = step
        if counted[engine] == most:
            counted, group = dict.fromkeys(STREAMS, 0), group + 1
        number, other = counted[engine] + 1, OTHER[engine]
        on = None if back is None else [len(made) - each for each in back if each <= len(made)]
        waits = [n for g, e, n in (made if on is None else [made[each] for each in on]) if (g, e) == (group, other)]
        wanted.append((group, engine, bytes([number, max(waits, default=0)])))
        after = None if on is None else [tickets[each] for each in on]
        tickets.append(builder.issue(engine, lambda number, wait: bytes([number, wait]), after))
        counted[engine], made = number, [*made, (group, engine, number)]
    groups += builder.finish()
    for index, found in enumerate(groups):
        for engine, commands in ((Engine.TIU, found.tiu), (Engine.GDMA, found.gdma)):
            assert commands == b"".join(code for g, e, code in wanted if (g, e) == (index, engine))
    assert len(groups) == len({g for g, _, _ in wanted})
    assert builder.counts == {engine: sum(e is engine for _, e, _ in wanted) for engine in STREAMS}
