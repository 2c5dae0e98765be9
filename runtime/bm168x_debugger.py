"""What a kernel's author looks at: calls that read what nobody wrote, or race; launches that halt between commands."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np

from bmcompiler.backends.bm168x.calls import Source
from bmcompiler.chip import LaneChip
from bmcompiler.errors import RuntimeUseError
from bmcompiler.numeric.arrays import Ints
from bmcompiler.runtime.simulator.bm168x.analysis import StageAnalysis
from bmcompiler.runtime.simulator.plan import Plan

_LOCAL = 0
"""Number of local memory among the spaces of accesses."""


class Called(Protocol):
    """A program that knows the calls behind its commands."""

    def source_of(self, place: object) -> Source | None:
        """The call that issued the command at a `Place`; None for an end, and for anything that is no place."""

    def naming_calls(self) -> AbstractContextManager[None]:
        """Errors of the simulator inside name the call whose command they are about."""


def need_sound(analysis: StageAnalysis, chip: LaneChip) -> None:
    """Raise RuntimeUseError, which names the calls, for a race or a read of local memory that no call wrote before.

    What an earlier program left in local memory does not count as written: a kernel cannot rely on it.
    """
    for race in analysis.races(1):
        raise RuntimeUseError(f"{race}", remedy="end the parallel state between the two calls")
    accesses = analysis.accesses()
    written = np.zeros(chip.lanes * chip.lmem_size, bool)
    order = np.lexsort((accesses.write, accesses.command))  # a command reads before it writes
    for one in order[accesses.space[order] == _LOCAL].tolist():
        places = _bytes(accesses.start[one], accesses.dims[one], accesses.strides[one])
        if accesses.write[one]:
            written[places] = True
        elif not (read := written[places]).all():
            lane, offset = divmod(int(places[~read].min()), chip.lmem_size)
            command = analysis.reference(int(accesses.command[one]))
            raise RuntimeUseError(
                f"{command} reads local memory that no call wrote before: lane {lane}, byte {offset} and more",
                remedy="load or set it first; what was there before the kernel is not known",
            )


def _bytes(start: int, dims: Ints, strides: Ints) -> Ints:
    """All bytes of a box."""
    places = np.array([start])
    for size, stride in zip(dims.tolist(), strides.tolist()):
        places = (places[:, None] + np.arange(size) * stride).ravel()
    return places


class Stepper:
    """A launch that halts between commands; meanwhile the device shows its memories (`download`, `local`).

    Attributes:
        done: commands that have been executed.
    """

    def __init__(self, program: Called, plan: Plan) -> None:
        self._program, self._plan = program, plan
        self.done = 0

    def __len__(self) -> int:
        return len(self._plan)

    @property
    def source(self) -> Source | None:
        """The call that issued the next command; None for the mark of an end, and behind the last command."""
        return self._program.source_of(self._plan.places[self.done]) if self.done < len(self) else None

    def step(self, count: int = 1) -> Source | None:
        """Execute `count` commands, fewer at the end; returns `source`. Raises SimulatorError as `launch` does."""
        end = min(self.done + count, len(self))
        with self._program.naming_calls():
            self._plan.run(self.done, end)
        self.done = end
        return self.source

    def run(self, until: str | int | None = None) -> Source | None:
        """Go on to the next command of a function, by its name, or of a line, by its number; to the end without one.

        The command itself has not been executed, then. Returns `source`. Raises SimulatorError as `launch` does.
        """
        later = range(self.done + bool(self.done), len(self))
        return self.step(next((at for at in later if self._stops(at, until)), len(self)) - self.done)

    def _stops(self, at: int, until: str | int | None) -> bool:
        source = self._program.source_of(self._plan.places[at])
        return source is not None and until in (source.function, source.line)
