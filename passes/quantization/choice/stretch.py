"""What is left where estimates mend nothing: a stretch of the net in float, found by measuring alone."""

from __future__ import annotations

from collections.abc import Callable

from bmcompiler.passes.quantization.choice.solve import FLOAT, Problem
from bmcompiler.passes.quantization.choice.trials import Chosen

Mends = Callable[[Chosen], bool]


def float_stretch(problem: Problem, chosen: Chosen, mends: Mends) -> Chosen | None:
    """An assignment with as short a stretch of units in float as halving finds; None where even all mend nothing.

    Errors of single units tell nothing where they add up to what a function behind them cannot take: the logarithm of
    a sum of powers of e, each of which is near enough by itself. chosen: of the units outside. mends: whether an
    assignment leaves the outputs whole, which is asked about twice the logarithm of the number of units.
    """
    units = list(problem.options)
    floats = {u: next((o for o in each if o.name == FLOAT), chosen[u]) for u, each in problem.options.items()}

    def between(first: int, end: int) -> Chosen:
        return {unit: (floats if first <= k < end else chosen)[unit] for k, unit in enumerate(units)}

    if not mends(between(0, len(units))):
        return None
    end = _least(0, len(units), lambda k: mends(between(0, k)))
    behind = _least(0, end, lambda k: mends(between(end - k, end)))
    return between(end - behind, end)


def _least(without: int, enough: int, does: Callable[[int], bool]) -> int:
    """A number that does though the one before does not; `without` does not, `enough` does."""
    while enough - without > 1:
        middle = (without + enough) // 2
        if does(middle):
            enough = middle
        else:
            without = middle
    return enough
