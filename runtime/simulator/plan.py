"""Decoded commands as a plan of steps that runs many times; groups of them for chips with two queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Fields
from bmcompiler.instructions.order import Engine, IdFields, Place, Poll, execution_order, queue_of
from bmcompiler.numeric.blas import one_blas_thread

Step = Callable[[], None]
"""What one command does, bound to the memories of a chip."""


MakerT = TypeVar("MakerT")


def known(makers: Mapping[int, MakerT], code: int, what: str) -> MakerT:
    """What makes the steps of commands with `code`. Raises SimulatorError where that is not known; names `what`."""
    if code not in makers:
        raise SimulatorError(f"what {what} does is not known")
    return makers[code]


class Placed(Protocol):
    """Where a command is."""

    def error(self, reason: str) -> SimulatorError:
        """An error that names the command."""


class Plan:
    """An executable program, bound to the memories of one chip.

    Plans of different chips may run on different threads at the same time.
    """

    def __init__(self, steps: list[Step], places: Sequence[Placed]) -> None:
        self._steps, self.places = steps, places

    def __len__(self) -> int:
        return len(self._steps)

    def run(self, first: int = 0, end: int | None = None) -> None:
        """Execute all commands, or those of some steps, in the order of the steps: one that the waits allow.

        Raises:
            SimulatorError: data that a command cannot work on; names the command.
        """
        done = first
        try:
            with one_blas_thread, np.errstate(all="ignore"):
                for step in self._steps[first:end]:
                    step()
                    done += 1
        except SimulatorError as error:
            raise self.places[done].error(error.reason) from error


def bound(
    groups: Iterable[tuple[Mapping[Engine, Sequence[Fields]], Sequence[Poll]]],
    ids: Mapping[Engine, IdFields],
    step: Callable[[Engine, Fields], Step],
) -> Plan:
    """Decoded groups with their polls, in program order, as a plan; `step` makes the step of one command.

    Raises:
        SimulatorError: what `step` refuses, waits that never end; names the command.
    """
    steps: list[Step] = []
    places: list[Place] = []
    for number, (fields, polls) in enumerate(groups):
        queues = {engine: queue_of(ids.get(engine), commands) for engine, commands in fields.items()}
        for engine, index in execution_order(queues, number, polls):
            place = Place(number, engine, index)
            try:
                steps.append(step(engine, fields[engine][index]))
            except SimulatorError as error:
                raise place.error(error.reason) from error
            places.append(place)
    return Plan(steps, places)
