"""What tiles were planned to compute for, and what the timing model says of the commands that they emitted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684 import builder as bm1684_builder
from bmcompiler.backends.bm1684 import cycles as bm1684_cycles
from bmcompiler.backends.bm1684 import isa as bm1684_isa
from bmcompiler.backends.bm1684x import builder as bm1684x_builder
from bmcompiler.backends.bm1684x import tile_cycles as bm1684x_cycles
from bmcompiler.backends.bm1684x.recipe_tables import TableSpace
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.backends.bm1880 import isa as bm1880_isa
from bmcompiler.backends.bm1880.bmkernel.context import Bmk1880Context
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator.bm1684 import cost as bm1684_cost
from bmcompiler.runtime.simulator.bm1684x import cost as bm1684x_cost
from bmcompiler.runtime.simulator.bm1880 import cost as bm1880_cost

STREAMED = "FloatMatmulKernel.work"
"""Loads the rows of deep products itself while others are multiplied: they count among the bytes of its operand."""


@dataclass
class Computation:
    """One tile: what computes it, cycles as planned, and the commands by chip and engine."""

    kernel: str
    planned: int
    commands: list[tuple[tuple[str, Any], bytes]] = field(default_factory=list)


@contextmanager
def computations() -> Iterator[list[Computation]]:
    """The computations of all tiles that are emitted meanwhile, those within others too."""
    found: list[Computation] = []
    running: list[Computation] = []
    create, add, emit = TileWork.__init__, bm1684_builder.CommandBuilder.add, Bmk1880Context._emit
    append, place = bm1684x_builder.CommandBuilder.add, TableSpace.place

    def created(work: Any, *given: Any, **named: Any) -> None:
        create(work, *given, **named)
        inner = work.compute

        def compute(build: Any, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            planned = work.placed_cycles(outs, scratch)
            running.append(Computation(inner.__qualname__.split(".<")[0], planned))
            inner(build, ins, outs, scratch)
            done = running.pop()
            if running:
                running[-1].commands += done.commands
            found.append(done)

        compute.__qualname__ = inner.__qualname__
        object.__setattr__(work, "compute", compute)

    def added(builder: Any, engine: Any, **fields: Any) -> Any:
        ticket = add(builder, engine, **fields)
        if running:
            running[-1].commands.append((("bm1684", engine), builder._commands[engine][-1]))
        return ticket

    def appended(builder: Any, command: Any, **named: Any) -> Any:
        ticket = append(builder, command, **named)
        if running:
            running[-1].commands.append((("bm1684x", command.engine), builder._commands[command.engine][-1]))
        return ticket

    def placed(space: TableSpace, table: Any, add: Any) -> int:
        waiting = running[:]
        running.clear()
        at = place(space, table, add)
        running.extend(waiting)
        return at

    def emitted(context: Any, *given: Any) -> Any:
        op = emit(context, *given)
        if running:
            running[-1].commands.append((("bm1880", given[1]), context._chunks[-1][bm1880_isa.HEADER_SIZE :]))
        return op

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TileWork, "__init__", created)
        patch.setattr(bm1684_builder.CommandBuilder, "add", added)
        patch.setattr(bm1684x_builder.CommandBuilder, "add", appended)
        patch.setattr(TableSpace, "place", placed)
        patch.setattr(Bmk1880Context, "_emit", emitted)
        yield found


def taken(found: Computation) -> int:
    """Cycles of the commands by the timing model that is planned with.

    What fills tables once for a program is no part of a tile, nor is what its place in the banks of local memory costs.
    """
    total = 0
    for chip, engine in {key for key, _ in found.commands}:
        raw = b"".join(command for key, command in found.commands if key == (chip, engine))
        total += _CYCLES[chip](engine, raw)
    return total


def check(found: list[Computation]) -> None:
    """What was planned is what the model says, by the profile that is planned with."""
    for one in found:
        if one.kernel == STREAMED:
            one.commands = [command for command in one.commands if command[0][1] is Engine.TIU]
        assert one.planned == taken(one), one.kernel


def _bm1880_cycles(engine: Any, raw: bytes) -> int:
    return int(bm1880_cost.cycles_of(engine, bm1880_isa.FORMATS[engine].decode(np.frombuffer(raw, np.uint8))).sum())


def _bm1684_cycles(engine: Any, raw: bytes) -> int:
    fields = bm1684_isa.FORMATS[engine].decode(np.frombuffer(raw, np.uint8))
    cycles = bm1684_cost.cycles_of(engine, fields, replace(bm1684_cycles.CYCLES.table.profile, conv_bank=0))
    if engine is Engine.GDMA:
        cycles = cycles * (fields["direction"] != bm1684_isa.Direction.SYSTEM_TO_SYSTEM)
    return int(cycles.sum())


def _bm1684x_cycles(engine: Any, raw: bytes) -> int:
    """Only what begins at the same byte shares a bank for sure: a result in place, or one tensor as two operands."""
    table, total = bm1684x_cycles.CYCLES.table, 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm1684x_cost, "_bank", lambda address: address)
        for numbers, _, columns in split(engine, raw).columns():
            if engine is Engine.TIU:
                total += int(bm1684x_cost._tiu(bm1684x_cost._Fields(columns, len(numbers)), table)[0].sum())
            else:
                total += int(bm1684x_cost.moves(columns, len(numbers), table).cycles.sum())
    return total


_CYCLES = {"bm1880": _bm1880_cycles, "bm1684": _bm1684_cycles, "bm1684x": _bm1684x_cycles}
