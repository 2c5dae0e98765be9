"""The order in which the commands of a group run: both queues in their order, waits respected (bm1684.md 3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from bmcompiler.errors import SimulatorError


class Engine(IntEnum):
    """Engines that have commands: two with ids and streams, and one that only the processor of a kernel starts."""

    TIU = 0
    GDMA = 1
    HAU = 3  # the vendor's number; 2 is the host in lists of commands


STREAMS = (Engine.TIU, Engine.GDMA)
"""The engines whose commands model files hold, and which wait for each other by ids."""
_TURNS = (Engine.GDMA, Engine.TIU, Engine.HAU)
_OTHER = {Engine.TIU: Engine.GDMA, Engine.GDMA: Engine.TIU, Engine.HAU: Engine.HAU}


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


class Poll(NamedTuple):
    """The processor of a kernel waited for an engine before it issued more: commands of each that it had issued."""

    engine: Engine
    tiu: int
    gdma: int
    hau: int

    def issued(self, engine: Engine) -> int:
        """How many commands of an engine came before."""
        return {Engine.TIU: self.tiu, Engine.GDMA: self.gdma, Engine.HAU: self.hau}[engine]

    def holds(self, engine: Engine, done: Mapping[Engine, int]) -> bool:
        """Whether an engine's next command is not issued yet, `done` being how many commands of each are finished."""
        return done[engine] >= self.issued(engine) and done.get(self.engine, 0) < self.issued(self.engine)


class Polled(NamedTuple):
    """Commands of the sort engine, which have no ids, and the polls that order them and those of the other engines."""

    hau: bytes = b""
    polls: tuple[Poll, ...] = ()


def queue_of(names: IdFields | None, commands: Iterable[Mapping[str, int]]) -> list[Ids]:
    """The ids of decoded commands of one engine; an engine without ids waits for none."""
    if names is None:
        return [Ids(number, 0) for number, _ in enumerate(commands, 1)]
    return [Ids(command[names.own], command[names.wait]) for command in commands]


def runnable(queues: Queues, polls: Sequence[Poll] = ()) -> list[tuple[Engine, int]]:
    """(engine, number) of the commands that ever start, in an order that queues, waits and polls allow.

    Each engine runs as far as it can before the next one continues. Commands that wait for an id that never comes, and
    those behind them, are missing.
    """
    order: list[tuple[Engine, int]] = []
    turns = [engine for engine in _TURNS if engine in queues]
    position = dict.fromkeys(turns, 0)
    finished = dict.fromkeys(turns, 0)
    while True:
        before = len(order)
        for engine in turns:
            queue = queues[engine]
            while position[engine] < len(queue):
                command = queue[position[engine]]
                if command.wait > finished[_OTHER[engine]] or any(poll.holds(engine, position) for poll in polls):
                    break
                order.append((engine, position[engine]))
                finished[engine] = command.own
                position[engine] += 1
        if len(order) == before:
            return order


def execution_order(queues: Queues, group: int = 0, polls: Sequence[Poll] = ()) -> list[tuple[Engine, int]]:
    """`runnable`, when it is all commands of a group.

    Raises:
        SimulatorError: a command waits for an id that never comes; names it.
    """
    order = runnable(queues, polls)
    for engine in queues:
        started = sum(one is engine for one, _ in order)
        if started < len(queues[engine]):
            reason = f"it waits for id {queues[engine][started].wait} of the other engine, which never completes"
            raise Place(group, engine, started).error(reason)
    return order
