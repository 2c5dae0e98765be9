"""Recorded single commands: after running one, every byte of memory must be as recorded."""

from __future__ import annotations

import numpy as np
import pytest
from bm1684x_golden import Case, cases, recorded, streams
from numpy.typing import NDArray

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.runtime.simulator.bm1684x import Memories, compile_plan

_GLOBAL_BYTES = 1 << 22


class Chip:
    """Memories that are named as in the recordings."""

    def __init__(self) -> None:
        self.memories = Memories()
        self.spaces = [np.zeros(_GLOBAL_BYTES, np.uint8), self.memories.static, self.memories.l2]
        self.memories.globals.map(CHIP.global_base, self.spaces[0])

    def put(self, blocks: tuple[NDArray[np.int64], NDArray[np.uint8]]) -> None:
        at = 0
        for space, lane, offset, length in blocks[0].tolist():
            target = self.memories.local.bytes[lane] if space == 1 else self.spaces[max(space - 1, 0)]
            target[offset : offset + length] = blocks[1][at : at + length]
            at += length

    def clear(self) -> None:
        for part in (self.memories.local.bytes, *self.spaces):
            part[...] = 0


@pytest.fixture(scope="module")
def chips() -> tuple[Chip, Chip]:
    """Two, to run on and to build the expected state in."""
    return Chip(), Chip()


def _check(chips: tuple[Chip, Chip], case: Case) -> None:
    chip, expected = chips
    tables = recorded(case.unit).get("static", np.zeros(0, np.uint8))
    for one in chips:
        one.clear()
        one.memories.static[: tables.size] = tables
        one.put(case.before)
    expected.put(case.after)
    compile_plan([streams(case)], chip.memories).run()
    assert np.array_equal(chip.memories.local.bytes, expected.memories.local.bytes)
    for found, wanted in zip(chip.spaces, expected.spaces):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("case", cases("gdma"), ids=str)
def test_transfer_leaves_all_memory_as_recorded(chips: tuple[Chip, Chip], case: Case) -> None:
    _check(chips, case)


@pytest.mark.parametrize("case", cases("vector"), ids=str)
def test_vector_command_leaves_all_memory_as_recorded(chips: tuple[Chip, Chip], case: Case) -> None:
    _check(chips, case)


@pytest.mark.parametrize("case", cases("cube"), ids=str)
def test_cube_command_leaves_all_memory_as_recorded(chips: tuple[Chip, Chip], case: Case) -> None:
    _check(chips, case)
