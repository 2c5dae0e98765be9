"""What commands make of limits, ties and equals in every type and rounding: `tests/data/edges`, a line per command."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from edge_commands import edge, machine

FOLDER = Path(__file__).parent / "data/edges"
EACH = {"bm1880": 150, "bm1684": 200, "bm1684x": 350}
LONGEST = 50


@pytest.mark.parametrize("chip", EACH)
def test_commands_do_what_was_recorded(chip: str, golden: Callable[[Path, str], None]) -> None:
    rng = random.Random(chip)
    lines = [machine(chip).run(edge(rng, chip)).rpartition(": ")[2][:LONGEST] for _ in range(EACH[chip])]
    golden(FOLDER / f"{chip}.txt", "\n".join([*lines, ""]))
