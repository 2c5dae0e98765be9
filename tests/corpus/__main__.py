"""`python -m corpus --seconds 600 --seed 1`: draws networks, compiles them, asks; prints what does not hold.

Exit status 1 where something does not hold. --case SEED asks one case again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
import traceback
from dataclasses import asdict
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from .cases import drawn
from .checks import CHECKS, Trial
from .found import answer, smallest, write
from .shrink import Sample


def findings(seed: int, family: str | None, chip: str | None) -> list[dict[str, Any]]:
    """What does not hold for the case of a seed; the first of it is shrunk and written."""
    case, found = drawn(seed, family, chip), []
    random = np.random.default_rng(seed + 1)
    for mode in case.modes:
        trial = Trial(case.model, case.data, case.batch, *mode)
        for name, check in CHECKS.items():
            if random.random() >= check.share:
                continue
            finding = answer(trial, name)
            if finding is None:
                continue
            where = {"seed": seed, "family": case.family, "mode": "-".join(map(str, mode)), "check": name}
            found.append(where | asdict(finding))
            if finding.kind != "refused" and sum("file" in each for each in found) == 0:
                small = smallest(Sample(case.model, case.data), mode, name, finding.kind)
                found[-1]["file"] = str(write(small, mode, name, finding, seed))
                found[-1]["nodes"] = " ".join(node.op_type for node in small.model.graph.node)
            if trial.level not in trial.kept:
                break
    return found


def _child(pipe: Connection, *case: Any) -> None:
    try:
        pipe.send(findings(*case))
    except Exception as error:
        pipe.send([{"seed": case[0], "kind": "generator", "text": repr(error), "trace": traceback.format_exc()}])


def main() -> int:
    """Run the corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=lambda text: int(text, 0), help="of the first case")
    parser.add_argument("--case", type=int, help="only the case of this seed")
    parser.add_argument("--family")
    parser.add_argument("--chip")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one case")
    parser.add_argument("--log", type=Path, help="findings as lines of JSON")
    options = parser.parse_args()
    first = int(time.time()) if options.seed is None else options.seed % 2**40
    cases = [options.case] if options.case is not None else range(first, first + 10**6)
    print(f"corpus: seed {cases[0]}", flush=True)
    return _run(iter(cases), options)


def _run(seeds: Any, options: argparse.Namespace) -> int:
    context = multiprocessing.get_context("fork")
    running: dict[Connection, tuple[Any, float, int]] = {}
    end, done, bad, seeds_left = time.monotonic() + options.seconds, 0, 0, True
    while True:
        while seeds_left and len(running) < options.jobs and time.monotonic() < end:
            seed = next(seeds, None)
            if seed is None:
                seeds_left = False
                break
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(theirs, seed, options.family, options.chip))
            process.start()
            theirs.close()
            running[ours] = (process, time.monotonic(), seed)
        if not running:
            break
        wait(list(running), timeout=1)
        for pipe, (process, started, seed) in list(running.items()):
            if pipe.poll():
                found = _received(pipe, seed)
            elif time.monotonic() - started > options.timeout:
                process.kill()
                found = [{"seed": seed, "kind": "timeout", "text": f"more than {options.timeout:.0f} s"}]
            else:
                continue
            process.join()
            del running[pipe]
            done += 1
            bad += _told(found, options.log)
    print(f"corpus: {done} cases, {bad} findings")
    return bool(bad)


def _received(pipe: Connection, seed: int) -> list[dict[str, Any]]:
    try:
        return pipe.recv()
    except EOFError:
        return [{"seed": seed, "kind": "died", "text": "the process ended without an answer"}]


def _told(found: list[dict[str, Any]], log: Path | None) -> int:
    """Print findings; gives how many of them are faults (a refusal is none)."""
    for each in found:
        print(
            f"{each['kind']}: {each.get('family', '')} {each.get('mode', '')} seed {each['seed']}: {each['text']}",
            *(each[key] for key in ("nodes", "file") if key in each),
            sep="\n  ",
            flush=True,
        )
        if log is not None:
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(each) + "\n")
    return sum(each["kind"] != "refused" for each in found)


if __name__ == "__main__":
    sys.exit(main())
