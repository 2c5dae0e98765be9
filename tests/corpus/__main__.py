"""`python -m corpus --seconds 600 --seed 1`: draws networks, compiles them, asks; prints what does not hold.

Exit status 1 where something does not hold, with --fail-on wrong only where a program is wrong or there is none, not
where it takes too long. --case SEED asks one case again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from dataclasses import asdict
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from .cases import drawn
from .checks import CHECKS
from .found import COST, NOT_ASKED, NOTED, WRONG, outcome, smallest, write
from .shrink import Sample
from .trial import Trial

HOLDS = "holds"
_IDLE = 10
"""Times its processor time that a case may take by the clock: other work may need the machine."""


def findings(seed: int, family: str | None, chip: str | None) -> list[dict[str, Any]]:
    """The questions asked for the case of a seed, and what does not hold; the first fault is shrunk and written."""
    case, found = drawn(seed, family, chip), []
    random = np.random.default_rng(seed + 1)
    for mode in case.modes:
        trial = Trial(case.model, case.data, case.batch, *mode)
        for name, check in CHECKS.items():
            if random.random() >= check.share:
                continue
            where = {"seed": seed, "family": case.family, "mode": "-".join(map(str, mode)), "check": name}
            finding = outcome(trial, name)
            found.append(where | ({"kind": HOLDS, "weight": HOLDS} if finding is None else asdict(finding)))
            if finding is not None and finding.weight in (WRONG, COST) and not any("nodes" in each for each in found):
                small = smallest(Sample(case.model, case.data), mode, name, finding.kind)
                path = write(small, mode, name, finding, seed)
                found[-1] |= {"file": str(path)} if path is not None else {}
                found[-1]["nodes"] = " ".join(node.op_type for node in small.model.graph.node)
            if trial.level not in trial.kept:
                break
    return found


def _child(pipe: Connection, limit: int, *case: Any) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, -1))
    try:
        pipe.send(findings(*case))
    except Exception as error:
        pipe.send([_fault(case[0], "generator", repr(error)) | {"trace": traceback.format_exc()}])


def _fault(seed: int, kind: str, text: str, weight: str = WRONG) -> dict[str, Any]:
    return {"seed": seed, "kind": kind, "text": text, "weight": weight, "check": kind}


def main() -> int:
    """Run the corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=lambda text: int(text, 0), help="of the first case")
    parser.add_argument("--case", type=int, help="only the case of this seed")
    parser.add_argument("--family")
    parser.add_argument("--chip")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=300, help="seconds of processor time of one case")
    parser.add_argument("--fail-on", choices=("any", WRONG), default="any", help="which findings give exit status 1")
    parser.add_argument("--log", type=Path, help="findings as lines of JSON")
    options = parser.parse_args()
    first = int(time.time()) if options.seed is None else options.seed % 2**40
    cases = [options.case] if options.case is not None else range(first, first + 10**6)
    print(f"corpus: seed {cases[0]}", flush=True)
    return _run(iter(cases), options)


def _run(seeds: Any, options: argparse.Namespace) -> int:
    context = multiprocessing.get_context("fork")
    running: dict[Connection, tuple[Any, float, int]] = {}
    end, done, seeds_left = time.monotonic() + options.seconds, 0, True
    counts: Counter[tuple[str, str]] = Counter()
    while True:
        while seeds_left and len(running) < options.jobs and time.monotonic() < end:
            seed = next(seeds, None)
            if seed is None:
                seeds_left = False
                break
            ours, theirs = context.Pipe(duplex=False)
            given = theirs, options.timeout, seed, options.family, options.chip
            process = context.Process(target=_child, args=given)
            process.start()
            theirs.close()
            running[ours] = (process, time.monotonic(), seed)
        if not running:
            break
        wait(list(running), timeout=1)
        for pipe, (process, started, seed) in list(running.items()):
            hangs = not pipe.poll() and time.monotonic() - started > _IDLE * options.timeout
            if hangs:
                process.kill()
            elif not pipe.poll():
                continue
            found = _received(pipe, seed)
            process.join()
            if hangs or process.exitcode == -signal.SIGXCPU:
                found = [_fault(seed, "timeout", f"more than {options.timeout} s", COST)]
            del running[pipe]
            done += 1
            _tell(found, options.log)
            counts.update((each["check"], each["weight"]) for each in found)
    _tell_counts(counts)
    weights = {weight: sum(n for (_, each), n in counts.items() if each == weight) for weight in (WRONG, COST, NOTED)}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"corpus: {done} cases in {used.ru_utime + used.ru_stime:.0f} s of processor time, "
        + ", ".join(f"{count} {weight}" for weight, count in weights.items())
    )
    return bool(weights[WRONG] or (options.fail_on == "any" and weights[COST]))


def _received(pipe: Connection, seed: int) -> list[dict[str, Any]]:
    try:
        return pipe.recv()
    except EOFError:
        return [_fault(seed, "died", "the process ended without an answer")]


def _tell(found: list[dict[str, Any]], log: Path | None) -> None:
    """Print findings and log them."""
    for each in found:
        if each["weight"] in (HOLDS, NOT_ASKED):
            continue
        print(
            f"{each['kind']}: {each.get('family', '')} {each.get('mode', '')} seed {each['seed']}: {each['text']}",
            *(each[key] for key in ("nodes", "file") if key in each),
            sep="\n  ",
            flush=True,
        )
        if log is not None:
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(each) + "\n")


def _tell_counts(counts: Counter[tuple[str, str]]) -> None:
    """A table of questions: how often they held, could not be asked, and found something."""
    heads = (HOLDS, NOT_ASKED, WRONG, COST, NOTED)
    print(f"{'':32}" + "".join(f"{head:>11}" for head in heads))
    for check in dict.fromkeys(check for check, _ in counts):
        print(f"{check:32}" + "".join(f"{counts[check, head]:>11}" for head in heads))


if __name__ == "__main__":
    sys.exit(main())
