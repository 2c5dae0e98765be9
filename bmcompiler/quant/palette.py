"""A short table of fp16 numbers for the weights of a layer: k-means on a line, the same for equal weights.

The weights of a layer take few of the 65,536 fp16 values, so all work is done on the sorted different values and how
often each occurs. A round of k-means is then two searches and a difference of running sums.
"""

from __future__ import annotations

import numpy as np

from bmcompiler.numeric.arrays import Doubles, Halves, Ints

SIZE = 256
"""Entries of a table that bytes point into."""
_PATTERNS = 1 << 16
_ROUNDS = 100


def distinct(weights: Halves) -> tuple[Halves, Ints]:
    """The different values of finite weights in ascending order, and how often each occurs; -0 counts as 0."""
    counts = np.bincount(weights.view(np.uint16).reshape(-1), minlength=_PATTERNS)
    counts[0] += counts[0x8000]
    counts[0x8000] = 0
    patterns = np.flatnonzero(counts)
    values = patterns.astype(np.uint16).view(np.float16)
    order = np.argsort(values)
    return values[order], counts[patterns[order]]


def palette(weights: Halves, size: int = SIZE) -> Halves:
    """At most `size` numbers in ascending order, 0 among them, that lie near all weights in the sense of least squares.

    Weights of less than `size` different values besides 0 are their own table. Otherwise: Lloyd's rounds from centres
    that are as dense as the cube root of the weights' density, which is best for many centres (Panter and Dite, 1951).
    A centre that no weight is near to helps the one with the largest error.

    Args:
        weights: finite numbers, any shape.
    """
    values, counts = distinct(weights)
    others = values != 0
    if np.count_nonzero(others) < size:
        return np.unique(np.append(values[others], np.float16(0)))
    wide = values.astype(np.float64)
    centres = _first(wide, counts, size)
    running = [_running(counts * wide**power) for power in range(3)]
    for _ in range(_ROUNDS):
        moved = _moved(wide, running, centres)
        if (moved == centres).all():
            break
        centres = moved
    return np.unique(centres.astype(np.float16) + np.float16(0))


def nearest(weights: Halves, table: Halves) -> Halves:
    """For each weight the nearest entry of an ascending table, the lower one of two that are as near."""
    values, _ = distinct(weights)
    wide = table.astype(np.float64)
    chosen = table[np.searchsorted((wide[1:] + wide[:-1]) / 2, values.astype(np.float64))]
    lookup = np.zeros(_PATTERNS, np.float16)
    lookup[values.view(np.uint16)] = chosen
    lookup[0x8000] = lookup[0]
    return lookup[weights.view(np.uint16)]


def _first(values: Doubles, counts: Ints, size: int) -> Doubles:
    """Starting centres in ascending order: as dense as the cube root of counts per distance between values."""
    gaps = np.diff(values)
    share = _running(np.cbrt((counts[1:] + counts[:-1]) * gaps * gaps))
    return np.interp((np.arange(size) + 0.5) / size * share[-1], share, values)


def _moved(values: Doubles, running: list[Doubles], centres: Doubles) -> Doubles:
    """Each centre at the mean of the weights that are nearest to it, and the one next to 0 at 0.

    Args:
        running: counts, sums and squares of all weights up to a value.
    """
    cuts = np.concatenate([[0], np.searchsorted(values, (centres[1:] + centres[:-1]) / 2), [values.size]])
    count, total, square = (np.diff(one[cuts]) for one in running)
    mean = total / np.maximum(count, 1)
    moved = np.where(count > 0, mean, centres)
    free = np.flatnonzero(count == 0)
    worst = np.argsort(mean * total - square, kind="stable")[: free.size]
    moved[free] = (mean[worst] + values[cuts[worst + 1] - 1]) / 2
    moved[np.abs(moved).argmin()] = 0
    return np.sort(moved)


def _running(values: Doubles) -> Doubles:
    return np.concatenate([[0.0], np.cumsum(values)])
