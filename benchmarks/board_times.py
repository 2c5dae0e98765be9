"""The timing model of the BM1684X against whole networks that others timed on boards.

The programs that were timed are not public. What the vendor's compiler makes of the same networks today is, by kind of
command: a profile changes the cycles of convolutions and of transposing transfers, the clock and the launch. A row
whose timed program moved other bytes than today's is shown, and not counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmcompiler.backends.bm1684x.timing_profile import TimingProfile

ROWS = Path(__file__).resolve().parent.parent / "tests" / "data" / "bm1684x_boards.json"
OTHER_BYTES = 1.3
"""Programs whose bytes differ by more are not the same program."""


@dataclass(frozen=True)
class Board:
    """A network on a board: times in milliseconds; whether it is the program that is estimated."""

    net: str
    precision: str
    batch: int
    measured: float
    estimate: float
    same: bool

    @property
    def ratio(self) -> float:
        return self.estimate / self.measured

    @property
    def near(self) -> bool:
        return 1 / 1.15 <= self.ratio <= 1.15


def boards(profile: TimingProfile, path: Path = ROWS) -> list[Board]:
    """All rows of a file, estimated with a profile."""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return [
        Board(
            row["net"],
            row["precision"],
            row["batch"],
            row["milliseconds"],
            _milliseconds(row, profile),
            not row["known_outlier"] and _same(row["megabytes"], row["moved"]),
        )
        for row in rows
    ]


def _same(timed: float | None, estimated: float) -> bool:
    return timed is None or max(timed, estimated) <= OTHER_BYTES * min(timed, estimated)


def _milliseconds(row: Mapping[str, Any], profile: TimingProfile) -> float:
    """Convolutions are taken to lie on the longest path, as they do where multiplying bounds a network."""
    points, windows = profile.point_narrow, 1.0
    if row["precision"] == "f32":
        points, windows = profile.point_fp32, profile.window_fp32
    cycles = row["cycles"] + (points - 1) * row["point_cycles"] + (windows - 1) * row["window_cycles"]
    return cycles / profile.clock_hz * 1e3 + row["transposed"] * profile.transposed * 1e-6 + profile.launch * 1e-6
