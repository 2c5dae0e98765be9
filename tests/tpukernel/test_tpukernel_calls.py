"""Calls with drawn arguments against the vendor's library: commands, and the memories after them on the simulator.

`python -m tpukernel_calls` in tools records them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from tpukernel_calls.calls import Call, read
from tpukernel_calls.memory import GLOBAL_BYTES, Memory, fill
from tpukernel_golden import meaning

from bmcompiler.backends.bm168x.calls import bound
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.static_tables import static_memory
from bmcompiler.backends.bm1684x.tpukernel.arguments import converted
from bmcompiler.backends.bm1684x.tpukernel.rows import Known
from bmcompiler.errors import UsageError
from bmcompiler.runtime.simulator.bm1684x import Memories, compile_plan
from bmcompiler.tpukernel import FUNCTIONS, MISSING, TABLE, Program, program_of, recording

CALLS = read()
DRAWN = [row.name for row in TABLE.values() if row.source is Known.DRAWN]


def program(call: Call) -> Program:
    with recording("measured") as recorder:
        FUNCTIONS[call.name](*call.arguments)
    return program_of(recorder)


def of(name: str) -> list[Call]:
    return [call for call in CALLS if call.name == name]


@pytest.fixture(scope="module")
def chip() -> tuple[Memories, Memory]:
    memories = Memories()
    memories.static[...] = static_memory()
    outside = np.zeros(GLOBAL_BYTES, np.uint8)
    memories.globals.map(CHIP.global_base, outside)
    return memories, Memory(memories.local.bytes, outside)


@pytest.mark.parametrize("name", DRAWN)
def test_commands_and_memory_are_those_of_the_vendors_library(chip: tuple[Memories, Memory], name: str) -> None:
    memories, memory = chip
    for call in of(name):
        made = program(call)
        assert [meaning(int(one.engine), one.data) for one in made.commands] == [meaning(*one) for one in call.commands]
        memory.local[...] = 0
        memory.globals[...] = 0
        row = TABLE[name]
        fill(memory, row, bound(row, call.arguments, {}, converted), call.seed)
        compile_plan(made.groups, memories).run()
        assert memory.digest() == call.digest, call


def test_every_function_with_drawn_arguments_has_three_calls() -> None:
    assert {name: len(of(name)) for name in DRAWN} == dict.fromkeys(DRAWN, 3)


def test_what_is_not_offered_says_why() -> None:
    for name, missing in MISSING.items():
        with pytest.raises(UsageError, match=name) as caught:
            missing(1, 2)
        assert missing.reason in str(caught.value)


def test_every_function_of_the_vendors_library_is_offered_or_says_why_not() -> None:
    """Names that libcmodel_bm1684x.so of the wheel tpu_mlir 1.30.2 exports, of all engines."""
    names = (Path(__file__).parents[1] / "data" / "tpukernel_names.txt").read_text().split()
    assert len(names) == 586
    assert not set(names) - set(FUNCTIONS) - set(MISSING)
