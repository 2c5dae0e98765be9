"""A process that has imported all tests and everything of ours; for each fault a child of it runs some of the tests.

Most faults are found so in the time that the tests take. `Loaded` is the side that asks, `serve` what the process does.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mutation import inplace
from mutation.reach import Timed
from mutation.targets import ROOT, every_module

MEMORY = 8 << 30
"""Bytes that a broken program may take."""
PATIENCE, HANGS = 30, 10
"""A broken program that computes for so many seconds and so many times what it took hangs."""
ASLEEP = 20
"""Times as long by the clock, in which it may wait: machines are loaded at times."""


class Teller:
    """Notes the first test that fails, why, and how many ran."""

    def __init__(self) -> None:
        self.result: dict[str, Any] = {"applied": False, "found": "", "why": "", "ran": 0}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.found(report.nodeid, report.longreprtext)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.result["ran"] += report.when == "call"
        if report.failed:
            self.found(report.nodeid, report.longreprtext)

    def found(self, test: str, text: str) -> None:
        lines = [line for line in text.splitlines() if line.startswith("E ")] or [""]
        self.result.update(found=self.result["found"] or test, why=self.result["why"] or lines[0][1:].strip())


class Loaded:
    """The process, started with the first question, and what it answers."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Import all."""
        there, here = os.pipe(), os.pipe()
        told = {"MUTATION_SERVE": f"{there[0]},{here[1]}", "OPENBLAS_NUM_THREADS": "1"}
        options = ["-q", "-p", "mutation.inside", "-p", "no:cacheprovider", "--hypothesis-seed=1"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *self.files],
            cwd=ROOT,
            env={**os.environ, **told, "PYTHONPATH": str(ROOT / "tools")},
            pass_fds=(there[0], here[1]),
            stdout=subprocess.DEVNULL,
        )
        os.close(there[0])
        os.close(here[1])
        self.questions, self.answers = os.fdopen(there[1], "w"), os.fdopen(here[0])

    def ask(self, module: str, digest: str, tests: Sequence[Timed]) -> dict[str, Any]:
        """`applied`: whether the fault could be made; `found`, `why`, `ran` as of any run."""
        if self.process is None:
            self.start()
        question = {"module": module, "digest": digest, "tests": [(test.id, test.seconds) for test in tests]}
        self.questions.write(json.dumps(question) + "\n")
        self.questions.flush()
        answer = self.answers.readline()
        if not answer:
            raise RuntimeError("the process that runs tests ended: does `pytest --collect-only` work?")
        return dict(json.loads(answer))


def serve(items: Sequence[pytest.Item], questions: int, answers: int) -> None:
    """Import what no test file does, then answer questions until nobody asks any more."""
    for module in sorted(every_module()):
        importlib.import_module(module)
    functions, named = inplace.all_functions(), {item.nodeid: item for item in items}
    with os.fdopen(questions) as asked, os.fdopen(answers, "w") as told:
        for line in asked:
            told.write(json.dumps(_answer(json.loads(line), named, functions)) + "\n")
            told.flush()


def _answer(question: dict[str, Any], named: Mapping[str, pytest.Item], functions: inplace.Functions) -> dict[str, Any]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _child(question, named, functions, write)
    os.close(write)
    with os.fdopen(read) as pipe:
        lines = pipe.read().splitlines()
    signalled = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    last: dict[str, Any] = json.loads(lines[-1]) if lines else {"applied": False, "found": "", "why": "", "ran": 0}
    if signalled and not last["found"]:
        last.update(found=last.get("test", "nothing"), why="takes too long, or the process dies")
    return last


def _child(question: dict[str, Any], named: Mapping[str, pytest.Item], functions: inplace.Functions, out: int) -> None:
    """Make the fault, run the tests until one fails, tell after each."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    teller, told = Teller(), os.fdopen(out, "w")
    teller.result["applied"] = inplace.make(question["module"], question["digest"], functions)
    tests = [(named[test], seconds) for test, seconds in question["tests"] if test in named]
    if teller.result["applied"] and tests:
        tests[0][0].config.pluginmanager.register(teller)
        for (item, seconds), (following, _) in zip(tests, [*tests[1:], (None, 0)], strict=True):
            teller.result["test"] = item.nodeid
            told.write(json.dumps(teller.result) + "\n")
            told.flush()
            longest = PATIENCE + HANGS * seconds
            signal.setitimer(signal.ITIMER_PROF, longest)
            signal.alarm(math.ceil(ASLEEP * longest))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if teller.result["found"]:
                break
    told.write(json.dumps(teller.result) + "\n")
    told.close()
    os._exit(0)
