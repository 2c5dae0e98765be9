"""Ask the tests about one fault: those that reach its statement first, quick ones of many files before long ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from mutation.places import Place
from mutation.reach import Reach, Timed, key, module_key
from mutation.targets import ROOT, every_module

FIRST = 2.0
"""Seconds of tests in the first round: most faults fall there, and only its files are imported."""
HANGS = 20
"""A broken program that takes so many times what it took, and a minute, hangs; machines are loaded at times."""


@dataclass(frozen=True)
class Answer:
    """What came of one fault: the test that found it, or "" where it survived `ran` tests of `known`."""

    place: Place
    found: str
    why: str
    ran: int
    known: int


def in_turns(tests: Sequence[Timed]) -> list[Timed]:
    """The quickest of each file first, then the second of each; files by their quickest."""
    files: dict[str, list[Timed]] = {}
    for test in sorted(tests, key=lambda test: (test.seconds, test.id)):
        files.setdefault(test.file, []).append(test)
    return [test for row in zip_longest(*files.values()) for test in row if test is not None]


def selected(place: Place, reach: Reach, budget: float) -> list[Timed]:
    """Tests to ask, as many as take `budget` seconds.

    After those that reach the statement come those that reach its module: what a process keeps was perhaps computed by
    a test before. What stands outside of functions has only those.
    """
    fault = place.fault
    near = in_turns(reach.tests(key(place.module, fault.function, fault.statement), place.tests))
    known = {test.id for test in near}
    far = [test for test in in_turns(reach.tests(module_key(place.module), place.tests)) if test.id not in known]
    if not near and not far:  # a table that is only read: whoever reads it is not known
        far = in_turns(
            [test for module in neighbours(place.module) for test in reach.tests(module_key(module), place.tests)]
        )
    return within([*near, *far], budget)


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


def ask(place: Place, reach: Reach, budget: float) -> Answer:
    """Break it and run tests until one fails."""
    tests = selected(place, reach, budget)
    first = within(tests, FIRST)
    chosen = {test.id for test in first}
    ran = 0
    for round_ in (first, [test for test in tests if test.id not in chosen]):
        if round_:
            found, why, more = run(f"{place.module}:{place.fault.digest()}", round_)
            ran += more
            if found:
                return Answer(place, found, why, ran, len(tests))
    return Answer(place, "", "", ran, len(tests))


def run(broken: str, tests: Sequence[Timed]) -> tuple[str, str, int]:
    """The test that fails, why, and how many ran; `broken` is "module:digest", or "nothing"."""
    with tempfile.TemporaryDirectory() as name:
        wanted, result = Path(name, "tests"), Path(name, "result")
        wanted.write_text("\n".join(test.id for test in tests), encoding="utf-8")
        result.write_text(json.dumps({"applied": False, "found": "", "why": "", "ran": 0}), encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": str(ROOT / "tools"), "OPENBLAS_NUM_THREADS": "1",
               "MUTATION_PLACE": broken, "MUTATION_TESTS": str(wanted), "MUTATION_RESULT": str(result)}  # fmt: skip
        files = list(dict.fromkeys(test.file for test in tests))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "mutation.inside",
            "-p",
            "no:cacheprovider",
            "--hypothesis-seed=1",
            *files,
        ]
        child = subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            output = child.communicate(timeout=60 + HANGS * sum(test.seconds for test in tests))[0]
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return f"hangs in {files[0]}", "takes too long", 0
        said = json.loads(result.read_text(encoding="utf-8"))
    return verdict(broken, child.returncode, said, output.decode(errors="replace"))


def verdict(broken: str, code: int, said: dict[str, object], output: str) -> tuple[str, str, int]:
    """What a finished run means; RuntimeError where it means nothing."""
    found, why, ran = str(said["found"]), str(said["why"]), int(said["ran"])  # type: ignore[call-overload]
    if code == 0 and (said["applied"] or broken == "nothing"):
        return "", "", ran
    if code != 0 and found:
        return found, why, ran
    if code not in (0, 5) and said["applied"]:
        return "import", output.strip().splitlines()[-1], ran
    state = "made" if said["applied"] else "not made"
    raise RuntimeError(f"{broken}: pytest ended with {code}, the fault was {state}\n{output[-2000:]}")
