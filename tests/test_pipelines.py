"""The pipelines of all chips: which passes run at which precision and level."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bmcompiler.target import find_target

GOLDEN = Path(__file__).parent / "data" / "pipelines.txt"
CHIPS = ("bm1684", "bm1684x", "bm1880", "dv700")


def test_all_pipelines_are_as_reviewed(golden: Callable[[Path, str], None]) -> None:
    rows = [
        f"{chip} {precision} {level}: {find_target(chip).pipeline(precision, level)}\n"
        for chip in CHIPS
        for precision in find_target(chip).precisions
        for level in (0, 1, 2)
    ]
    golden(GOLDEN, "".join(rows))
