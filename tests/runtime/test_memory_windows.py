"""Memory of a chip that transfers find among global memory: each window is the chip's own, to its last byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684.chip import CHIP as BM1684
from bmcompiler.backends.bm1684x.chip import CHIP as BM1684X
from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.simulator.bm1684.memory import Memories as Bm1684Memories
from bmcompiler.runtime.simulator.bm1684x.memories import Memories as Bm1684xMemories
from bmcompiler.runtime.simulator.memory import GlobalMemory

WINDOWS = [
    (Bm1684Memories, "l2", BM1684.l2_window, BM1684.l2_size),
    (Bm1684xMemories, "l2", BM1684X.l2_window, BM1684X.l2_size),
    (Bm1684xMemories, "static", BM1684X.static_window, BM1684X.static_size),
]
ONE = (1, 1, 1, 1)


@pytest.mark.parametrize("given", [False, True], ids=["own memory", "a program's memory"])
@pytest.mark.parametrize(("chip", "name", "base", "size"), WINDOWS)
def test_a_window_is_the_memory_of_the_chip(chip: Any, name: str, base: int, size: int, given: bool) -> None:
    memories = chip(GlobalMemory() if given else None)
    for offset, number in ((0, 3), (size - 1, 7)):
        memories.globals.tensor(base + offset, ONE, ONE).write(np.full(ONE, number))
        assert getattr(memories, name)[offset] == number
        getattr(memories, name)[offset] = number + 1
        assert memories.globals.tensor(base + offset, ONE, ONE).read().item() == number + 1
    with pytest.raises(SimulatorError):
        memories.globals.tensor(base + size, ONE, ONE).read()


def test_a_tensor_is_as_large_as_memory_unless_its_elements_overlap() -> None:
    """A kernel may move 100 million pixels by one command; by strides of 0 a few bytes would be as many."""
    memory, shape = GlobalMemory(), (1, 2560, 40_000, 1)
    memory.map(0, np.zeros(2560 * 40_000, np.uint8))  # no page of it is touched
    assert memory.tensor(0, shape, (0, 40_000, 1, 1)).view is not None
    for strides in ((0, 40_000, 0, 1), (0, 20_000, 1, 1)):
        with pytest.raises(SimulatorError, match="has more than 67108864 elements"):
            memory.tensor(0, shape, strides)
