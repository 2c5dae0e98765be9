"""What tiles were planned to compute for, and what the timing model says of the commands that they emitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pytest

from bmcompiler.backends.bm168x.builder import GroupBuilder
from bmcompiler.backends.bm1684 import build as bm1684_build
from bmcompiler.backends.bm1684 import isa as bm1684_isa
from bmcompiler.backends.bm1684.timing_profile import SILICON
from bmcompiler.backends.bm1684x import builder as bm1684x_builder
from bmcompiler.backends.bm1684x.cycles import CycleTable
from bmcompiler.backends.bm1684x.recipe_tables import TableSpace
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.backends.bm1684x.timing_profile import PROFILE
from bmcompiler.backends.bm1880 import isa as bm1880_isa
from bmcompiler.backends.bm1880.bmkernel.context import Bmk1880Context
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.codegen.kernels import LocalKernel
from bmcompiler.codegen.stream import Stream
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.instructions.order import STREAMS, Engine
from bmcompiler.ir import Module
from bmcompiler.runtime.simulator.bm1684 import cost as bm1684_cost
from bmcompiler.runtime.simulator.bm1684x import cost as bm1684x_cost
from bmcompiler.runtime.simulator.bm1880 import cost as bm1880_cost
from bmcompiler.target import Target


class Command(NamedTuple):
    """A command by chip and engine.

    Attributes:
        own: its id. wait: that of the other engine which it waits for (0 = none).
        fills: whether it makes a table that the program has from then on.
    """

    chip: str
    engine: Any
    raw: bytes
    own: int = 0
    wait: int = 0
    fills: bool = False


@dataclass
class Computation:
    """One tile: what computes it, cycles as planned and those of the bus among them, what it loads, its commands.

    beside: whether it stores results while it computes more; that takes no time of its own.
    """

    kernel: str
    planned: int
    transfers: int
    stream: Stream | None
    serial: bool
    beside: bool
    commands: list[Command] = field(default_factory=list)


@contextmanager
def computations() -> Iterator[list[Computation]]:
    """The computations of all tiles that are emitted meanwhile, those within others too."""
    found: list[Computation] = []
    running: list[Computation] = []
    filling: list[bool] = []
    create, issue, emit = TileWork.__init__, GroupBuilder.issue, Bmk1880Context._emit
    chips = {bm1684_build.CommandBuilder: "bm1684", bm1684x_builder.CommandBuilder: "bm1684x"}

    def created(work: Any, *given: Any, **named: Any) -> None:
        create(work, *given, **named)
        inner = work.compute

        def compute(build: Any, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            planned = work.placed_cycles(outs, scratch)
            serial = getattr(build, "serial", False)
            beside = any(buffer.ahead for buffer in work.outputs)
            name = inner.__qualname__.split(".<")[0]
            running.append(Computation(name, planned, work.transfers, work.stream, serial, beside))
            inner(build, ins, outs, scratch)
            done = running.pop()
            if running:
                running[-1].commands += done.commands
            found.append(done)

        compute.__qualname__ = inner.__qualname__
        object.__setattr__(work, "compute", compute)

    def issued(builder: GroupBuilder, engine: Any, encode: Any, after: Any = None) -> Any:
        ids: list[int] = []

        def noted(own: int, wait: int) -> bytes:
            ids[:] = own, wait
            raw: bytes = encode(own, wait)
            return raw

        ticket = issue(builder, engine, noted, after)
        if running:
            raw = builder._commands[engine][-1]
            running[-1].commands.append(Command(chips[type(builder)], engine, raw, *ids, bool(filling)))
        return ticket

    def fills(make: Callable[..., int]) -> Callable[..., int]:
        def making(*given: Any) -> int:
            filling.append(True)
            at = make(*given)
            filling.pop()
            return at

        return making

    def emitted(context: Any, *given: Any) -> Any:
        op = emit(context, *given)
        if running:
            raw = context._chunks[-1][bm1880_isa.HEADER_SIZE :]
            running[-1].commands.append(Command("bm1880", given[0], raw))
        return op

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TileWork, "__init__", created)
        patch.setattr(GroupBuilder, "issue", issued)
        patch.setattr(TableSpace, "place", fills(TableSpace.place))
        patch.setattr(bm1684_build.Build, "table", fills(bm1684_build.Build.table))
        patch.setattr(Bmk1880Context, "_emit", emitted)
        yield found


def taken(commands: Iterable[Command], placed: bool = False, profile: Any = None) -> int:
    """Cycles of commands one after the other.

    Args:
        placed: with what follows from their place in a program: tables that it did not have before, and what operands
            in one bank of local memory cost.
        profile: of the timing model that is planned with, None = the chip's own.
    """
    streams: dict[tuple[str, Any], list[bytes]] = {}
    for one in commands:
        if placed or not one.fills:
            streams.setdefault((one.chip, one.engine), []).append(one.raw)
    return sum(_CYCLES[chip](engine, b"".join(raws), placed, profile) for (chip, engine), raws in streams.items())


def span(commands: Iterable[Command], profile: Any = None) -> int:
    """Cycles of commands on two engines, which wait for each other; what they wait for before them is done."""
    ends: dict[tuple[Any, int], int] = {}
    free = dict.fromkeys(STREAMS, 0)
    for one in commands:
        other = Engine(1 - one.engine)
        free[one.engine] = max(free[one.engine], ends.get((other, one.wait), 0)) + taken([one], profile=profile)
        ends[one.engine, one.own] = free[one.engine]
    return max(free.values())


def check(found: list[Computation], profile: Any = None) -> None:
    """What was planned is what the model says, by the profile that is planned with."""
    for one in found:
        if one.beside:
            own = [command for command in one.commands if command.engine.name == "TIU"]
            assert one.planned == taken(own, profile=profile), one.kernel
            continue
        if one.stream is None or one.serial:
            alone = one.planned if one.stream is None else sum(one.stream.steps) + sum(one.stream.loads)
            assert alone == taken(one.commands, profile=profile), one.kernel
            moves = [command for command in one.commands if command.engine.name == "GDMA"]
            assert one.stream is not None or one.transfers == taken(moves, profile=profile), one.kernel
            continue
        assert one.planned == span(one.commands, profile), one.kernel
        for engine, cycles in zip(STREAMS, (one.stream.steps, one.stream.loads)):
            own = [command for command in one.commands if command.engine is engine]
            assert sum(cycles) == taken(own, profile=profile), one.kernel


def tile_kernels(target: Target) -> set[type]:
    """The kernels of a chip that compute in tiles."""

    def leaves(kernel: Any) -> Iterator[Any]:
        yield from chain(*map(leaves, kernel.forms)) if isinstance(kernel, FormsKernel) else [kernel]

    return {type(kernel) for kernel in chain(*map(leaves, target.kernels())) if isinstance(kernel, LocalKernel)}


def kernels_met(target: Target, module: Module) -> set[type]:
    """The kernels of the ops of a module."""
    found: set[type] = set()
    for op in module.main.ops:
        kernel: Any = target.kernel_for(op)
        while isinstance(kernel, FormsKernel):
            kernel = kernel.form(op)
        found.add(type(kernel))
    return found


def _bm1880_cycles(engine: Any, raw: bytes, placed: bool, profile: Any) -> int:
    fields = bm1880_isa.FORMATS[engine].decode(np.frombuffer(raw, np.uint8))
    return int(bm1880_cost.cycles_of(engine, fields, profile or bm1880_cost.PROFILE).sum())


def _bm1684_cycles(engine: Any, raw: bytes, placed: bool, profile: Any) -> int:
    fields = bm1684_isa.FORMATS[engine].decode(np.frombuffer(raw, np.uint8))
    profile = profile or SILICON
    profile = profile if placed else replace(profile, conv_bank=0)
    return int(bm1684_cost.cycles_of(engine, fields, profile).sum())


def _bm1684x_cycles(engine: Any, raw: bytes, placed: bool, profile: Any) -> int:
    """Only what begins at the same byte shares a bank for sure: a result in place, or one tensor as two operands."""
    table, total = CycleTable(profile or PROFILE), 0
    with pytest.MonkeyPatch.context() as patch:
        if not placed:
            patch.setattr(bm1684x_cost, "_bank", lambda address: address)
        for numbers, _, columns in split(engine, raw).columns():
            if engine is Engine.TIU:
                total += int(bm1684x_cost._tiu(bm1684x_cost._Fields(columns, len(numbers)), table).cycles.sum())
            else:
                total += int(bm1684x_cost.moves(columns, len(numbers), table).cycles.sum())
    return total


_CYCLES = {"bm1880": _bm1880_cycles, "bm1684": _bm1684_cycles, "bm1684x": _bm1684x_cycles}
