"""Recorded calls of the vendor's library: the commands they emit, memory before and after (tpukernel.md 10)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684x.codes import ITEM_BYTES, Precision
from bmcompiler.backends.bm1684x.isa import FORMAT_OF
from bmcompiler.instructions.isa import Fields
from bmcompiler.instructions.order import Engine
from bmcompiler.tpukernel import FUNCTIONS, Program, program_of, recording

DATA = Path(__file__).parents[1] / "data" / "tpukernel_golden.npz"


class Case(NamedTuple):
    """One call, or a few: commands as (engine, bytes); memory as rows (space, lane, offset, length) and their bytes."""

    number: int
    calls: list[tuple[str, list[Any]]]
    note: str
    commands: list[tuple[int, bytes]]
    before: tuple[NDArray[Any], NDArray[Any]]
    after: tuple[NDArray[Any], NDArray[Any]]

    def __str__(self) -> str:
        return f"{self.number}-{self.calls[0][0] if len(self.calls) == 1 else self.note.replace(' ', '-')}"

    def program(self, release: str = "measured") -> Program:
        """What our library makes of the calls."""
        with recording(release) as recorder:
            for name, arguments in self.calls:
                FUNCTIONS[name](*arguments)
        return program_of(recorder)


def argument(value: Any) -> Any:
    """A recorded argument as Python has it."""
    if isinstance(value, dict):
        (value,) = value.values()
    return tuple(value) if isinstance(value, list) else value


@cache
def recorded() -> dict[str, NDArray[Any]]:
    return dict(np.load(DATA))


@cache
def cases() -> list[Case]:
    """All cases."""
    file = recorded()
    sizes, engines, rows = file["sizes"].tolist(), file["engines"].tolist(), file["blocks"].T.astype(np.int64)
    data, at = file["commands"].tobytes(), {"command": 0, "byte": 0, "row": 0, "before": 0, "after": 0}

    def take(what: str, count: int) -> slice:
        at[what] += count
        return slice(at[what] - count, at[what])

    found = []
    for number, entry in enumerate(json.loads(bytes(file["manifest"]))):
        here = take("command", entry["commands"])
        commands = [(engine, data[take("byte", size)]) for engine, size in zip(engines[here], sizes[here])]
        memory = []
        for side in ("before", "after"):
            blocks = rows[take("row", entry[side])]
            memory.append((blocks, file[side][take(side, int(blocks[:, 3].sum()))]))
        calls = [(name, [argument(each) for each in given]) for name, given in entry["calls"]]
        found.append(Case(number, calls, entry.get("note", ""), commands, *memory))
    return found


def helpers() -> list[tuple[str, list[Any], Any]]:
    """(function, arguments, value) of calls that emit nothing; None where the library refuses."""
    found = []
    for name, given, value in json.loads(bytes(recorded()["helpers"])):
        arguments = [argument(each) for each in given if not (isinstance(each, dict) and "out4" in each)]
        found.append((name, arguments, tuple(value) if isinstance(value, list) else value))
    return found


def meaning(engine: int, command: bytes) -> tuple[str, Fields]:
    """A command without what the vendor's library leaves in fields by accident.

    That is what a constant has above its width, and the source address of a constant's fill with the bits above it,
    where the library leaves the stride of the channels.
    """
    layout = FORMAT_OF[Engine(engine)](int.from_bytes(command[:8], "little"))
    fields = layout.unpack(command)
    if fields.get("fill_constant_en"):
        fields |= {"src_addr_lo": 0, "src_addr_hi": 0, "reserved_552": 0}
    for name in ("opd0", "opd1"):
        if fields.get(f"{name}_const") and f"{name}_prec" in fields:
            fields[f"{name}_addr"] &= (1 << 8 * ITEM_BYTES[Precision(fields[f"{name}_prec"])]) - 1
    return layout.name, fields
