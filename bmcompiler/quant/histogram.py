"""Histogram of |x| that grows with the data, and the ways to choose a threshold from it.

A threshold is the real magnitude that maps to 128 (bm1880.md 11.2). All methods look at magnitudes only.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bmcompiler.numeric.arrays import Array, Doubles, Floats, Ints

LEVELS = 128
"""Magnitudes that int8 can tell apart."""
_CANDIDATES = 512
_CHUNK = 1 << 16
# A KL divergence between sparse histograms measures luck: a bin must hold this many values on average to count.
_VALUES_PER_BIN = 4
# Where a tensor holds a few constants many times over (the background of an image), plain divergence would cut off the
# image itself: evening out a spike over a level costs more than losing the tail. How much of the tail may go was chosen
# by measurement: against 0.05 %, 0.1 % costs PP-OCR cls two of 100 lines, and 0.01 % costs MTCNN P-Net 1.6 points (mean
# of five calibration sets).
_KEPT_BY_KL = 0.9995


class Histogram:
    """Counts of |x| in `bins` equal bins over 0..limit, a power of two that doubles when the data outgrow it.

    Doubling merges neighbouring bins, so the counts are those of one histogram over all data at the final width, in
    whatever order the data came. Exact when `bins` is a power of two; otherwise a value within float32 rounding of a
    bin edge may count in the neighbouring bin. Zeros count in bin 0 and separately (`zeros`): they are always exact.
    """

    def __init__(self, bins: int = 2048) -> None:
        self.bins = bins
        self.counts: Ints = np.zeros(bins, np.int64)
        self.limit = 0.0
        self.largest = 0.0
        self.zeros = 0

    @property
    def width(self) -> float:
        """Width of a bin in the unit of the data."""
        return self.limit / self.bins

    @property
    def total(self) -> int:
        """How many values have been counted."""
        return int(self.counts.sum())

    def add(self, x: Array) -> None:
        """Count the values of an array of any shape. Raises ValueError when one is not finite."""
        with np.errstate(over="ignore"):
            flat = np.asarray(x, dtype=np.float32).ravel()
        for start in range(0, flat.size, _CHUNK):
            self._add_chunk(np.abs(flat[start : start + _CHUNK]))

    def _add_chunk(self, magnitudes: Floats) -> None:
        largest = float(magnitudes.max())
        if not math.isfinite(largest):
            raise ValueError("a value is not finite")
        self.zeros += magnitudes.size - int(np.count_nonzero(magnitudes > 0))
        if largest == 0.0:
            self.counts[0] += magnitudes.size
            return
        self._reach(largest)
        magnitudes *= np.float32(self.bins / self.limit)
        self.counts += np.bincount(magnitudes.astype(np.intp), minlength=self.bins + 1)[: self.bins]

    def _reach(self, largest: float) -> None:
        """Note a magnitude, and grow the limit to the power of two above it."""
        self.largest = max(self.largest, largest)
        self._grow(math.ldexp(1.0, max(math.frexp(largest)[1], -100)))

    def _grow(self, limit: float) -> None:
        """Make the limit at least this power of two."""
        if self.limit == 0.0:
            self.limit = limit
        while self.limit < limit:
            merged = self.counts.copy() if self.bins % 2 == 0 else np.append(self.counts, 0)
            merged = merged.reshape(-1, 2).sum(axis=1)
            self.counts = np.concatenate([merged, np.zeros(self.bins - merged.size, np.int64)])
            self.limit *= 2

    def merge(self, other: Histogram) -> None:
        """Count what a histogram of as many bins has counted, as if all values had been added here.

        `other` may grow its limit, which changes nothing of what it says.
        """
        if other.limit > 0.0:
            self._grow(other.limit)
            other._grow(self.limit)
        self.largest = max(self.largest, other.largest)
        self.counts += other.counts
        self.zeros += other.zeros

    def used(self) -> Ints:
        """Counts up to the bin of the largest value."""
        if self.limit == 0.0:
            return self.counts[:1]
        return self.counts[: min(self.bins, int(self.largest / self.width) + 1)]


def threshold(histogram: Histogram, method: str, percentile: float = 99.99) -> float:
    """The magnitude that should map to 128, by one of `options.METHODS`; 0 when all values were 0.

    `percentile`, 0..100: the share of all values that `method="percentile"` must represent without saturation.
    """
    choose: dict[str, Callable[[], float]] = {
        "max": lambda: histogram.largest,
        "percentile": lambda: _percentile(histogram, percentile),
        "kl": lambda: _kl(histogram),
        "mse": lambda: _mse(histogram),
    }
    return min(choose[method](), histogram.largest)


def _percentile(histogram: Histogram, percentile: float) -> float:
    """Upper edge of the bin in which the running count reaches the percentile."""
    if percentile >= 100 or histogram.limit == 0.0:
        return histogram.largest
    running = np.cumsum(histogram.used())
    first = int(np.searchsorted(running, running[-1] * (percentile / 100)))
    return (first + 1) * histogram.width


def _without_zeros(histogram: Histogram) -> Ints:
    counts: Ints = histogram.used().copy()
    counts[0] -= histogram.zeros
    return counts


def _cuts(count: int) -> Ints:
    """Candidate numbers of bins kept, ending with all of them."""
    return np.unique(np.linspace(LEVELS, count, min(_CANDIDATES, count - LEVELS + 1)).round().astype(np.int64))


def _kl(histogram: Histogram) -> float:
    """The cut point whose 128-level histogram diverges least from the data clipped there.

    For a cut after m bins: P is the histogram with everything beyond added to bin m-1, Q spreads each of 128 groups of
    P's bins evenly over P's non-empty bins in the group, without the outliers. Zeros are left out, and no cut saturates
    more than 0.05 % of the other values. Group sums come from running sums, so all cuts are scored at once.
    """
    counts = _without_zeros(histogram)
    total = int(counts.sum())
    width = histogram.width
    while counts.size >= 2 * LEVELS and total < _VALUES_PER_BIN * counts.size:
        counts = np.append(counts, 0) if counts.size % 2 else counts
        counts = counts.reshape(-1, 2).sum(axis=1)
        width *= 2
    if counts.size <= LEVELS:
        return histogram.largest
    least = int(np.searchsorted(np.cumsum(counts), _KEPT_BY_KL * total)) + 1
    cuts = _cuts(counts.size)
    cuts = cuts[cuts >= min(least, counts.size)]
    return int(cuts[int(np.argmin(_divergences(counts, cuts)))]) * width


def _divergences(counts: Ints, cuts: Ints) -> Doubles:
    """KL(P || Q) per cut, in nats."""
    total = float(counts.sum())
    running = np.concatenate([[0], np.cumsum(counts)]).astype(np.float64)
    filled = np.concatenate([[0], np.cumsum(counts > 0)])
    entropy = np.concatenate([[0.0], np.cumsum(_xlogx(counts))])
    outliers = total - running[cuts]
    last = counts[cuts - 1].astype(np.float64)

    edges = (np.arange(LEVELS + 1) * cuts[:, None]) // LEVELS
    sums = np.diff(running[edges], axis=1)
    bins = np.diff(filled[edges], axis=1).astype(np.float64)
    bins[:, -1] += (last == 0) & (outliers > 0)
    # A level without values of its own that must stand for outliers gets a trace of a count: the divergence is large.
    spread = np.log(np.maximum(sums, 1e-4) / np.maximum(bins, 1.0))
    weights = sums.copy()
    weights[:, -1] += outliers
    plogp = entropy[cuts] - _xlogx(last) + _xlogx(last + outliers)
    plogq = (weights * spread).sum(axis=1)
    kept = np.maximum(running[cuts], 1.0)
    return np.asarray((plogp - plogq) / total - np.log(total / kept))


def _xlogx(x: Array) -> Doubles:
    return np.asarray(x * np.log(np.maximum(x, 1)))


def _mse(histogram: Histogram) -> float:
    """The cut point with the least mean squared error of quantizing (rounding within, saturation beyond)."""
    counts = _without_zeros(histogram)
    if counts.size <= LEVELS:
        return histogram.largest
    cuts = _cuts(counts.size)[::-4]
    centres = np.arange(counts.size) + 0.5
    steps = cuts[:, None] / LEVELS
    error = centres / steps  # in place from here on: a tensor has 2 MB of it, which is new to the process each time
    error += 0.5
    np.minimum(np.floor(error, out=error), LEVELS - 1, out=error)
    error *= steps
    error -= centres
    error *= error
    return int(cuts[int(np.argmin(error @ counts))]) * histogram.width
