"""Break code generators and simulators on purpose: do tests or nets of the corpus find it? `make mutation` calls it.

    python tools/mutate.py [--seed 1] [--places 150] [--modules TEXT] [--budget SECONDS] [--jobs 2] [--list]

First, test files without a current record of what they reach are run once. Then each place is broken in a process of
its own, on import; no file changes. Exit code 1 where fewer than 95 of 100 faults are found. What survives gets a test,
or a line with a reason in tools/mutation/harmless.py. A fault that survives the quick tests of its chip is asked of all
tests that reach its statement; one that rounds up a division which has no remainder in any of them is none.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from mutation import reach  # noqa: E402
from mutation.asking import NO_FAULT, ask, passed_over, run, selected, whole_divisions  # noqa: E402
from mutation.kept import Kept, Said  # noqa: E402
from mutation.loaded import Loaded  # noqa: E402
from mutation.places import Place, chosen  # noqa: E402
from mutation.targets import CORPUS, EVERY_TEST  # noqa: E402

ENOUGH = 0.95


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="break code on purpose; do tests find it?")
    parser.add_argument("--seed", type=int, default=1, help="which places (1)")
    parser.add_argument("--places", type=int, default=150, help="how many (150)")
    parser.add_argument("--modules", default="", metavar="TEXT", help="only of modules whose name has this text")
    parser.add_argument("--only", default="", metavar="NAMES", help="only these places, by name, with commas")
    parser.add_argument(
        "--budget", type=float, default=30, metavar="SECONDS", help="of tests per place, before all (30)"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--list", action="store_true", help="show the places, break nothing")
    return parser.parse_args()


def record(tests: set[str], jobs: int) -> None:
    """Run test files that have no current record; a sweep asks nothing that no other test asks."""
    files = reach.stale(sorted(tests))
    if files:
        print(f"recording what {len(files)} test files reach", flush=True)
        parts = [files[start::jobs] for start in range(min(jobs, len(files)))]
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(_record, parts))


def _record(files: list[str]) -> None:
    env = {**os.environ, "MUTATION_RECORD": "1", "PYTHONPATH": str(ROOT / "tools"), "OPENBLAS_NUM_THREADS": "1"}
    options = ["-q", "-m", "not sweep", "-p", "mutation.inside", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *files]
    subprocess.run(command, cwd=ROOT, env=env, check=False, stdout=subprocess.DEVNULL)


def shown(place: Place) -> str:
    fault = place.fault
    return f"{place.name}  {fault.kind:9} line {fault.line}, {fault.function}: {fault.text}  ->  {fault.wrong}"


def asked(places: list[Place], budget: float, jobs: int) -> list[tuple[Place, Said]]:
    """Break each whose answer is not known, with a line per place as it comes."""
    known, kept, answers = reach.Reach(), Kept(), []
    files = reach.recorded({*EVERY_TEST, CORPUS})
    idle: SimpleQueue[Loaded] = SimpleQueue()
    for _ in range(jobs):
        idle.put(Loaded(files))

    def answer(place: Place) -> Said:
        tests = selected(place, known, budget)
        more = passed_over(place, known, tests)
        ids = [test.id for test in (*tests, *more)]
        said = kept.get(place.name, place.module, ids)
        if said is None:
            loaded = idle.get()
            said = whole_divisions(place, [*tests, *more], loaded)
            if said is None:
                said = ask(place, tests, loaded)
                said = said if said.found else said.then(ask(place, more, loaded))
            idle.put(loaded)
            kept.put(place.name, place.module, ids, said)
        return said

    with ThreadPoolExecutor(jobs) as pool:
        for number, (place, said) in enumerate(zip(places, pool.map(answer, places), strict=True), 1):
            answers.append((place, said))
            words = (
                f"found by {said.found}: {said.why}" if said.found else f"{said.why or 'SURVIVED'}, {said.ran} tests"
            )
            print(f"{number:4} {said.seconds:5.1f} s  {shown(place)}\n       {words[:220]}", flush=True)
    return answers


def doubtful(found: set[str]) -> list[str]:
    """Tests that found a fault and fail without one, too."""
    tests = [reach.Timed(test, 10) for test in sorted(found) if "::" in test]
    wrong = []
    while tests:
        one, _, _ = run("nothing", tests)
        if not one:
            break
        wrong.append(one)
        tests = [test for test in tests if test.id != one]
    return wrong


def main() -> int:
    given = options()
    places = chosen(given.seed, given.places if not given.only else 10**6, given.modules)
    if given.only:
        names = given.only.split(",")
        places = [place for place in places if place.name in names]
    if given.list:
        print("\n".join(map(shown, places)))
        return 0
    record({*EVERY_TEST, CORPUS}, given.jobs)
    start = time.perf_counter()
    answers = asked(places, given.budget, given.jobs)
    none = [place for place, said in answers if said.why == NO_FAULT]
    answers = [(place, said) for place, said in answers if said.why != NO_FAULT]
    wrong = doubtful({said.found for _, said in answers})
    survived = [(place, said) for place, said in answers if not said.found or said.found in wrong]
    print(f"\nsurvived ({len(survived)} of {len(answers)}):")
    for place, said in survived:
        print(f"  {place.group}: {shown(place)}  ({said.ran} tests)")
    for test in wrong:
        print(f"  {test} fails without a fault: what it found counts as survived")
    print(f"{NO_FAULT} ({len(none)}, not counted):")
    for place in none:
        print(f"  {place.group}: {shown(place)}")
    share = 1 - len(survived) / max(1, len(answers))
    by_corpus = sum(said.found.startswith(CORPUS) for _, said in answers)
    seconds = time.perf_counter() - start
    print(f"seed {given.seed}: {100 * share:.1f} % of {len(answers)} faults found in {seconds:.0f} s")
    print(f"{by_corpus} of them by networks of the corpus alone")
    return int(share < ENOUGH)


if __name__ == "__main__":
    sys.exit(main())
