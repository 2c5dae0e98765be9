"""What commands touch, as it is noted: rows that follow each other become one, and no byte is lost or added."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from bmcompiler.runtime.simulator.notes import Note, Notes

SHAPE, STRIDES = (2, 3, 1, 4), (4096, 512, 64, 16)


def touched(note: Note) -> set[tuple[int, bool, int, int, int]]:
    """(record, write, space, lane, byte) of all bytes of all elements."""
    starts = [sum(i * stride for i, stride in zip(index, note.strides)) for index in np.ndindex(*note.shape)]
    same = note.record, note.write, note.space, note.lane
    return {(*same, note.offset + start + byte) for start in starts for byte in range(note.item)}


@pytest.mark.parametrize("sizes", list(product((1, 2, 4), repeat=3)))
def test_rows_that_follow_each_other_are_one(sizes: tuple[int, ...]) -> None:
    notes, at = Notes(), 256
    for size in sizes:
        notes.add(0, (5, at), SHAPE, STRIDES, size)
        at += size
    assert notes.found == [Note(0, False, 0, 5, 256, SHAPE, STRIDES, sum(sizes))]


OTHERS: list[dict[str, object]] = [
    *({"offset": offset} for offset in (254, 257, 259)),
    {"strides": (4096, 512, 64, 8)},
    {"shape": (1, 3, 1, 4)},
    {"lane": 6},
    {"space": 1},
    {"write": True},
    {"record": 1},
]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_others_stay_apart(other: dict[str, object]) -> None:
    notes = Notes()
    first = Note(0, False, 0, 5, 256, SHAPE, STRIDES, 2)
    second = first._replace(**{"offset": 258, "item": 4, **other})
    for note in (first, second):
        notes.record, notes.write = note.record, note.write
        notes.add(note.space, (note.lane, note.offset), note.shape, note.strides, note.item)
    assert notes.found == [first, second]


def test_no_byte_is_lost_or_added() -> None:
    random = np.random.default_rng(3)
    for _ in range(200):
        notes, want, at = Notes(), set(), 64
        for record in range(int(random.integers(1, 5))):
            notes.record, notes.write = record // 2, bool(random.integers(0, 4) == 0)
            note = Note(notes.record, notes.write, 0, 0, at, SHAPE, STRIDES, int(random.choice([1, 2, 4])))
            notes.add(0, (0, at), SHAPE, STRIDES, note.item)
            want |= touched(note)
            at += note.item + int(random.choice([0, 0, 0, 1, -1]))
        assert set().union(*map(touched, notes.found)) == want
