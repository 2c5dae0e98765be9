"""Recorded calls on the simulator: afterwards every byte of memory must be as the vendor's model left it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tpukernel_golden import Case, cases

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.static_tables import static_memory
from bmcompiler.runtime.simulator.bm1684x import Memories, compile_plan

_GLOBAL_BYTES = 1 << 20


class Chip:
    """Memories that are named as in the recordings."""

    def __init__(self) -> None:
        self.memories = Memories()
        self.globals = np.zeros(_GLOBAL_BYTES, np.uint8)
        self.memories.globals.map(CHIP.global_base, self.globals)

        self.all_bytes = (self.memories.local.bytes, self.globals, self.memories.l2)

    def space(self, space: int, lane: int) -> NDArray[np.uint8]:
        if space == 1:
            return self.memories.local.bytes[lane]
        return {0: self.globals, 2: self.memories.static, 3: self.memories.l2}[space]

    def put(self, blocks: tuple[NDArray[np.int64], NDArray[np.uint8]]) -> None:
        at = 0
        for space, lane, offset, length in blocks[0].tolist():
            self.space(space, lane)[offset : offset + length] = blocks[1][at : at + length]
            at += length


@pytest.fixture(scope="module")
def chips() -> tuple[Chip, Chip]:
    """Two, to run on and to build the expected state in; their memories are zero between tests."""
    return Chip(), Chip()


@pytest.mark.parametrize("case", cases(), ids=str)
def test_memory_is_as_recorded(chips: tuple[Chip, Chip], case: Case) -> None:
    chip, expected = chips
    for one in chips:
        one.memories.static[...] = static_memory()
        one.put(case.before)
    expected.put(case.after)
    touched = [*case.before[0].tolist(), *case.after[0].tolist()]
    try:
        compile_plan(case.program().groups, chip.memories).run()
        assert np.array_equal(chip.memories.static, expected.memories.static)
        for space, lane, offset, length in touched:
            found, wanted = (one.space(space, lane)[offset : offset + length] for one in chips)
            assert np.array_equal(found, wanted)
    finally:
        for one in chips:
            for space, lane, offset, length in touched:
                one.space(space, lane)[offset : offset + length] = 0
        untouched = [part for part in chip.all_bytes if part.view(np.uint64).any()]
        for part in untouched:
            part[...] = 0
    assert not untouched
