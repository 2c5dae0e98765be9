"""What the decisions and errors of some samples say of those of others."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from bmcompiler.evaluation.measures import Count
from bmcompiler.numeric.arrays import Doubles

SURE = 0.95
"""Confidence of what is said."""
_QUANTILE = 1.6449
"""Standard deviations below the mean that a normal variable stays above with that confidence."""
_SKEWED = 1.96
"""The same for what varies as errors do, which a few samples make most of: with 1.645 fewer bounds would hold."""
_FEW = 3
"""Degrees of freedom that are assumed at the least: what two samples say of their spread is next to nothing."""
_TINY = 1e-30


def share_at_least(counts: Sequence[Count]) -> float | None:
    """The share of decisions of other such samples that is kept at least, 0 to 1, with the confidence SURE.

    It is the lower end of the interval of Wilson 1927 ("Probable Inference, the Law of Succession, and Statistical
    Inference"). Decisions of one picture are lost together: where steps differ more than independent decisions would,
    there are as many fewer of them (the design effect of a ratio; Rao and Scott 1992).

    Args:
        counts: of each step of samples.

    Returns None without decisions, and where sums are no counts (cosines).
    """
    total = sum(counts, Count())
    whole = all(float(each.kept).is_integer() and 0 <= each.kept <= each.of for each in counts)
    if not total.of or not whole:
        return None
    share, chance = total.share, _QUANTILE**2
    decided = total.of / _effect(counts, share)
    middle = share + chance / (2 * decided)
    spread = _QUANTILE * sqrt(share * (1 - share) / decided + chance / (4 * decided**2))
    return max(0.0, (middle - spread) / (1 + chance / decided))


def _effect(counts: Sequence[Count], share: float) -> float:
    """How many times the variance of independent decisions the share of such steps has; at least 1."""
    steps, of = len(counts), sum(each.of for each in counts)
    if steps < 2 or not 0 < share < 1:
        return 1.0
    between = sum((each.kept - share * each.of) ** 2 for each in counts) * steps / (steps - 1)
    return max(1.0, between / (of * share * (1 - share)))


def share_not_seen(steps: int) -> float:
    """The share of samples, at most, that are of a kind of which `steps` of them had none, with the confidence SURE."""
    return float(1 - (1 - SURE) ** (1 / steps))


def larger_at_most(noise: Doubles, signal: Doubles) -> Doubles:
    """How many times the relative energy of errors that of other such samples is at most, with the confidence SURE.

    It is the upper end of the interval of a ratio's logarithm (its variance by differences from the ratio, Cochran
    1977, section 6.4; Student's quantile), and a sample that is as bad as the worst counts as if it had come once more:
    a few samples make most of such energies, and some are still to come. What one of a hundred does is not seen so.

    Args:
        noise, signal: energies, (steps, parts), of errors and of what is right.

    Returns (parts,), 1 of what cannot be told: of a single step, without errors, or where they are no numbers.
    """
    steps = len(noise)
    totals = noise.sum(0)
    known = np.isfinite(totals) & (totals > _TINY) & (signal.sum(0) > _TINY)
    if steps < 2 or not known.any():
        return np.ones(noise.shape[1])
    errors, of = noise[:, known], signal[:, known]
    ratio = errors.sum(0) / of.sum(0)
    worst = np.argmax(errors - ratio * of, axis=0)[None]
    errors, of = (np.concatenate([each, np.take_along_axis(each, worst, 0)]) for each in (errors, of))
    more = errors.sum(0) / of.sum(0)
    varies = np.sqrt(np.square(errors - more * of).sum(0) * (steps + 1) / steps) / errors.sum(0)
    found = np.ones(noise.shape[1])
    found[known] = more / ratio * np.exp(_student(steps - 1) * varies)
    return found


def _student(freedom: int) -> float:
    """Student's quantile, by the first terms of its expansion around the normal one (Abramowitz and Stegun, 26.7.5)."""
    z, n = _SKEWED, max(freedom, _FEW)
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
