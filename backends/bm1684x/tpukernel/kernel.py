"""Kernels: Python functions whose calls of the library become a program of commands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, overload

from bmcompiler.backends.bm168x.calls import Source
from bmcompiler.backends.bm1684x.asm import disassemble
from bmcompiler.backends.bm1684x.stream import ended
from bmcompiler.backends.bm1684x.tpukernel.recorder import Issued, Recorder, Release, recording
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.bmodel.bm168x_kernels import KernelGroup
from bmcompiler.bmodel.bm168x_listing import GROUP
from bmcompiler.bmodel.layers import LayerSpan, encode_layers
from bmcompiler.errors import SimulatorError, UsageError
from bmcompiler.instructions.order import STREAMS, Engine, Place, Poll, Polled


@dataclass(frozen=True)
class Program:
    """What one call of a kernel issued.

    Attributes:
        name: of the kernel. commands: in the order of their calls.
        polls: what the kernel's processor waited for, with the epoch of `Issued`.
    """

    name: str
    commands: tuple[Issued, ...]
    polls: tuple[tuple[int, Poll], ...] = ()

    def __len__(self) -> int:
        return len(self.commands)

    @functools.cached_property
    def groups(self) -> list[CommandGroup]:
        """The two streams of each run of ids, with their end marks, as files and devices have them.

        Those of a run that uses the sort engine have its commands, too, which files have not.
        """
        found = []
        for epoch, commands in groupby(self.commands, key=lambda command: command.epoch):
            streams: dict[Engine, list[bytes]] = {engine: [] for engine in Engine}
            for command in commands:
                streams[command.engine].append(command.data)
            tiu, gdma = (ended(engine, streams[engine]) for engine in STREAMS)
            polls = tuple(dict.fromkeys(poll for own, poll in self.polls if own == epoch))
            sorts = b"".join(streams[Engine.HAU])
            found.append(KernelGroup(tiu, gdma, Polled(sorts, polls)) if sorts else CommandGroup(tiu, gdma))
        return found

    def need_streams(self) -> None:
        """Raise UsageError for commands that no model file can hold."""
        for command in self.commands:
            if command.engine not in STREAMS:
                raise UsageError(
                    f"{command.source}: model files hold no commands of the sort engine",
                    remedy="launch the kernel on a KernelDevice",
                )

    def disassembly(self) -> str:
        """The commands as text with the calls that issued them; `bmcompiler.backends.bm1684x.asm.assemble` reads it."""
        runs, calls, lines = iter(self._runs), iter(list[Source | None]()), []
        for line in disassemble(self.groups).splitlines():
            if line == GROUP:
                run = next(runs)
                calls = iter([source for engine in Engine for source in run[engine]])
                lines.append(line)
                continue
            source = next(calls, None) if line[0].isdigit() else None
            lines.append(line if source is None else f"{line}  # {source}")
        return "\n".join(lines) + "\n"

    def layers(self) -> bytes:
        """The calls that issued the commands, as a model's list of layers has them: reports are by call, then."""
        spans, first = [], 0
        for engine in Engine:
            every = [source for run in self._runs for source in run[engine]]
            for source, run_of in groupby(every):
                count = len(list(run_of))
                if source is not None:
                    spans.append(LayerSpan(str(source), source.function, first, count))
                first += count
        return encode_layers(spans).encode()

    def source_of(self, place: object) -> Source | None:
        """The call that issued the command at a `Place`; None for an end, and for anything that is no place."""
        if not isinstance(place, Place):
            return None
        return self._runs[place.group][place.engine][place.number]

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

    @functools.cached_property
    def _runs(self) -> list[dict[Engine, list[Source | None]]]:
        """Of each run of ids the calls behind each engine's commands, and None for the mark of its end."""
        found = []
        for _, commands in groupby(self.commands, key=lambda command: command.epoch):
            run: dict[Engine, list[Source | None]] = {engine: [] for engine in Engine}
            for command in commands:
                run[command.engine].append(command.source)
            found.append({engine: [*sources, *([None] * (engine in STREAMS))] for engine, sources in run.items()})
        return found


class Kernel:
    """A function that calls the library; calling it records the calls, and gives their `Program`."""

    def __init__(self, function: Callable[..., Any], release: Release | str) -> None:
        functools.update_wrapper(self, function)
        self.name = getattr(function, "__name__", "kernel")
        self._function, self._release = function, release

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def __call__(self, *arguments: Any, **named: Any) -> Program:
        with recording(self._release) as recorder:
            self._function(*arguments, **named)
        return program_of(recorder, self.name)


def program_of(recorder: Recorder, name: str = "kernel") -> Program:
    """The program of what has been recorded. Raises UsageError when it ends in parallel state."""
    if recorder.parallel:
        raise UsageError(f"{name} ends in parallel state", remedy="call tpu_parallel_end()")
    return Program(name, tuple(recorder.commands), tuple(recorder.polls))


@overload
def kernel(function: Callable[..., Any]) -> Kernel: ...


@overload
def kernel(*, release: Release | str = ...) -> Callable[[Callable[..., Any]], Kernel]: ...


def kernel(
    function: Callable[..., Any] | None = None, *, release: Release | str = Release.SEED
) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel of a function: `@kernel`, or `@kernel(release="measured")` (see `Release`)."""
    if function is not None:
        return Kernel(function, release)
    return lambda found: Kernel(found, release)
