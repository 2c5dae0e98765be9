"""Every program that a test compiles for a chip whose commands wait for each other is checked for races once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pytest

from bmcompiler.analysis.profile import Analyzer, find_analyzer
from bmcompiler.errors import BMError
from bmcompiler.ir import Module
from bmcompiler.target import Compiled, find_target

Compile = Callable[[Any, Sequence[Module], int], Compiled]


@dataclass
class RaceWatch:
    """What has been checked: digests of programs. A test of wrong kernels sets `paused` for its time."""

    checked: set[bytes] = field(default_factory=set)
    paused: bool = False


def commands_1880(model: Any) -> Iterator[bytes]:
    """The commands of each program."""
    yield from (bytes(command.cmdbuf) for command in model.commands)


def commands_1684(model: Any) -> Iterator[bytes]:
    """The commands of each stage; a subnet of the host, which orders all, is an empty one."""
    for _, stage in model.all_stages():
        digest = hashlib.sha256()
        for subnet in stage.subnets:
            groups: Sequence[Sequence[bytes]] = getattr(subnet, "groups", [(b"",)])
            for part in chain.from_iterable(groups):
                digest.update(len(part).to_bytes(8, "little"))
                digest.update(part)
        yield digest.digest()


CHIPS: dict[str, Callable[[Any], Iterator[bytes]]] = {
    "bm1880": commands_1880,
    "bm1684": commands_1684,
    "bm1684x": commands_1684,
}
"""Chips with wait ids, and what tells their programs apart."""


@contextmanager
def watched() -> Iterator[RaceWatch]:
    """Compiling a program with a race fails with the race's sentence.

    The test fails where the program is compiled, so that hypothesis finds the smallest one.
    """
    watch = RaceWatch()
    with pytest.MonkeyPatch.context() as patch:
        for name, commands in CHIPS.items():
            chip, analyze = type(find_target(name)), find_analyzer(name)
            assert analyze is not None
            patch.setattr(chip, "compile", checking(chip.compile, analyze, commands, watch))
        yield watch


def checking(
    compile: Compile, analyze: Analyzer, commands: Callable[[Any], Iterator[bytes]], watch: RaceWatch
) -> Compile:
    """`Target.compile` that refuses races."""

    def compile_and_check(target: Any, modules: Sequence[Module], level: int) -> Compiled:
        compiled = compile(target, modules, level)
        for program, content in enumerate(commands(compiled.model)):
            digest = hashlib.sha256(content).digest()
            if not watch.paused and digest not in watch.checked:
                try:
                    races = analyze(compiled.model, program).races(1)
                except BMError as error:
                    pytest.fail(f"{target.name}, --opt {level}: program {program} cannot be analysed: {error}")
                if races:
                    pytest.fail(f"{target.name}, --opt {level}, program {program}: {races[0]}")
                watch.checked.add(digest)
        return compiled

    return compile_and_check
