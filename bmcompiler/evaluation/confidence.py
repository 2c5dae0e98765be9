"""What the decisions of some samples say of those of others."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from bmcompiler.evaluation.measures import Count

SURE = 0.95
"""Confidence of what is said."""
_QUANTILE = 1.6449
"""Standard deviations below the mean that a normal variable stays above with that confidence."""


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
