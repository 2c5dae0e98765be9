"""Metrics: numbers of each sample, and a score made of their sums.

A metric of one's own is a function `(outputs, labels) -> {name: one number per sample}`, named as `module:function`.
`outputs` maps output names to arrays with the samples on axis 0, `labels` is the array of their labels, or None. An
attribute `score` of the function, `(sums) -> float`, makes the score; without it the score is the mean of the first
name.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from bmcompiler.errors import RuntimeUseError, UsageError
from bmcompiler.numeric.arrays import Array
from bmcompiler.spelling import spelled

Outputs = Mapping[str, Array]
Values = dict[str, list[float]]
"""Name -> a number per sample, in order."""


@dataclass(frozen=True)
class Metric:
    """A metric by name. `needs_labels`: it compares with labels; `needs_float`: with the float network's outputs."""

    name: str
    needs_labels: bool = False
    needs_float: bool = False

    def values(self, outputs: Outputs, labels: Array | None, reference: Outputs | None) -> Values:
        """Numbers per sample. Raises RuntimeUseError when the outputs are not what the metric takes."""
        if self.name == "cosine":
            assert reference is not None, "the command asked for it"
            return {f"cosine {name}": _cosines(array, reference[name]) for name, array in outputs.items()}
        if self.name in _TOP:
            assert labels is not None, "the command asked for labels"
            return {self.name: _among_best(_scores(outputs, self.name), labels, _TOP[self.name])}
        return _checked(self.name, _asked(self.name, outputs, labels), len(next(iter(outputs.values()))))

    def score(self, values: Mapping[str, Sequence[float]]) -> float:
        """One number for all samples; sums are exact, so that no order of samples changes it."""
        sums = {name: math.fsum(each) for name, each in values.items()}
        if self.name == DECIDED:
            kept, of = (sum(total for name, total in sums.items() if name.startswith(each)) for each in (KEPT, OF))
            return kept / of if of else 1.0
        if self.name == "cosine":
            return min(total / len(values[name]) for name, total in sums.items())
        own = None if self.name in _TOP else getattr(find_function(self.name), "score", None)
        if own is not None:
            return float(own(sums))
        name = next(iter(sums))
        return sums[name] / len(values[name])


DECIDED = "decisions"
"""The metric of what outputs decide (`evaluation.decisions`): the share that is as in float."""
KEPT, OF = "kept ", "of "
"""Before the names of outputs: the numbers per sample of that metric."""
_KNOWN = "top1, top5, cosine, decisions"
_TOP = {"top1": 1, "top5": 5}


def find_metric(name: str) -> Metric:
    """top1, top5, cosine, decisions, or `module:function`. Raises UsageError for anything else."""
    if name in _TOP:
        return Metric(name, needs_labels=True)
    if name in ("cosine", DECIDED):
        return Metric(name, needs_float=True)
    find_function(name)
    return Metric(name)


def find_function(name: str) -> Callable[..., Any]:
    """The function that `module:function` names; modules of the current folder are found, too."""
    module, _, function = name.partition(":")
    if not module or not function:
        raise UsageError(f"'{name}' is no metric", remedy=f"use {_KNOWN}, or module:function of your own")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Callable[..., Any] = getattr(import_module(module), function)
    except Exception as error:  # a module of the user's may raise anything
        raise UsageError(
            f"metric '{name}' cannot be loaded: {type(error).__name__}: {error}", remedy="check the names"
        ) from None
    return found


def _scores(outputs: Outputs, metric: str) -> Array:
    """The scores of classes, (samples, classes): the only output, or the last of several with one row per sample."""
    rows = [array.reshape(len(array), -1) for array in outputs.values()]
    if len(rows) > 1:
        names = ", ".join(outputs)
        raise RuntimeUseError(
            f"{metric} needs one output, and there are {names}", remedy=f"name one with {spelled('output')}"
        )
    return rows[0]


def _among_best(scores: Array, labels: Array, count: int) -> list[float]:
    """1 for samples whose label is among the `count` highest scores; of equal scores the first class wins."""
    wanted = labels.reshape(len(labels), -1)[:, 0].astype(np.int64)
    if wanted.min() < 0 or wanted.max() >= scores.shape[1]:
        reason = f"labels are {wanted.min()} to {wanted.max()}, and the model has {scores.shape[1]} classes"
        raise RuntimeUseError(reason, remedy="labels count classes from 0")
    best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return (best == wanted[:, None]).any(axis=1).astype(float).tolist()


def _cosines(found: Array, wanted: Array) -> list[float]:
    """Cosine of the angle between output and reference of each sample; 1 where both are 0, 0 where one is."""
    a, b = (x.reshape(len(x), -1).astype(np.float64) for x in (found, wanted))
    products, sizes = (a * b).sum(axis=1), np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    both_zero = ~a.any(axis=1) & ~b.any(axis=1)
    return np.where(both_zero, 1.0, products / np.where(sizes > 0, sizes, 1.0)).tolist()


def _asked(name: str, outputs: Outputs, labels: Array | None) -> Any:
    """What a user's function gives. Raises RuntimeUseError where it raises, with the first sample."""
    own = find_function(name)
    try:
        return own(outputs, labels)
    except Exception as error:  # whatever a function of the user's raises
        failed = next((n for n in range(len(next(iter(outputs.values())))) if _raises(own, outputs, labels, n)), None)
        where = "all samples of a piece" if failed is None else f"sample {failed} of a piece"
        raise RuntimeUseError(
            f"metric '{name}' raised {type(error).__name__} for {where}: {error}", remedy="correct the function"
        ) from error


def _raises(own: Callable[..., Any], outputs: Outputs, labels: Array | None, n: int) -> bool:
    try:
        own({key: array[n : n + 1] for key, array in outputs.items()}, None if labels is None else labels[n : n + 1])
    except Exception:  # that it does is the answer
        return True
    return False


def _checked(name: str, given: Any, samples: int) -> Values:
    """What a user's function gave, as lists. Raises RuntimeUseError for anything but numbers per sample."""
    if not isinstance(given, Mapping) or not given:
        raise RuntimeUseError(f"metric '{name}' must return {{name: numbers per sample}}, got {type(given).__name__}")
    values: Values = {}
    for key, numbers in given.items():
        array = np.asarray(numbers, np.float64)
        if array.shape != (samples,):
            reason = f"metric '{name}' gave {list(array.shape)} numbers as '{key}' for {samples} samples"
            raise RuntimeUseError(reason, remedy="return one number per sample")
        values[str(key)] = array.tolist()
    return values
