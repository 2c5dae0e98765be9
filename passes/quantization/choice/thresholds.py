"""Choosing the method that thresholds are by: the one whose integers do least to the outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp, sqrt
from typing import Any

import numpy as np

from bmcompiler.evaluation.tails import tail_of
from bmcompiler.ir import Function, Value
from bmcompiler.numeric.arrays import Doubles
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.precision.calibrate import float_values, set_thresholds
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.choice.measured import Measured
from bmcompiler.passes.quantization.choice.reference import Reference
from bmcompiler.quant.histogram import LEVELS

Candidates = Mapping[str, Sequence[float]]
"""By method of calibration, thresholds of all float values (`float_values`)."""
_GAIN = 0.9
"""Part of the errors of outputs to which a change has to bring them to be worth it."""
_LEAST = 1e-6
"""Energies below this are the same: nothing is gained by less."""
_ALIKE = 1.02
"""How many times the error of the best the next one's is at most where it does not matter which is taken."""
_FEWER = 0.7
"""Part of the lost decisions of the method with the least errors that one with larger errors may lose in its place."""
_LOOK = 1
"""Samples on which all methods are measured of a large net."""
_PRODUCTS = 16 << 30
"""Products that the measurements of a net that is not large have together, at most."""


def best_method(
    function: Function,
    candidates: Candidates,
    reference: Reference,
    lower: Callable[[], Building[Any]],
    enough: float,
) -> str:
    """Give the function the thresholds of the best method; returns a sentence on what they were measured to do.

    The last one, that of `Calibrate`, is it where it leaves no cluster a larger error than `enough`. Otherwise a
    method is judged by the errors of all clusters, each of which counts in proportion: half the error of one is
    worth twice that of another. Of large nets all are measured on `_LOOK` samples and the better half of them on
    twice as many others, too, unless they are alike: samples differ less there than in nets of few values. Where
    decisions are lost that should be kept, and clearly fewer by another of those measured so, it is that one: bounds
    that cut off what is large and rare come near to float on the whole, and lose what this decides.
    """
    steps = range(len(reference.steps))
    products = sum(op.products() for op in function.ops) * len(steps) * len(candidates)
    looked = _LOOK if products > _PRODUCTS else len(steps)
    look, rest = steps[:looked], steps[looked : 3 * looked]
    sums: dict[str, Doubles] = {}
    nets: dict[str, Building[Any]] = {}
    for method in [*candidates][::-1]:
        set_thresholds(function, candidates[method])
        nets[method] = lower()
        sums[method] = reference.output_errors(nets[method], look)
        if len(sums) == 1 and (sums[method] <= enough**2).all():
            break
    found = {method: judged(energies) for method, energies in sums.items()}
    left = sorted(found, key=found.__getitem__)[: max(1, len(found) // 2)] if rest else list(found)
    if rest and len(left) > 1 and found[left[1]] <= _ALIKE * found[left[0]]:
        left = left[:1]
    for method in left if len(left) > 1 else ():
        more = reference.output_errors(nets[method], rest)
        found[method] = judged((sums[method] * len(look) + more * len(rest)) / (len(look) + len(rest)))
    nearest = min(left, key=found.__getitem__)
    kept = {method: reference.measured(nets[method], [*look, *rest]) for method in left} if len(left) > 1 else {}
    best = _deciding(nearest, kept) if kept and not kept[nearest].keeps else nearest
    set_thresholds(function, candidates[best])
    others = "".join(f", {value:.2%} with {method}" for method, value in found.items() if method != best)
    why = ""
    if best != nearest:
        why = f"; it keeps {kept[best].decisions.share:.1%} of decisions, {nearest} {kept[nearest].decisions.share:.1%}"
    return f"thresholds by {best}: outputs are {found[best]:.2%} from float in the least exact modes{others}{why}"


def _deciding(nearest: str, kept: Mapping[str, Measured]) -> str:
    """The method that loses fewest decisions, where that is no chance; else the one with the least errors."""
    lost = {method: measured.decisions.of - measured.decisions.kept for method, measured in kept.items()}
    best = min(lost, key=lost.__getitem__)
    clear = lost[nearest] - lost[best] > sqrt(lost[nearest] + lost[best])
    return best if clear and lost[best] <= _FEWER * lost[nearest] else nearest


def of_scores(function: Function, candidates: Candidates, reference: Reference) -> tuple[Candidates, list[str]]:
    """Thresholds with those of raw scores as far from 0 as any score has to be told apart (`Decisions.least`), or is.

    Scores of sure noes, far below 0, would leave a step or two to those that decide. And sentences on it.
    """
    found, said = {method: list(thresholds) for method, thresholds in candidates.items()}, []
    places = {value: place for place, value in enumerate(float_values(function))}
    values = dict(zip(function.output_names, function.returned))
    for name, least in reference.judge.least.items():
        enough = max(-least, *(float(step[name].max()) for step in reference.wanted))
        shorter = [places[value] for value in _moved(values[name]) if found["max"][places[value]] > enough]
        for thresholds in found.values():
            for place in shorter:
                thresholds[place] = min(thresholds[place], enough)
        if shorter:
            said.append(f"output '{name}' decides at 0: its scores end at {-enough:.3g}, so that steps are finer")
    return found, said


def with_room(function: Function, candidates: Candidates, reference: Reference) -> tuple[Candidates, list[str]]:
    """Thresholds with those of outputs so far beyond the largest value seen as others are expected there (`Tail.end`).

    Of outputs that decide nothing, whose errors are all that is known of them: the largest of several scores stays
    that where it is cut off, and finer steps tell them apart. And sentences on it.
    """
    found, said = {method: list(thresholds) for method, thresholds in candidates.items()}, []
    places = {value: place for place, value in enumerate(float_values(function))}
    for name, value in zip(function.output_names, function.returned):
        moved = _moved(value)
        decides = name in reference.judge.outputs
        if decides or name not in reference.returned or not moved or _is_bounded(moved[-1]):
            continue
        tail = tail_of([np.abs(step[name]) for step in reference.wanted])
        end = 0.0 if tail is None else tail.end(LEVELS)
        if tail is None or end <= tail.largest:
            continue
        for thresholds in found.values():
            for place in (places[each] for each in moved):
                thresholds[place] = max(thresholds[place], end)
        said.append(f"output '{name}' may reach {end:.3g} on others, where samples reach {tail.largest:.3g}")
    return found, said


def _is_bounded(value: Value) -> bool:
    """Whether what makes it can give no larger values than samples show, about: a softmax, a sigmoid."""
    op = value.op
    return isinstance(op, TensorOp) and bool(np.isfinite(op.result_bounds()).all())


def _moved(value: Value) -> list[Value]:
    """A value that is read once, and what it was before ops that only move it."""
    found: list[Value] = []
    while len(value.uses) == 1:
        found.append(value)
        op = value.op
        if not isinstance(op, TensorOp) or not op.moves_only or len(op.operands) > 1:
            break
        value = op.operands[0]
    return found


def confirmed(now: Doubles, before: Doubles) -> bool:
    """Whether outputs came a tenth nearer to float, and no cluster of them went further away."""
    return judged(now) < _GAIN * judged(before) and bool((now <= before).all())


def judged(energies: Doubles) -> float:
    """The geometric mean of relative errors."""
    return exp(float(np.log(np.maximum(energies, _LEAST)).mean()) / 2) if len(energies) else 0.0
