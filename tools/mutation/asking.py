"""Ask the tests about one fault: those that reach its statement first, quick ones of many files before long ones."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from mutation import children
from mutation.faults import ONLY_WHOLE
from mutation.kept import Said
from mutation.loaded import HANGS, Loaded
from mutation.places import Place
from mutation.reach import Reach, Timed, key, module_key
from mutation.targets import ALL_TESTS, CORPUS, EVERY_TEST, FACTS, PROGRAMS, every_module

FIRST = 2.0
"""Seconds of tests in the first round: most faults fall there, and only its files are imported."""
NO_FAULT = "divides without a remainder"
"""What is said of a fault that rounds up where nothing has to be rounded in any test."""
AGAIN = 2.0
"""Seconds of tests that ask about what import computes, of faults that all tests passed over in existing functions."""


def in_turns(tests: Sequence[Timed]) -> list[Timed]:
    """The quickest of each file first, then the second of each; files by their quickest."""
    files: dict[str, list[Timed]] = {}
    for test in sorted(tests, key=lambda test: (test.seconds, test.id)):
        files.setdefault(test.file, []).append(test)
    return [test for row in zip_longest(*files.values()) for test in row if test is not None]


def selected(place: Place, reach: Reach, budget: float) -> list[Timed]:
    """Tests to ask: as many of the group as take `budget` seconds, then half as many of other groups and of the corpus.

    1. Quick ones that reach the statement.
    2. Recorded programs that it is reached for, which are all that can tell of a plan that is right and not the best.
    3. The others that reach the statement.
    4. Those that reach its module: what a process keeps was perhaps computed by a test before. What stands outside of
       functions has only those, and what is recorded of tables and of defaults.
    """
    fault = place.fault
    statement = key(place.module, fault.function, fault.statement)
    near = in_turns(reach.tests(statement, place.tests) or reach.every(FACTS))
    programs = in_turns(reach.tests(statement, [PROGRAMS]))
    asked = [*within(near, FIRST), *within(programs, budget / 2), *by_reach(place, reach, near)]
    own = within(asked, budget)
    known = {test.id for test in [*near, *own]}
    others = [test for test in in_turns(reach.tests(statement, ALL_TESTS)) if test.id not in known]
    return [*own, *within(others, budget / 2), *within(in_turns(reach.tests(statement, [CORPUS])), budget / 2)]


def passed_over(place: Place, reach: Reach, asked: Sequence[Timed]) -> list[Timed]:
    """What a fault that survives `asked` is asked, too: all other tests that reach its statement, however long.

    What stands outside of functions is reached by whoever imports it: all tests of its module.
    """
    fault = place.fault
    known = {test.id for test in asked}
    name = key(place.module, fault.function, fault.statement) if fault.function else module_key(place.module)
    return [test for test in in_turns(reach.tests(name, EVERY_TEST)) if test.id not in known]


def by_reach(place: Place, reach: Reach, near: list[Timed]) -> list[Timed]:
    """`near`, which reach the statement, then tests of the group that reach its module."""
    known = {test.id for test in near}
    far = [test for test in in_turns(reach.tests(module_key(place.module), place.tests)) if test.id not in known]
    if not near and not far:  # a table that is only read: whoever reads it is not known
        far = in_turns(
            [test for module in neighbours(place.module) for test in reach.tests(module_key(module), place.tests)]
        )
    return [*near, *far]


def neighbours(module: str) -> list[str]:
    """Modules of the same folder."""
    folder = module.rpartition(".")[0] + "."
    return sorted(each for each in every_module() if each.startswith(folder) and each != module)


def within(tests: Sequence[Timed], seconds: float) -> list[Timed]:
    """The first that take so long together; longer ones are passed over, and one at least is taken."""
    taken: dict[str, Timed] = {}
    spent = 0.0
    for test in tests:
        if test.id not in taken and (not taken or spent + test.seconds <= seconds):
            taken[test.id] = test
            spent += test.seconds
    return list(taken.values())


def whole_divisions(place: Place, tests: Sequence[Timed], loaded: Loaded) -> Said | None:
    """`NO_FAULT` where a fault rounds up what none of the tests divides with a remainder; None of all others."""
    said = ask(place, tests, loaded, ONLY_WHOLE) if place.fault.rounds_up else None
    return replace(said, why=NO_FAULT) if said and said.ran and not said.found else None


def ask(place: Place, tests: Sequence[Timed], loaded: Loaded, how: str = "") -> Said:
    """Break it and run tests until one fails: first in functions that are there; quick ones again, broken on import."""
    start, ran, digest = time.perf_counter(), 0, how + place.fault.digest()
    rounds = [within(tests, FIRST), tests]
    if place.fault.function:
        said = loaded.ask(place.module, digest, tests)
        if said["found"]:
            return Said(said["found"], said["why"], said["ran"], time.perf_counter() - start)
        ran = said["ran"]
        rounds = [within(tests, AGAIN)] if said["applied"] else rounds
    asked: set[str] = set()
    for round_ in rounds:
        now = [test for test in round_ if test.id not in asked]
        asked |= {test.id for test in now}
        if now:
            found, why, more = run(f"{place.module}:{digest}", now)
            ran += more
            if found:
                return Said(found, why, ran, time.perf_counter() - start)
    return Said("", "", ran, time.perf_counter() - start)


def run(broken: str, tests: Sequence[Timed]) -> tuple[str, str, int]:
    """The test that fails, why, and how many ran; `broken` is "module:digest", or "nothing"."""
    with tempfile.TemporaryDirectory() as name:
        wanted, result, output = Path(name, "tests"), Path(name, "result"), Path(name, "output")
        wanted.write_text("\n".join(test.id for test in tests), encoding="utf-8")
        result.write_text(json.dumps({"applied": False, "found": "", "why": "", "ran": 0}), encoding="utf-8")
        told = {"MUTATION_PLACE": broken, "MUTATION_TESTS": str(wanted), "MUTATION_RESULT": str(result)}
        files = list(dict.fromkeys(test.file for test in tests))
        longest = 60 + HANGS * sum(test.seconds for test in tests)
        code = children.finished(children.pytest, (told, files, str(output)), longest)
        if code is None:
            return f"hangs in {files[0]}", "takes too long", 0
        said = json.loads(result.read_text(encoding="utf-8"))
        return verdict(broken, code, said, output.read_text(encoding="utf-8", errors="replace"))


def verdict(broken: str, code: int, said: dict[str, object], output: str) -> tuple[str, str, int]:
    """What a finished run means; RuntimeError where it means nothing.

    A fault that was not made by a run in which nothing failed is one of a module that no test of it imports.
    """
    found, why, ran = str(said["found"]), str(said["why"]), int(said["ran"])  # type: ignore[call-overload]
    if code == 0:
        return "", "", ran if said["applied"] or broken == "nothing" else 0
    if code != 0 and found:
        return found, why, ran
    if code not in (0, 5) and said["applied"]:
        return "import", output.strip().splitlines()[-1], ran
    state = "made" if said["applied"] else "not made"
    raise RuntimeError(f"{broken}: pytest ended with {code}, the fault was {state}\n{output[-2000:]}")
