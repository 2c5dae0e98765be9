"""Numbers of samples from all over, in all phases of whatever repeats in them."""

from __future__ import annotations

from math import sqrt

import numpy as np

from bmcompiler.numeric.arrays import Ints

_GOLDEN = (sqrt(5) - 1) / 2


def spread(count: int, of: int) -> Ints:
    """So many of the numbers below `of`, rising: one of each of `count` parts that are as long, about.

    Samples often come in turns (classes, cameras), so that the same place of each part would meet one kind alone.
    Places are fractions of multiples of the golden ratio: they fill the parts evenly, along any period (Weyl 1916).
    """
    numbers = np.arange(count + 1, dtype=np.int64)
    starts = numbers * of // max(count, 1)
    sizes = np.diff(starts)
    return starts[:-1] + ((numbers[:-1] + 0.5) * _GOLDEN % 1 * sizes).astype(np.int64)
