"""Kernels: Python functions whose calls of okkernel become a program of commands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from bmcompiler.backends.bm168x.calls import Source
from bmcompiler.backends.bm1684.asm import disassemble
from bmcompiler.backends.bm1684.okkernel.recorder import Recorder, recording
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.bmodel.layers import LayerSpan, encode_layers
from bmcompiler.errors import SimulatorError, UsageError
from bmcompiler.instructions.order import STREAMS, Engine, Place


@dataclass(frozen=True)
class Program:
    """What one call of a kernel issued.

    Attributes:
        name: of the kernel. groups: the two streams of each run of ids.
        sources: of each run, the calls behind the commands of an engine, None where no function issued one.
    """

    name: str
    groups: list[CommandGroup]
    sources: list[dict[Engine, list[Source | None]]]

    def __len__(self) -> int:
        return sum(len(each) for run in self.sources for each in run.values())

    def disassembly(self) -> str:
        """The commands as text; `bmcompiler.backends.bm1684.asm.assemble` reads it."""
        return disassemble(self.groups)

    def layers(self) -> bytes:
        """The calls that issued the commands, as a model's list of layers has them: reports are by call, then."""
        spans, first = [], 0
        for engine in STREAMS:
            for source, run_of in groupby(each for run in self.sources for each in run[engine]):
                count = len(list(run_of))
                if source is not None:
                    spans.append(LayerSpan(str(source), source.function, first, count))
                first += count
        return encode_layers(spans).encode()

    def source_of(self, place: object) -> Source | None:
        """The call that issued the command at a `Place`; None for an end, and for anything that is no place."""
        if not isinstance(place, Place):
            return None
        return self.sources[place.group][place.engine][place.number]

    @contextmanager
    def naming_calls(self) -> Iterator[None]:
        """Errors of the simulator inside name the call whose command they are about."""
        try:
            yield
        except SimulatorError as error:
            source = self.source_of(error.place)
            if source is not None:
                error.reason = f"{source}: {error.reason}"
            raise


class Kernel:
    """A function that calls the library; calling it records the calls, and gives their `Program`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.name = getattr(function, "__name__", "kernel")
        self._function = function

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def __call__(self, *arguments: Any, **named: Any) -> Program:
        with recording() as recorder:
            self._function(*arguments, **named)
        return program_of(recorder, self.name)


def program_of(recorder: Recorder, name: str = "kernel") -> Program:
    """The program of what has been recorded. Raises UsageError when it ends in parallel state."""
    if recorder.parallel:
        raise UsageError(f"{name} ends in parallel state", remedy="call okk_parallel_end()")
    groups = recorder.groups()
    numbers = sorted({number for number, _ in recorder.sources})
    sources = [{engine: recorder.sources.get((number, engine), []) for engine in STREAMS} for number in numbers]
    return Program(name, groups, sources)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Make a kernel of a function."""
    return Kernel(function)
