"""Wrong values for every option and argument of a command, made from its own declarations."""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from bmcompiler.cli.common import Output, run

HUGE = "9" * 400
WORDS = ["", " ", "x", "-1", "0", "nan", "inf", "1e999", HUGE, "a,b", "1,", "\udcff", "\x1b[2J"]
NUMBERS = ["", "x", "-1", "0", "1.5", "nan", "inf", "-inf", "1e999", HUGE, "99999999999999999999", "0x1", "1e5"]
READ = ["", "missing", "folder", "/dev/null", "/dev/zero", "/dev/full", "empty", "cut", "text", "binary", "other", "-"]
WRITTEN = ["", "no/where", "folder", "/dev/full", "/proc/x", "an_input", "n" * 300, "-", "."]
MEMORY = 6 << 30
"""Bytes of address space that a case may take beyond what this process has."""
SECONDS = 10
"""Of CPU, that a case may take."""


@dataclass(frozen=True)
class Walked:
    """A command of which wrong values are tried.

    given: what makes it succeed, by name of the option ("--data") or argument ("model"), in the order of arguments.
    """

    command: click.Command
    prog: str
    given: Mapping[str, str]

    def cases(self) -> Iterator[list[str]]:
        """Arguments of the command line; each is right but in one place."""
        for param in self.command.params:
            if not isinstance(param, click.Option):
                name = str(param.name)
                for value in _values(param, self.given.get(name, "")):
                    yield self.line({name: value})
                continue
            flag = max(param.opts, key=len)
            if flag in ("--help", "--version"):
                continue
            rest = {name: value for name, value in self.given.items() if name != flag}
            line = self.line({}, rest)
            if param.is_flag:
                yield [*line, flag, flag]
                yield [*line, f"{flag}=x"]
                continue
            yield [*line, flag]
            yield from ([*line, f"{flag}={value}"] for value in _values(param, self.given.get(flag, "")))
            right = self.given.get(flag, "1")
            yield [*line, flag, right, flag, right]

    def line(self, changed: Mapping[str, str] | None = None, given: Mapping[str, str] | None = None) -> list[str]:
        """The arguments, with some that are changed."""
        found: list[str] = []
        for name, value in {**(self.given if given is None else given), **(changed or {})}.items():
            found += [name, value] if name.startswith("-") else [value]
        return found


def _values(param: click.Parameter, right: str) -> list[str]:
    kind = param.type
    if isinstance(kind, Output):
        return [*WRITTEN, *([f"folder/../{right}"] if right else [])]
    if isinstance(kind, click.Path):
        return [*READ, *([f"{right}/x"] if right else [])]
    if isinstance(kind, click.types.FloatParamType | click.types.IntParamType):
        return NUMBERS
    return [*WORDS, "missing", "folder", "/dev/zero"]


def prepare(folder: Path, whole: Path) -> None:
    """The wrong files: a folder, an empty file, the start of a right one, others that are of no such kind."""
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    data = whole.read_bytes()
    (folder / "cut").write_bytes(data[: len(data) * 2 // 3])
    (folder / "text").write_text("hello world\n")
    (folder / "binary").write_bytes(b"\x00\xff\xfe\x01" * 500)
    (folder / "an_input").symlink_to(whole.relative_to(folder))
    (folder / "other").write_bytes(b"PK\x05\x06" + bytes(18))


def complaint(walked: Walked, line: list[str], folder: Path) -> str:
    """What is wrong with how a command ends; empty where nothing is. It runs in a process of its own."""
    before = _files(folder)
    status, said = run_apart(walked, line, folder)
    after = _files(folder)
    if status not in (0, 1, 2):
        return f"status {status}: {said[-1500:]}"
    if "Traceback" in said:
        return f"status {status}, a traceback: {said[-1500:]}"
    if status == 0:
        _remove(folder, after.keys() - before.keys())
        changed = {name for name in before if before[name] != after.get(name) and before[name][0]}  # none was empty
        return f"inputs changed: {sorted(changed)}" if changed else ""
    if before != after:
        _remove(folder, after.keys() - before.keys())
        return f"left: {sorted(before.items() ^ after.items())}, {said}"
    lines = [each for each in said.splitlines() if each]
    ours = [each for each in lines if each.startswith(f"{walked.prog}: ")]
    return "" if len(ours) == 1 and len(ours[0]) > len(walked.prog) + 12 else f"status {status}, said {said[-1500:]!r}"


def run_apart(walked: Walked, line: list[str], folder: Path) -> tuple[int, str]:
    """Status and standard error of a command in a forked process, with bounds for memory and time."""
    log = folder.parent / "said"
    child = os.fork()
    if not child:
        _begin(walked, line, folder, log)
    _, state = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(state)
    return status, log.read_text(errors="replace")


def _begin(walked: Walked, line: list[str], folder: Path, log: Path) -> None:
    """The child: it never returns."""
    status = 70
    try:
        os.chdir(folder)
        null, said = os.open(os.devnull, os.O_RDWR), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number, stream in ((0, null), (1, null), (2, said)):
            os.dup2(stream, number)
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
        used = int(sum(os.times()[:2]))
        resource.setrlimit(resource.RLIMIT_CPU, (used + SECONDS, used + SECONDS))
        signal.alarm(12 * SECONDS)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(k, "r" if k == 0 else "w", closefd=False) for k in range(3))
        status = run(walked.command, walked.prog, line)
        sys.stderr.flush()
    except BaseException:
        os.write(2, traceback.format_exc().encode(errors="replace"))
    finally:
        os._exit(status)


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in folder.rglob("*"):
        state = path.lstat()
        found[str(path)] = (0, 0) if path.is_dir() else (state.st_size, state.st_mtime_ns)
    return found


def _remove(folder: Path, names: set[str]) -> None:
    for name in sorted(names, reverse=True):
        path = Path(name)
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
