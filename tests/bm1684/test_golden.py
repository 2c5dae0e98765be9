"""Recorded single instructions: after running one, every byte of local, global and L2 memory must be as recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import Engine
from bmcompiler.backends.bm1684.tables import l2_tables
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.runtime.simulator.bm1684 import Memories, compile_plan
from bmcompiler.runtime.simulator.memory import GlobalMemory

_DATA = Path(__file__).parents[1] / "data"
_GLOBAL_BYTES = 1 << 21
_FILES = {name: np.load(_DATA / f"{name}.npz") for name in ("bm1684_golden", "bm1684_golden2")}
_CASES = [(name, index) for name, file in _FILES.items() for index in range(int(file["count"]))]


def _place(index: NDArray[Any], data: NDArray[Any], memories: Memories, memory: NDArray[Any]) -> None:
    """Write the recorded blocks: rows are (0 global or 1 local, lane, offset, length)."""
    at = 0
    for space, lane, offset, length in index.tolist():
        target = memories.local.bytes[lane] if space else memory
        target[offset : offset + length] = data[at : at + length]
        at += length


@pytest.fixture(scope="module")
def machines() -> list[tuple[Memories, NDArray[np.uint8]]]:
    """Two machines, to run on and to build the expected state in."""
    made = []
    for _ in range(2):
        memories, memory = Memories(GlobalMemory()), np.zeros(_GLOBAL_BYTES, np.uint8)
        memories.globals.map(CHIP.global_base, memory)
        made.append((memories, memory))
    return made


@pytest.mark.parametrize(("name", "number"), _CASES)
def test_instruction_leaves_all_memory_as_recorded(
    machines: list[tuple[Memories, NDArray[np.uint8]]], name: str, number: int
) -> None:
    case = {key[4:]: _FILES[name][key] for key in _FILES[name] if key.startswith(f"c{number:02d}_")}
    for memories, memory in machines:
        memories.local.bytes[...] = 0
        memory[...] = 0
        _place(case["in_idx"], case["in_data"], memories, memory)
    (memories, memory), (expected, expected_memory) = machines
    _place(case["out_idx"], case["out_data"], expected, expected_memory)

    command = case["cmd"].tobytes()
    group = CommandGroup(command, b"") if case["engine"] == Engine.TIU else CommandGroup(b"", command)
    compile_plan([group], memories).run()

    assert np.array_equal(memories.local.bytes, expected.local.bytes)
    assert np.array_equal(memory, expected_memory)
    assert np.array_equal(memories.l2, expected.l2)


def test_constant_tables_are_computed_as_recorded() -> None:
    assert np.array_equal(l2_tables(), _FILES["bm1684_golden"]["l2_tables"])
