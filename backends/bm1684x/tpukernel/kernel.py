"""Kernels: Python functions whose calls of the library become a program of commands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, overload

from bmcompiler.backends.bm1684x.asm import disassemble
from bmcompiler.backends.bm1684x.stream import ended
from bmcompiler.backends.bm1684x.tpukernel.recorder import Issued, Recorder, Release, recording
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.errors import UsageError
from bmcompiler.instructions.order import Engine


@dataclass(frozen=True)
class Program:
    """What one call of a kernel issued.

    Attributes:
        name: of the kernel. commands: in the order of their calls.
    """

    name: str
    commands: tuple[Issued, ...]

    def __len__(self) -> int:
        return len(self.commands)

    @functools.cached_property
    def groups(self) -> list[CommandGroup]:
        """The two streams of each run of ids, with their end marks, as files and devices have them."""
        found = []
        for _, commands in groupby(self.commands, key=lambda command: command.epoch):
            streams: dict[Engine, list[bytes]] = {engine: [] for engine in Engine}
            for command in commands:
                streams[command.engine].append(command.data)
            found.append(CommandGroup(*(ended(engine, streams[engine]) for engine in Engine)))
        return found

    def disassembly(self) -> str:
        """The commands as text, which `bmcompiler.backends.bm1684x.asm.assemble` reads."""
        return disassemble(self.groups)


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
    return Program(name, tuple(recorder.commands))


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
