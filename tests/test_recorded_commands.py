"""What simulators and timing models say of commands that no compiler writes: `tests/data/commands`.

A line is a command: cycles, multiply-accumulates, bytes of weights, bytes read and written, cycles at full rate, a
digest of the bytes that it touches, one of all memory that it changes; or why it is refused. A simulator that changes
says so in a diff (`--update-golden`), command by command.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import varied_commands
from varied_commands import Machine, told, varied

FOLDER = Path(__file__).parent
PARTS = {"bm1880": 8, "bm1684": 6, "bm1684x": 12}
EACH = 60
"""Commands of a part."""
LONGEST = 60


@cache
def machine(chip: str) -> Machine:
    return varied_commands.machine(chip)


@pytest.mark.parametrize(("chip", "part"), [(chip, part) for chip, parts in PARTS.items() for part in range(parts)])
def test_commands_do_what_was_recorded(chip: str, part: int, golden: Callable[[Path, str], None]) -> None:
    rng, lines = random.Random(f"{chip} {part}"), []
    for _ in range(EACH):
        command = varied(rng, chip)
        lines.append(f"{told(chip, command)} {machine(chip).run(command)[:LONGEST]}")
    golden(FOLDER / f"data/commands/{chip}_{part}.txt", "\n".join([*lines, ""]))
