"""Wait ids: a command waits for the newest one of the other engine that it conflicts with, and for nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bmcompiler.codegen.hazards import WaitIds

A, B = (0, 8), (8, 16)


def test_commands_wait_for_what_they_need() -> None:
    ids = WaitIds()
    assert ids.issue(1, [], [A]) == (1, 0)  # load A
    assert ids.issue(1, [], [B]) == (2, 0)  # load B, while A is computed
    assert ids.issue(0, [A], [(16, 24)]) == (1, 1)
    assert ids.issue(0, [B], [(24, 32)]) == (2, 2)
    assert ids.issue(1, [(16, 24)], []) == (3, 1)
    assert ids.issue(1, [], [A]) == (4, 0)  # the store has waited for the reader of A
    assert ids.issue(1, [], [B]) == (5, 2)


def test_serial_commands_wait_for_all_before_them() -> None:
    ids = WaitIds(serial=True)
    assert [ids.issue(engine, [], []) for engine in (1, 1, 0, 1)] == [(1, 0), (2, 0), (1, 2), (3, 1)]


ranges = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 8)).map(lambda one: (one[0], one[0] + one[1])), max_size=2
)


def meet(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> bool:
    return any(x[0] < y[1] and y[0] < x[1] for x in a for y in b)


@given(st.lists(st.tuples(st.integers(0, 1), ranges, ranges), max_size=30))
def test_every_conflict_is_ordered(program: list[tuple[int, list[tuple[int, int]], list[tuple[int, int]]]]) -> None:
    ids = WaitIds()
    done: list[dict[int, int]] = []  # per command: ids of each engine that are finished before it starts
    issued = [0, 0]
    newest: list[dict[int, int]] = [{0: 0, 1: 0}, {0: 0, 1: 0}]
    known: dict[tuple[int, int], dict[int, int]] = {}
    for engine, reads, writes in program:
        own, wait = ids.issue(engine, reads, writes)
        before = {**newest[engine], engine: issued[engine]}
        if wait:
            other = known[1 - engine, wait]
            before = {0: max(before[0], other[0]), 1: max(before[1], other[1])}
            before[1 - engine] = max(before[1 - engine], wait)
        issued[engine] = own
        newest[engine] = known[engine, own] = before
        done.append(before)
    counts = [0, 0]
    places = []
    for engine, _, _ in program:
        counts[engine] += 1
        places.append((engine, counts[engine]))
    for later, (engine, reads, writes) in enumerate(program):
        for earlier in range(later):
            other, others_reads, others_writes = program[earlier]
            conflict = meet(writes, others_reads) or meet(writes, others_writes) or meet(reads, others_writes)
            if other != engine and conflict:
                assert done[later][other] >= places[earlier][1]
