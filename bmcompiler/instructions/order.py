"""The order in which the commands of a group run: both queues in their order, waits respected (bm1684.md 3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from bmcompiler.errors import SimulatorError


class Engine(IntEnum):
    """Engines a static program has commands for."""

    TIU = 0
    GDMA = 1


class IdFields(NamedTuple):
    """Names of the fields that hold a command's id and the id it waits for."""

    own: str
    wait: str


class Ids(NamedTuple):
    """Id of a command, and the id of the other engine it waits for (0 = none)."""

    own: int
    wait: int


class Place(NamedTuple):
    """Where a command is: its group, engine, and number in the engine's queue, all from 0."""

    group: int
    engine: Engine
    number: int

    def error(self, reason: str) -> SimulatorError:
        """An error that names the command."""
        error = SimulatorError(f"group {self.group}, {self.engine.name} command {self.number}: {reason}")
        error.place = self
        return error


Queues = Mapping[Engine, Sequence[Ids]]


def queue_of(names: IdFields, commands: Iterable[Mapping[str, int]]) -> list[Ids]:
    """The ids of decoded commands of one engine."""
    return [Ids(command[names.own], command[names.wait]) for command in commands]


def runnable(queues: Queues) -> list[tuple[Engine, int]]:
    """(engine, number) of the commands that ever start, in an order that queues and waits allow.

    Each engine runs as far as it can before the other one continues. Commands that wait for an id that never comes, and
    those behind them, are missing.
    """
    order: list[tuple[Engine, int]] = []
    position = {engine: 0 for engine in Engine}
    finished = {engine: 0 for engine in Engine}
    while True:
        before = len(order)
        for engine, other in ((Engine.GDMA, Engine.TIU), (Engine.TIU, Engine.GDMA)):
            queue = queues[engine]
            while position[engine] < len(queue):
                command = queue[position[engine]]
                if command.wait > finished[other]:
                    break
                order.append((engine, position[engine]))
                finished[engine] = command.own
                position[engine] += 1
        if len(order) == before:
            return order


def execution_order(queues: Queues, group: int = 0) -> list[tuple[Engine, int]]:
    """`runnable`, when it is all commands of a group.

    Raises:
        SimulatorError: a command waits for an id that never comes; names it.
    """
    order = runnable(queues)
    for engine in Engine:
        started = sum(one is engine for one, _ in order)
        if started < len(queues[engine]):
            reason = f"it waits for id {queues[engine][started].wait} of the other engine, which never completes"
            raise Place(group, engine, started).error(reason)
    return order
