"""Does what a summary says hold on samples it has not seen? unseen.py [CHIP...] [--nets NAME...] [--all] [--count N]

Each network of the tasks is compiled with the default options and 64 calibration samples, of which the compiler holds
16 back to judge by. Then other samples, of photos, faces, words and digits that no calibration has (with --alike other
draws of those that it has), run in the simulator and by the float net. A line says, for decisions kept and for error
of outputs, what the summary said and what these samples say, and marks where decisions are more than 1.5 points below
what was said. The summary says of each output, too, what share of decisions other samples keep at least, and how far
outputs of others are from float at most, both with a confidence of 95 %; with --max-error PERCENT it promises that
these are within it, or warns. It fails where more than one bound of twenty of any kind is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from check_tasks import QUICK
from tasks import reference, table
from tasks.material import CALIBRATION, METRIC, Array
from tasks.measure import compile_for
from tasks.networks import NETWORKS, Network, Run

import bmcompiler
from bmcompiler.accuracy.statistics import OutputNumbers
from bmcompiler.evaluation.decisions import decisions
from bmcompiler.evaluation.measures import Count
from bmcompiler.ir import Module
from bmcompiler.runtime.session import Session
from bmcompiler.text import at_least, at_most

SEEN, FIRST, STORED = 64, 1000, 128
"""Calibration samples; the number of the first unseen one that is drawn; digits that are stored beside the score's."""
MAY_LOSE = 1.5
"""Points that decisions may be below what was said, without a mark."""
BOUNDS = 19 / 20
"""Share of promised bounds that have to hold."""


@dataclass(frozen=True)
class Found:
    """Decisions kept by output, and the error of the worst output, relative; what is said of that of other samples."""

    counts: dict[str, Count]
    error: float
    at_most: float | None = None

    @property
    def kept(self) -> Count:
        """Of all outputs."""
        return sum(self.counts.values(), Count())

    def __str__(self) -> str:
        return f"{self.kept.share * 100:6.1f} of {self.kept.of:6,} {self.error:8.2%}"


def unseen(net: Network, count: int, alike: bool) -> Iterable[Array]:
    """Samples of the metric's split, or of that of calibration, with numbers of their own; digits as stored."""
    first, split = FIRST, CALIBRATION if alike else METRIC
    if net.shape == (1, 1, 28, 28):
        first, count = (SEEN, min(count, STORED - SEEN)) if alike else (0, count)
    return (net.sample(net.name, split, first + k)[0] for k in range(count))


def said(result: Any) -> Found:
    """By the summary."""
    counts = {each.name: Count(each.kept, each.of) for each in result.accuracy.decisions}
    found = result.accuracy
    return Found(counts, max((each.error for each in found.outputs), default=0.0), found.at_most)


def measured(module: Module, exact: Run, result: Any, samples: Callable[[], Iterable[Array]]) -> Found:
    """By samples that nothing has seen, against what `exact` gives for the float network."""
    names, session = module.main.output_names, Session(result.model)
    wanted = [dict(zip(names, map(np.asarray, exact(x)))) for x in samples()]
    judge, outputs = decisions(module.main, wanted), {name: OutputNumbers() for name in names}
    counts: dict[str, Count] = {}
    for x, real in zip(samples(), wanted):
        found = dict(zip(names, map(np.asarray, session.run({session.inputs[0].name: x}).values())))
        for name, count in judge.count(found, real).items():
            counts[name] = counts.get(name, Count()) + count
        mine, theirs = judge.bounded(found), judge.bounded(real)
        for name in (each for each in names if real[each].dtype.kind == "f"):
            outputs[name].add(theirs[name], mine[name].reshape(theirs[name].shape))
    return Found(counts, max((each.error for each in outputs.values() if each.values), default=0.0))


def bounds_of_decisions(result: Any, here: Found) -> dict[str, bool]:
    """Whether the share that a summary says at least is kept, by output that it says one of."""
    counts = {each.name: here.counts.get(each.name, Count()) for each in result.accuracy.decisions}
    said_of = {each.name: each.least for each in result.accuracy.decisions if each.least is not None}
    return {name: counts[name].share >= least for name, least in said_of.items() if counts[name].of}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("chips", nargs="*", choices=[*table.CHIPS, []], metavar="CHIP", help="default: all")
    parser.add_argument("--nets", nargs="+", choices=NETWORKS, metavar="NAME", help=f"default: {' '.join(QUICK)}")
    parser.add_argument("--all", action="store_true", help="all twelve networks")
    parser.add_argument("--count", type=int, default=200, help="unseen samples, %(default)s")
    parser.add_argument("--alike", action="store_true", help="other draws of what calibration has")
    parser.add_argument("--max-error", type=float, help="the bound to promise, in percent; default: none")
    given = parser.parse_args()
    options = {} if given.max_error is None else {"max_error": given.max_error}
    least: list[bool] = []
    held: list[bool] = []
    errors: list[bool] = []
    print(f"{'network':16} {'chip':8} {'said: decisions, error':>25} {'unseen':>25}", flush=True)
    for name in NETWORKS if given.all else given.nets or QUICK:
        for chip in given.chips or table.CHIPS:
            result = compile_for(NETWORKS[name], chip, samples=SEEN, **options)
            samples = partial(unseen, NETWORKS[name], given.count, given.alike)
            module = bmcompiler.load_network(*NETWORKS[name].files, shapes=[NETWORKS[name].shape])
            summary, here = said(result), measured(module, reference.float32(NETWORKS[name]), result, samples)
            text = f"{name:16} {chip:8} {summary!s:>25} {here!s:>25}"
            less = (summary.kept.share - here.kept.share) * 100
            text += f"  {less:.1f} points fewer" if less > MAY_LOSE else ""
            kept = bounds_of_decisions(result, here)
            least += kept.values()
            promised = [each for each in result.accuracy.decisions if each.name in kept]
            text += f"  at least {', '.join(at_least(each.least) for each in promised)}" if promised else ""
            missed = [output for output, holds in kept.items() if not holds]
            text += f"  missed: {', '.join(missed)}" if missed else ""
            if summary.at_most is not None:
                errors.append(here.error <= summary.at_most)
                text += f"  error at most {at_most(summary.at_most)}{'' if errors[-1] else ': missed'}"
                if given.max_error is not None and summary.at_most * 100 <= given.max_error:
                    held.append(here.error * 100 <= given.max_error)
                    text += "  holds" if held[-1] else "  bound missed"
            print(text, flush=True)
    for what, bounds in ((f"errors, {given.max_error} %", held), ("errors", errors), ("decisions", least)):
        if bounds:
            print(f"{sum(bounds)} of {len(bounds)} bounds of {what} hold")
    print(f"{time.process_time():.0f} s of CPU")
    return int(any(bounds and np.mean(bounds) < BOUNDS for bounds in (held, errors, least)))


if __name__ == "__main__":
    sys.exit(main())
