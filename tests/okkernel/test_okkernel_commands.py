"""The library's commands and layouts against those that the vendor's library gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684.asm import assemble
from bmcompiler.backends.bm1684.isa import COMMAND_BYTES
from bmcompiler.okkernel import FUNCTIONS, TABLE, Recorder, program_of, recording

DATA = Path(__file__).parents[1] / "data" / "okkernel_calls.npz"
Case = tuple[list[tuple[str, list[Any]]], list[tuple[int, bytes]]]


def cases() -> list[Case]:
    """Calls of one kernel, and the commands of each engine that they gave, without marks of ends and unused bits."""
    with np.load(DATA) as file:
        manifest, data = json.loads(bytes(file["manifest"])), bytes(file["commands"])
    commands = iter(data[at : at + COMMAND_BYTES] for at in range(0, len(data), COMMAND_BYTES))
    return [([(name, given) for name, given in calls], [(engine, next(commands)) for engine in engines])
            for calls, engines in manifest]  # fmt: skip


CASES = cases()


def recorded(calls: list[tuple[str, list[Any]]]) -> Recorder:
    with recording() as recorder:
        for name, arguments in calls:
            FUNCTIONS[name](*arguments)
    return recorder


def test_commands_are_those_of_the_vendors_library() -> None:
    """Of okk_bdc_equal_select without comparisons of a tensor with a number, which the vendor's library mixes up."""
    wrong = []
    for calls, commands in CASES:
        (group,) = recorded(calls).groups()
        wanted = [b"".join(data for engine, data in commands if engine == each) for each in (0, 1)]
        if [group.tiu, group.gdma] != wanted:
            wrong.append(calls)
    assert not wrong


def test_every_function_that_issues_commands_is_recorded() -> None:
    silent = {row.name for row in TABLE.values() if row.group in ("Kernel and synchronisation", "The chip and layouts")}
    assert {name for calls, _ in CASES for name, _ in calls} - silent == TABLE.keys() - silent
    assert len(TABLE) == 102 and len(TABLE.keys() - silent) == 80


def test_programs_survive_the_assembler() -> None:
    for calls, _ in CASES[::20]:
        program = program_of(recorded(calls))
        assert assemble(program.disassembly()) == program.groups


LAYOUTS = [
    ("okk_128_byte_aligned_stride_for_32bit", (0, (2, 70, 5, 7)), (128, 64, 7, 1)),
    ("okk_128_byte_aligned_stride_for_32bit", (3, (2, 62, 5, 7)), (128, 64, 7, 1)),
    ("okk_128_byte_aligned_stride_for_32bit", (63, (2, 130, 4, 8)), (128, 32, 8, 1)),
    ("okk_128_byte_aligned_stride_for_16bit", (63, (2, 130, 4, 8)), (256, 64, 8, 1)),
    ("okk_128_byte_aligned_stride_for_8bit", (0, (2, 70, 5, 7)), (256, 128, 7, 1)),
    ("okk_compact_stride", (0, (2, 70, 5, 7)), (70, 35, 7, 1)),
    ("okk_compact_stride", (63, (2, 130, 4, 8)), (128, 32, 8, 1)),
    ("okk_continuous_stride", ((2, 70, 5, 7),), (2450, 35, 7, 1)),
    ("okk_start_npu_index", (0x80000 * 3 + 5,), 3),
    ("okk_channle_num_per_npu", (3, 62), 2),
    ("okk_channle_num_per_npu", (63, 66), 3),
    ("okk_npu_num", (), 64),
    ("okk_eu_num", (), 32),
    ("okk_local_mem_size_per_npu", (), 0x80000),
    ("okk_local_mem_bank_per_npu", (), 8),
    ("okk_local_mem_start_addr", (), 0x0800_0000),
    ("okk_l2_sram_size", (), 0x25_E000),
    ("okk_l2_sram_start_addr", (), 0x100A_2000),
    ("okk_dtcm_size", (), 0x5_F400),
    ("okk_dtcm_start_addr", (), 0x202_0000),
    ("okk_global_mem_start_addr", (), 0x1_0000_0000),
]


@pytest.mark.parametrize(("name", "arguments", "value"), LAYOUTS)
def test_recorded_values(name: str, arguments: tuple[Any, ...], value: Any) -> None:
    assert FUNCTIONS[name](*arguments) == value
