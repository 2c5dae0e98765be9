"""What the timing models say of recorded commands: a model that changes says so in a diff (`--update-golden`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from planned_cycles import Command, taken

from bmcompiler.backends.bm1684.isa import Engine
from bmcompiler.backends.bm1684.timing_profile import TimingProfile

FOLDER = Path(__file__).parent
sys.path += [str(FOLDER / "bm1684x"), str(FOLDER / "bm1880")]


def _bm1684() -> Iterator[Command]:
    for name in ("bm1684_golden", "bm1684_golden2"):
        with np.load(FOLDER / f"data/{name}.npz") as file:
            for number in range(int(file["count"])):
                yield Command(
                    "bm1684", Engine(int(file[f"c{number:02d}_engine"])), file[f"c{number:02d}_cmd"].tobytes()
                )


def _bm1684x() -> Iterator[Command]:
    from bm1684x_golden import all_cases

    return (Command("bm1684x", case.engine, case.command) for case in all_cases())


@pytest.mark.parametrize("profile", TimingProfile.NAMED)
def test_bm1684(golden: Callable[[Path, str], None], profile: str) -> None:
    chosen = TimingProfile.NAMED[profile]
    cycles = [taken([command], placed=True, profile=chosen) for command in _bm1684()]
    golden(FOLDER / f"data/cycles/recorded_bm1684_{profile}.txt", "\n".join(map(str, cycles)) + "\n")


def test_bm1684x(golden: Callable[[Path, str], None]) -> None:
    cycles = [taken([command], placed=True) for command in _bm1684x()]
    golden(FOLDER / "data/cycles/recorded_bm1684x.txt", "\n".join(map(str, cycles)) + "\n")
