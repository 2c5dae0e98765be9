"""Choosing the method that thresholds are by: the one whose integers do least to the outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.ir import Function
from bmcompiler.passes.calibrate import set_thresholds
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.choice.reference import Reference

_LEAST = 1e-6
"""Energies below this are the same: nothing is gained by less."""


def best_method(
    function: Function,
    candidates: Mapping[str, Sequence[float]],
    reference: Reference,
    lower: Callable[[], Building[Any]],
) -> str:
    """Give the function the thresholds of the best method; returns a sentence on what they were measured to do.

    A method is judged by the errors of all output groups, each of which counts in proportion: half the error of one is
    worth twice that of another.
    """
    steps = range(len(reference.steps))
    found: dict[str, float] = {}
    for method, thresholds in candidates.items():
        set_thresholds(function, thresholds)
        found[method] = judged(reference.output_errors(lower(), steps))
    best = min(found, key=found.__getitem__)
    set_thresholds(function, candidates[best])
    others = ", ".join(f"{value:.2%} with {method}" for method, value in found.items() if method != best)
    return f"thresholds by {best}: outputs are {found[best]:.2%} from float in the least exact modes, {others}"


def judged(energies: NDArray[np.float64]) -> float:
    """The geometric mean of relative errors."""
    return exp(float(np.log(np.maximum(energies, _LEAST)).mean()) / 2) if len(energies) else 0.0
