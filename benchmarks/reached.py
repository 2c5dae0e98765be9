"""Does the choice of modes reach what it aims at, and do bounds hold? reached.py [CHIP...] [--drawn N] [--first SEED]

    OPENBLAS_NUM_THREADS=1 python benchmarks/reached.py bm1684

Twenty networks: quick ones of the tasks, and ones for pictures as the corpus draws them, of the seeds 0 to 12. Each is
compiled with the default options, and in other ways: all layers in one mode, other bounds. All are judged by the
samples that every compilation holds back alike. Where one of them reaches an aim of the default within the cycles that
this allows, the default has to:

* decisions: 99 % of each output, or all but one, in fewer cycles than the float program (BM1880: any); what the
  default loses more by chance (the root of what both lose) is not missed;
* fine: outputs within 2 % of float, in 1.25 times the fewest cycles seen (BM1684: and 0.74 of float's);
* coarse: within 10 %, in 1.5 times these.

Cycles are those of the chip: a way that leaves more layers to the host than the default is no way within them.

The summary of the default says what share of decisions others keep at least, and how far outputs of others are from
float at most; with `--max-error 5` it promises so much where it does not warn. 200 samples that nothing has seen
confirm all three or not. It fails where an aim is missed, or more than one bound of twenty of a kind.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from check_tasks import QUICK
from tasks import reference, table
from tasks.material import Array
from tasks.measure import compile_for
from tasks.networks import NETWORKS, Run
from unseen import BOUNDS, SEEN, Found, bounds_of_decisions, measured, said, unseen

import bmcompiler
from bmcompiler.analysis.profile import find_analyzer
from bmcompiler.evaluation.decisions import DECISIONS
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module
from bmcompiler.passes.quantization.choice.aim import MARGIN
from bmcompiler.passes.quantization.choice.ways import COARSE, DEAR, ERROR, WORTH
from bmcompiler.target import find_target

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from corpus import branches, classifiers, detectors, mobile, pictures
from corpus.blocks import Net, drawn_net
from corpus.graph import valid

FAMILIES = [
    family for module in (classifiers, branches, mobile, detectors, pictures) for family in module.FAMILIES
]  # fmt: skip
SIZES = ((32, 32), (28, 28), (24, 32))
STEP = 5
"""Families between those of neighbouring seeds, so that few nets are of many kinds."""
SAMPLES = 2 * SEEN
"""Of drawn networks."""
PROMISE = 5.0
SHARE = {"bm1684": 0.74}
"""Of the float program, by chip, what accuracy may cost at most."""
FLOAT = {"bm1684": "f32", "bm1684x": "f16"}
MODES = {"bm1684": ("low", "high", "asymmetric", "channel"), "bm1684x": ("channel",), "bm1880": ("int8", "double")}
OTHERS: tuple[dict[str, float], ...] = (
    {"max_error": 1.0},
    {"max_error": 4.0},
    {"max_cycles": 1.0},
    {"max_cycles": WORTH},
)


@dataclass(frozen=True)
class Subject:
    """compile: (chip, options) -> result; exact: the float network; others: samples that no compilation has seen."""

    name: str
    compile: Callable[..., Any]
    module: Module
    exact: Run
    others: Callable[[], Iterable[Array]]


def task(name: str, count: int) -> Subject:
    """A network with a task."""
    net = NETWORKS[name]
    module = bmcompiler.load_network(*net.files, shapes=[net.shape])
    return Subject(
        name, partial(compile_for, net, samples=SEEN), module, reference.float32(net), lambda: unseen(net, count, True)
    )


def drawn(seed: int, count: int, folder: Path) -> Subject:
    """A network of the corpus' families that reads one picture: of the next family, where one reads two."""
    random, first = np.random.default_rng(seed), seed * STEP % len(FAMILIES)
    for family in (*FAMILIES[first:], *FAMILIES[:first]):
        net = drawn_net(random, SIZES, (1,))
        net.g.outputs = net.given(family(net))
        if len(net.g.inputs) == 1:
            break
    (given,) = net.g.inputs.values()
    path = folder / f"{family.__name__}{seed}.onnx"
    onnx.save(valid(net.g.model()), path)
    data = np.concatenate([*pictures_like(net, given, seed, SAMPLES)])
    module = bmcompiler.load_network(path)

    def compiled(chip: str, precision: str = "int8", **options: Any) -> Any:
        samples = {"data": data} if precision == "int8" else {}
        return bmcompiler.compile(path, target=chip, quantize=precision, log=lambda text: None, **samples, **options)

    name = module.main.input_names[0]
    exact: Run = lambda x: list(run_module(module, {name: x}).values())  # noqa: E731
    return Subject(path.stem, compiled, module, exact, lambda: pictures_like(net, given, seed + 1000, count))


def pictures_like(net: Net, given: Array, seed: int, count: int) -> Iterator[Array]:
    """Smooth pictures of the range and layout of a net's input."""
    random, last = np.random.default_rng(seed), net.exporter == "tf"
    shape = given.transpose(0, 3, 1, 2).shape if last else given.shape
    low, high = float(given.min()), float(given.max())
    for _ in range(count):
        value = random.standard_normal(shape).cumsum(2).cumsum(3)
        value -= value.min((1, 2, 3), keepdims=True)
        value = value / value.max((1, 2, 3), keepdims=True) * (high - low) + low
        value = value + random.standard_normal(shape) * 0.02 * (high - low)
        yield (value.transpose(0, 2, 3, 1) if last else value).astype(np.float32)


@dataclass(frozen=True)
class Tried:
    """A program of the network: what its held-back samples say, its cycles, and how many layers the host has."""

    way: str
    found: Found
    cycles: int
    on_host: int

    @property
    def decides(self) -> bool:
        """Whether 99 % of the decisions of each output are kept, or all but one."""
        return all(each.of - each.kept <= max((1 - DECISIONS) * each.of, 1) for each in self.found.counts.values())

    def as_many(self, other: Tried) -> bool:
        """Whether no more decisions are lost than by another way, but for what may be chance."""
        mine, theirs = (each.found.kept.of - each.found.kept.kept for each in (self, other))
        return self.decides or mine - theirs <= sqrt(mine + theirs)

    def within(self, error: float) -> bool:
        """Whether all outputs are so near to float."""
        return self.found.error <= error


def tried(subject: Subject, chip: str) -> tuple[Tried, Any, list[Tried]]:
    """The default, its result, and other ways."""

    def one(way: str, **options: Any) -> tuple[Tried, Any]:
        result = subject.compile(chip, check="never", **options)
        on_host = sum(row.where == "cpu" for row in result.rows)
        return Tried(way, said(result), int(find_analyzer(chip)(result.model, 0).timing().cycles), on_host), result

    text = find_target(chip).pipeline("int8", 2).replace("quantize,", "quantize{scheme=shift},")
    modes = {mode: text.replace("quantize{", f"quantize{{mode={mode},") for mode in MODES[chip]}
    others = [one(f"all {mode}", pipeline=pipeline)[0] for mode, pipeline in modes.items()]
    others += [one(", ".join(f"{k} {v:g}" for k, v in each.items()), **each)[0] for each in OTHERS]
    default, result = one("default")
    return default, result, others


def missed(subject: Subject, chip: str, default: Tried, others: list[Tried]) -> list[str]:
    """Aims that another way reaches within the cycles allowed, and the default does not."""
    whole = float("inf")
    if chip in FLOAT:
        plain = subject.compile(chip, FLOAT[chip], check="never")
        whole = float(find_analyzer(chip)(plain.model, 0).timing().cycles)
    others = [each for each in others if each.on_host <= default.on_host]
    least = min(each.cycles for each in (default, *others))
    share = SHARE.get(chip, 1.0) * whole
    fine, coarse = min(WORTH * least, share), min(DEAR * least, share)
    aims: dict[str, tuple[Callable[[Tried], bool], Callable[[Tried], bool], float]] = {
        "decisions": (lambda way: way.decides, default.as_many, whole),
        "fine": (lambda way: way.within(ERROR), lambda _: default.within(ERROR * MARGIN), fine),
        "coarse": (lambda way: way.within(COARSE), lambda _: default.within(COARSE * MARGIN), coarse),
    }
    found = []
    for name, (reaches, so_does_it, most) in aims.items():
        way = next((each for each in others if reaches(each) and each.cycles < most and not so_does_it(each)), None)
        if way is not None:
            found.append(f"{name}: by {way.way} ({way.found}, {way.cycles:,} cycles)")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("chips", nargs="*", choices=[*table.CHIPS, []], metavar="CHIP", help="default: all")
    parser.add_argument("--drawn", type=int, default=20 - len(QUICK), help="networks of the corpus, %(default)s")
    parser.add_argument("--first", type=int, default=0, help="seed of the first of them, %(default)s")
    parser.add_argument("--tasks", nargs="*", default=list(QUICK), choices=[*NETWORKS, []], metavar="NAME")
    parser.add_argument("--count", type=int, default=200, help="unseen samples, %(default)s")
    given = parser.parse_args()
    aims: list[bool] = []
    errors: list[bool] = []
    decided: list[bool] = []
    promised: list[bool] = []
    print(f"{'network':20} {'chip':8} {'decisions, error':>25} {'cycles':>11}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        subjects = [partial(task, name, given.count) for name in given.tasks]
        seeds = range(given.first, given.first + given.drawn)
        subjects += [partial(drawn, seed, given.count, Path(folder)) for seed in seeds]
        for make in subjects:
            subject = make()
            for chip in given.chips or table.CHIPS:
                default, result, others = tried(subject, chip)
                lost = missed(subject, chip, default, others)
                aims.append(not lost)
                here = measured(subject.module, subject.exact, result, subject.others)
                held = bounds_of_decisions(result, here)
                decided += held.values()
                text = "".join(f"  missed {each}" for each in lost)
                text += "".join(f"  fewer decisions of {name}" for name, holds in held.items() if not holds)
                most = default.found.at_most
                if most is not None:
                    errors.append(here.error <= most)
                    text += "" if errors[-1] else f"  error at most {most:.2%} said, {here.error:.2%}"
                bound = subject.compile(chip, max_error=PROMISE, check="never")
                most = said(bound).at_most
                if most is not None and most * 100 <= PROMISE:
                    here = measured(subject.module, subject.exact, bound, subject.others)
                    promised.append(here.error * 100 <= PROMISE)
                    text += "" if promised[-1] else f"  {PROMISE:g} % promised, {said(bound)} said, {here.error:.2%}"
                print(f"{subject.name:20} {chip:8} {default.found!s:>25} {default.cycles:11,}{text}", flush=True)
    kinds = (("aims", aims), (f"promises of {PROMISE:g} %", promised), ("bounds of errors", errors),
             ("bounds of decisions", decided))  # fmt: skip
    for what, all_of in kinds:
        print(f"{sum(all_of)} of {len(all_of)} {what}")
    print(f"{time.process_time():.0f} s of CPU")
    return int(not all(aims) or any(each and np.mean(each) < BOUNDS for each in (promised, errors, decided)))


if __name__ == "__main__":
    sys.exit(main())
