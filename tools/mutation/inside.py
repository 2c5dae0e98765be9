"""The pytest plugin inside of a run of tests: `pytest -p mutation.inside`, told by the environment what to do.

MUTATION_RECORD=1         every target module tells what is reached; records are written, one per test file
MUTATION_PLACE=mod:digest that module has that fault; MUTATION_TESTS names a file with the ids of tests to run, in
                          order; MUTATION_RESULT a file for what came of it
MUTATION_ALIKE=file       the file is told which faults' expressions never have another value (mutation.alike)
MUTATION_SERVE=in,out     pipes of questions and answers (mutation.loaded)
"""

from __future__ import annotations

import ast
import gc
import json
import os
import resource
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from mutation import loading, reach
from mutation.alike import Watcher
from mutation.faults import broken
from mutation.limited import Limited
from mutation.loaded import MEMORY, Teller, serve
from mutation.probes import PROBE, probed
from mutation.remembered import Remembered
from mutation.targets import ROOT, every_module


class Recorder(Limited, Remembered):
    """Notes what each test reaches."""

    def __init__(self) -> None:
        Limited.__init__(self)
        Remembered.__init__(self)
        self.names: list[tuple[str, str]] = []
        self.numbers: dict[str, int] = {}
        self.files: dict[str, dict[str, tuple[float, set[str]]]] = {}
        self.collected: set[Path] = set()
        self.failed = False
        self.wrong: set[Path] = set()
        modules = every_module()
        loading.install(modules.__contains__, self.change, {PROBE: self.now.add})
        self.install()

    def change(self, module: str, source: str) -> ast.Module:
        def number(function: str, statement: str) -> int:
            name = reach.key(module, function, statement)
            if name not in self.numbers:
                self.numbers[name] = len(self.names)
                self.names.append((name, reach.module_key(module)))
            return self.numbers[name]

        return probed(ast.parse(source), number)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
        self.begin()
        self.failed, start = False, time.process_time()
        yield
        if not self.failed:
            names = {name for number in self.end(item) for name in self.names[number]}
            file = item.nodeid.partition("::")[0]
            self.files.setdefault(file, {})[item.nodeid] = (time.process_time() - start, names)
        if nextitem is None or nextitem.path != item.path:
            tests = self.files.pop(item.nodeid.partition("::")[0], {})
            if item.path not in self.wrong:
                reach.write(item.path, tests)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or not report.passed
        if report.failed:  # what it reaches is not known, so the file is asked again
            self.wrong.add(ROOT / report.nodeid.partition("::")[0])

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.collected = {item.path for item in items}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Files without a test that is asked have an empty record, so that they are not asked again."""
        for file in self.collected - {item.path for item in session.items}:
            reach.write(file, {})


class Breaker(Teller):
    """Runs the named tests on the broken module and says which of them found it."""

    def __init__(self, place: str) -> None:
        self.module, _, self.digest = place.partition(":")
        self.wanted = Path(os.environ["MUTATION_TESTS"]).read_text(encoding="utf-8").splitlines()
        super().__init__()
        if self.digest:
            loading.install(self.module.__eq__, self.change)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def change(self, module: str, source: str) -> ast.Module:
        tree = broken(source, self.digest)
        self.result["applied"] = True
        self.write()
        return tree

    def write(self) -> None:
        Path(os.environ["MUTATION_RESULT"]).write_text(json.dumps(self.result), encoding="utf-8")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        order = {test: number for number, test in enumerate(self.wanted)}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])

    def found(self, test: str, text: str) -> None:
        super().found(test, text)
        self.write()

    def pytest_sessionfinish(self) -> None:
        self.write()


class Server:
    """Collects tests, then answers questions instead of running them."""

    def __init__(self, pipes: str) -> None:
        self.pipes = tuple(map(int, pipes.split(",")))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()
        serve(session.items, *self.pipes)
        return True


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before conftest.py imports anything of ours."""
    if os.environ.get("MUTATION_RECORD"):
        early_config.pluginmanager.register(Recorder())
    elif file := os.environ.get("MUTATION_ALIKE"):
        early_config.pluginmanager.register(Watcher(file))
    elif pipes := os.environ.get("MUTATION_SERVE"):
        early_config.pluginmanager.register(Server(pipes))
    elif place := os.environ.get("MUTATION_PLACE"):
        early_config.pluginmanager.register(Breaker(place))
