"""List the faults that no test can find, as wherever it evaluates them they have the right value (`mutation.alike`).

    python tools/alike.py [--kinds compare,condition] [--modules TEXT] [--jobs 2] [--again] [--never] [TEST ...]

The first run of all tests takes about as long as `make test`; what it found is kept in .mutation/alike until `--again`.
`TEST ...`: run only these and list what they do not tell apart either, which is for a test that is being written.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from mutation import reach  # noqa: E402
from mutation.places import faults_of  # noqa: E402
from mutation.targets import CORPUS, EVERY_TEST, every_module  # noqa: E402

FOLDER = reach.FOLDER / "alike"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="which faults have the right value in all tests?")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="only these tests (all)")
    parser.add_argument("--kinds", default="", metavar="NAMES", help="only these kinds, with commas")
    parser.add_argument("--modules", default="", metavar="TEXT", help="only of modules whose name has this text")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--again", action="store_true", help="run all tests again")
    parser.add_argument("--never", action="store_true", help="those that no test evaluates at all, too")
    return parser.parse_args()


def run(tests: list[str], told: Path) -> None:
    """Run tests; what they evaluate is written into `told`."""
    env = {**os.environ, "MUTATION_ALIKE": str(told), "PYTHONPATH": str(ROOT / "tools"), "OPENBLAS_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "not sweep",
        "-p",
        "mutation.inside",
        "-p",
        "no:cacheprovider",
    ]
    subprocess.run([*command, *tests], cwd=ROOT, env=env, check=False, stdout=subprocess.DEVNULL)


def run_all(jobs: int) -> None:
    files = [str(file.relative_to(ROOT)) for file in reach.files_of([*EVERY_TEST, CORPUS])]
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("part*.json"):
        old.unlink()
    with ThreadPoolExecutor(jobs) as pool:
        list(
            pool.map(run, [files[part::jobs] for part in range(jobs)], [FOLDER / f"part{n}.json" for n in range(jobs)])
        )


def main() -> int:
    given = options()
    if given.again or not any(FOLDER.glob("part*.json")):
        run_all(given.jobs)
    if given.tests:
        run(given.tests, FOLDER / "more.json")
    told = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    differing, alike, never = (
        {name for each in told for name in each[word]} for word in ("differing", "alike", "never")
    )
    listed = (alike | never if given.never else alike) - differing
    kinds: Counter[str] = Counter()
    for module in sorted(every_module()):
        name = module.removeprefix("bmcompiler.")
        for fault in faults_of(module) if given.modules in module else ():
            if f"{name}:{fault.digest()}" in listed and fault.kind in (given.kinds or fault.kind).split(","):
                kinds[fault.kind] += 1
                place = f"{name}:{fault.digest()} {fault.kind} line {fault.line}, {fault.function}"
                print(f"{place}: {fault.text} -> {fault.wrong}")
    print(f"{sum(kinds.values())} of {len(differing | alike)} evaluated: {dict(kinds)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
