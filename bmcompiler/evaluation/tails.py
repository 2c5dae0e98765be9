"""What values of other samples are beyond the largest that some samples show.

Integers end somewhere. Of a few dozen samples the largest value is mostly not the largest of two hundred others: what
lies beyond is cut off there, and one such value may make most of the error of an output of a few numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np

from bmcompiler.numeric.arrays import Array

_FEWEST = 16
"""Steps of samples; the largest values of fewer tell nothing of a tail."""
_PART = 4
"""One of so many steps, those with the largest peaks, shows the tail."""
_RARE = 1000
"""One of so many steps may reach beyond an end: further out would cost more of all others than it spares."""
_WIDEST, _TRIED = 4.0, 97
"""How many times the largest seen an end may be, and how many ends up to there are compared."""


@dataclass(frozen=True)
class Tail:
    """The largest values of steps of samples: what exceeds `start` falls by e every `decay`.

    Excesses over a high threshold are about exponential (Pickands 1975, "Statistical inference using extreme order
    statistics", with the shape 0). size: values of a step. largest: seen. energy: mean over steps of the squares of
    what exceeds `start`. decay: mean excess of the peaks of `peaks` steps.
    """

    size: int
    largest: float
    start: float
    energy: float
    decay: float
    peaks: int

    def beyond(self, end: float, errors: float = 0.0) -> float:
        """Energy of what an end from `start` on cuts off of a step of others, on average.

        errors: by how many standard errors the tail is longer than it seems.
        """
        decay = self.decay * (1 + errors / sqrt(self.peaks))
        return self.energy * exp(min(0.0, (self.start - end) / decay))

    def end(self, levels: int) -> float:
        """Where integers should end, at the largest value at least.

        There what so many levels round and what they cut off is least; or it is where few others reach.
        """
        ends = self.largest * np.geomspace(1.0, _WIDEST, _TRIED)
        lost = [self.size * (end / levels) ** 2 / 12 + self.beyond(end) for end in ends.tolist()]
        rare = self.start + self.decay * log(_RARE / _PART)
        return max(self.largest, min(rare, float(ends[int(np.argmin(lost))])))


def tail_of(steps: Sequence[Array]) -> Tail | None:
    """The tail of the values above 0 of steps of samples; None where too few steps tell of it, or peaks are alike."""
    if len(steps) < _FEWEST or not all(step.size for step in steps):
        return None
    peaks = np.sort([max(0.0, float(step.max())) for step in steps])[::-1]
    count = len(steps) // _PART
    start, largest = float(peaks[count]), float(peaks[0])
    excess = float((peaks[:count] - start).mean())
    if not np.isfinite(largest) or start <= 0 or excess <= 0:
        return None
    over = (np.maximum(step.astype(np.float64) - start, 0) for step in steps)
    energy = sum(float(np.square(each).sum()) for each in over) / len(steps)
    return Tail(steps[0].size, largest, start, energy, excess, count) if np.isfinite(energy) else None
