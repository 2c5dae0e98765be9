"""Event model of a command list: engines that work in order, and waits between them. Knows no chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import Ints, Mask

NO_WAIT = -1
HOST = 2
"""Number of the host among the engines of chips with two engines."""


@dataclass(frozen=True)
class CommandList:
    """Commands in program order; entry i of each (n,) array belongs to command i.

    Attributes:
        engine: number of its engine, 0 .. engines - 1; each engine executes its commands in this order.
        wait: index of an earlier command that must be finished first, or NO_WAIT. Waiting for a command means waiting
            for all earlier ones of its engine, too.
        barrier: true for commands that wait for everything before them and that everything after them waits for.
    """

    engines: int
    engine: Ints
    wait: Ints
    barrier: Mask

    def __len__(self) -> int:
        return len(self.engine)


@dataclass(frozen=True)
class Schedule:
    """Cycles at which every command starts and ends."""

    start: Ints
    end: Ints

    @property
    def cycles(self) -> int:
        """End of the last command."""
        return int(self.end.max()) if len(self.end) else 0


def resolved(engines: Sequence[str], engine: Ints, own: Ints, wanted: Ints) -> CommandList:
    """Commands whose waits are ids: each one waits for the latest earlier one of the other engine with the wanted id.

    Engines 0 and 1 have ids (0 = no wait), which start again after every command of engine 2, the host, a barrier.
    A wait for an id that no earlier command has would hang the chip, or mean another order than that of the program.

    Args:
        engines: their names. engine, own, wanted: per command its engine, its id, and the id it waits for.

    Raises:
        SimulatorError: such a wait; names the command.
    """
    seen: tuple[dict[int, int], dict[int, int]] = ({}, {})
    found: Ints = np.full(len(engine), NO_WAIT, np.int64)
    for record, (number, own_id, wanted_id) in enumerate(zip(engine.tolist(), own.tolist(), wanted.tolist())):
        if number == HOST:
            seen = ({}, {})
            continue
        if wanted_id:
            other = 1 - number
            if wanted_id not in seen[other]:
                raise SimulatorError(
                    f"command {record} ({engines[number]}) waits for {engines[other]} id {wanted_id}, "
                    "which no command before it carries"
                )
            found[record] = seen[other][wanted_id]
        seen[number][own_id] = record
    return CommandList(len(engines), engine, found, engine == HOST)


def schedule(commands: CommandList, cost: Ints) -> Schedule:
    """The earliest time of every command, each taking `cost` cycles."""
    free = [0] * commands.engines
    ends: list[int] = []
    starts: list[int] = []
    rows = zip(commands.engine.tolist(), commands.wait.tolist(), commands.barrier.tolist(), cost.tolist())
    for engine, wait, barrier, cycles in rows:
        start = max(free) if barrier else free[engine]
        if wait >= 0 and ends[wait] > start:
            start = ends[wait]
        end = start + cycles
        free[engine] = end
        if barrier:
            free = [end] * commands.engines
        starts.append(start)
        ends.append(end)
    return Schedule(np.array(starts, np.int64), np.array(ends, np.int64))


def stalls(commands: CommandList, times: Schedule) -> Ints:
    """Cycles each command's engine stood idle before it, since the engine's previous command (0 for the first)."""
    idle = np.zeros(len(commands), np.int64)
    for engine in range(commands.engines):
        own = np.flatnonzero(commands.engine == engine)
        idle[own[1:]] = times.start[own[1:]] - times.end[own[:-1]]
    return idle


def shares(commands: CommandList, times: Schedule) -> Ints:
    """Whose every cycle is: of each command, those in which no engine with a smaller number works.

    Without gaps in which no engine works, and `schedule` leaves none, the sum is the total.
    """
    result = times.end - times.start
    begin, end = np.zeros((2, 0), np.int64)
    for engine in range(commands.engines):
        own = np.flatnonzero(commands.engine == engine)
        covered = _covered(begin, end, times.end[own]) - _covered(begin, end, times.start[own])
        result[own] -= covered
        begin, end = _union(np.append(begin, times.start[own]), np.append(end, times.end[own]))
    return result


def _union(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Intervals as disjoint ones in order."""
    order = np.argsort(begin, kind="stable")
    begin, latest = begin[order], np.maximum.accumulate(end[order])
    first = np.append(True, begin[1:] > latest[:-1])[: len(begin)]
    return begin[first], np.append(latest[:-1][first[1:]], latest[-1:])


def _covered(begin: Ints, end: Ints, at: Ints) -> Ints:
    """Cycles before each of `at` that disjoint intervals in order cover."""
    if not len(begin):
        return np.zeros_like(at)
    before = np.append(0, np.cumsum(end - begin))
    index = np.searchsorted(begin, at, side="right")
    last = np.maximum(index - 1, 0)
    return np.where(index > 0, before[last] + np.minimum(at, end[last]) - begin[last], 0)


def sums(values: Ints, groups: Ints, count: int) -> list[int]:
    """Sum of `values` for each group number 0 .. count - 1; other numbers are left out."""
    inside = (groups >= 0) & (groups < count)
    totals = np.zeros(count, np.int64)
    np.add.at(totals, groups[inside], values[inside])
    result: list[int] = totals.tolist()
    return result
