"""Recorded single commands and vendor-compiled programs of the BM1684X (bm1684x.md 12, 13)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xStage, CommandGroup, read
from bmcompiler.instructions.order import Engine

DATA = Path(__file__).parents[1] / "data"
UNITS = {"gdma": Engine.GDMA, "cube": Engine.TIU, "vector": Engine.TIU}
PROGRAMS = sorted(path.stem for path in (DATA / "bm1684x_programs").glob("*.npz"))


class Case(NamedTuple):
    """One command, and memory before and after it: rows (space, lane, offset, length) and their bytes."""

    unit: str
    number: int
    command: bytes
    before: tuple[NDArray[Any], NDArray[Any]]
    after: tuple[NDArray[Any], NDArray[Any]]

    @property
    def engine(self) -> Engine:
        return UNITS[self.unit]

    def __str__(self) -> str:
        return f"{self.unit}-{self.number}"


@cache
def recorded(unit: str) -> dict[str, NDArray[Any]]:
    return dict(np.load(DATA / f"bm1684x_{unit}_golden.npz"))


@cache
def manifest(unit: str) -> list[dict[str, Any]]:
    return json.loads(bytes(recorded(unit)["manifest"]))


@cache
def cases(unit: str) -> list[Case]:
    file = recorded(unit)
    digits = 3 if unit == "vector" else 2
    found = []
    for number in range(int(file["count"])):
        key = f"c{number:0{digits}d}_"
        parts = [(file[f"{key}{side}_idx"], file[f"{key}{side}_data"]) for side in ("in", "out")]
        found.append(Case(unit, number, file[f"{key}cmd"].tobytes(), *parts))
    return found


def all_cases() -> list[Case]:
    return [case for unit in UNITS for case in cases(unit)]


@cache
def model(name: str) -> Bm168xModel:
    """A program of the vendor's compiler."""
    with np.load(DATA / "bm1684x_models.npz") as files:
        return read(memoryview(files[name].tobytes()), name)


@cache
def program(name: str) -> tuple[Bm168xStage, list[CommandGroup]]:
    """The only stage of a program, and its command groups."""
    ((_, stage),) = model(name).all_stages()
    return stage, stage.groups


def streams(unit_or_group: Case | CommandGroup) -> CommandGroup:
    """A case as a group of its own."""
    if isinstance(unit_or_group, CommandGroup):
        return unit_or_group
    command = unit_or_group.command
    return CommandGroup(b"", command) if unit_or_group.engine is Engine.GDMA else CommandGroup(command, b"")
