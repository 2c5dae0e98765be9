"""Does what a summary says hold on samples it has not seen? unseen.py [CHIP...] [--nets NAME...] [--all] [--count N]

Each network of the tasks is compiled with the default options and 64 calibration samples, of which the compiler holds
16 back to judge by. Then other samples, of photos, faces, words and digits that no calibration has (with --alike other
draws of those that it has), run in the simulator and by the float net. A line says, for decisions kept and for error
of outputs, what the summary said and what these samples say. With --max-error PERCENT the summary promises a bound,
and these samples say whether it holds. It fails where decisions are more than 1.5 points below what was said, and where
more than one bound of twenty is missed.
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
from tasks.networks import NETWORKS, Network

import bmcompiler
from bmcompiler.accuracy.statistics import OutputNumbers
from bmcompiler.evaluation.decisions import decisions
from bmcompiler.evaluation.measures import Count
from bmcompiler.runtime.session import Session

SEEN, FIRST, STORED = 64, 1000, 128
"""Calibration samples; the number of the first unseen one that is drawn; digits that are stored beside the score's."""
MAY_LOSE = 1.5
"""Points that decisions may be below what was said."""
BOUNDS = 19 / 20
"""Share of promised bounds that have to hold."""


@dataclass(frozen=True)
class Found:
    """Shares of decisions kept, 0 to 1 (1 without any), of how many; the error of the worst output, relative."""

    kept: float
    of: int
    error: float

    def __str__(self) -> str:
        return f"{self.kept * 100:6.1f} of {self.of:6,} {self.error:8.2%}"


def unseen(net: Network, count: int, alike: bool) -> Iterable[Array]:
    """Samples of the metric's split, or of that of calibration, with numbers of their own; digits as stored."""
    first, split = FIRST, CALIBRATION if alike else METRIC
    if net.shape == (1, 1, 28, 28):
        first, count = (SEEN, min(count, STORED - SEEN)) if alike else (0, count)
    return (net.sample(net.name, split, first + k)[0] for k in range(count))


def said(result: Any) -> Found:
    """By the summary."""
    count = sum((Count(each.kept, each.of) for each in result.accuracy.decisions), Count())
    return Found(count.share, count.of, max((each.error for each in result.accuracy.outputs), default=0.0))


def measured(net: Network, result: Any, samples: Callable[[], Iterable[Array]]) -> Found:
    """By samples that nothing has seen."""
    module = bmcompiler.load_network(*net.files, shapes=[net.shape])
    names, exact, session = module.main.output_names, reference.float32(net), Session(result.model)
    wanted = [dict(zip(names, map(np.asarray, exact(x)))) for x in samples()]
    judge, kept, outputs = decisions(module.main, wanted), Count(), {name: OutputNumbers() for name in names}
    for x, real in zip(samples(), wanted):
        found = dict(zip(names, map(np.asarray, session.run({session.inputs[0].name: x}).values())))
        kept = sum(judge.count(found, real).values(), kept)
        mine, theirs = judge.bounded(found), judge.bounded(real)
        for name in (each for each in names if real[each].dtype.kind == "f"):
            outputs[name].add(theirs[name], mine[name].reshape(theirs[name].shape))
    return Found(kept.share, kept.of, max((each.error for each in outputs.values() if each.values), default=0.0))


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
    lost, held = [], []
    print(f"{'network':16} {'chip':8} {'said: decisions, error':>25} {'unseen':>25}", flush=True)
    for name in NETWORKS if given.all else given.nets or QUICK:
        for chip in given.chips or table.CHIPS:
            result = compile_for(NETWORKS[name], chip, samples=SEEN, **options)
            samples = partial(unseen, NETWORKS[name], given.count, given.alike)
            summary, here = said(result), measured(NETWORKS[name], result, samples)
            text = f"{name:16} {chip:8} {summary!s:>25} {here!s:>25}"
            if (summary.kept - here.kept) * 100 > MAY_LOSE:
                lost.append(f"{name} on {chip} keeps {(summary.kept - here.kept) * 100:.1f} points less than was said")
                text += "  fewer than said"
            if given.max_error is not None and summary.error * 100 <= given.max_error:
                held.append(here.error * 100 <= given.max_error)
                text += "  holds" if held[-1] else "  bound missed"
            print(text, flush=True)
    if held:
        print(f"{sum(held)} of {len(held)} bounds of {given.max_error:g} % hold")
    print(f"{time.process_time():.0f} s of CPU")
    for sentence in lost:
        print(sentence, file=sys.stderr)
    return 1 if lost or (held and np.mean(held) < BOUNDS) else 0


if __name__ == "__main__":
    sys.exit(main())
