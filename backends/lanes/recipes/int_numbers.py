"""Numbers for a short end of the high and asymmetric modes: rounding by one addition, with the same bits.

The modes round halves away from zero, which takes four commands. Adding 1.5 * 2**23 takes one and rounds halves to the
even number. As t has 16 bits, few sums come close to a half: factor and vector are moved by less than what lies between
them and the halves, and every t whose result does not saturate is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bmcompiler.numeric.arrays import Floats, IntArray
from bmcompiler.numeric.quant_modes import from_real

MIDDLE, MIDDLE_BITS = 12582912.0, 0x4B40_0000  # 2**23 + 2**22
_STRETCHES = (0.0, 2.0**-22, 2.0**-20, 2.0**-18, 2.0**-16)
_MOVES = tuple(sign * 2.0**-k for k in range(18, 8, -1) for sign in (1, -1))
_LARGEST = (1 << 15) - 512
"""Numbers up to this one stay in 16 bits with any zero point."""


@dataclass(frozen=True)
class Ending:
    """Whole numbers fl(fl(t * factor) + vector) + zero point, before they saturate, and where.

    Attributes:
        factor: r. vector: what is added, per channel; None for nothing.
        low, high: limits of the sum. point: what is added to the whole number.
    """

    factor: float
    vector: Floats | None
    low: int
    high: int
    point: int


@dataclass(frozen=True)
class Numbers:
    """Factor and vector with which adding `MIDDLE` gives the bits of an `Ending`.

    `clipped`: whether sums must be limited before they are rounded, as they may exceed 16 bits.
    """

    factor: float
    vector: Floats | None
    clipped: bool


def find_numbers(end: Ending, bounds: tuple[IntArray, IntArray]) -> Numbers | None:
    """Numbers that give the bits of `end` for all t, None where none of those tried do.

    Args:
        bounds: the lowest and highest t, one for each element of the vector (one element without a vector).
    """
    vector = np.zeros(1, np.float32) if end.vector is None else end.vector
    t = _tried(end, vector, bounds)
    wanted = from_real(_limited(end, _sums(t, end.factor, vector)), "i16")
    for stretch in _STRETCHES:
        factor = np.float32(end.factor * (1 + stretch))
        found = np.array(vector * np.float32(1 + stretch))
        bad = _differ(end, t, factor, found, wanted)
        for move in _MOVES if end.vector is not None else ():
            if not len(bad):
                break
            moved = found[bad] + np.float32(move)
            still = _differ(end, t[bad], factor, moved, wanted[bad])
            good = np.setdiff1d(np.arange(len(bad)), still)
            found[bad[good]] = moved[good]
            bad = bad[still]
        if not len(bad):
            largest = max(float(np.abs(each * factor + found).max()) for each in bounds)
            return Numbers(float(factor), None if end.vector is None else found, largest > _LARGEST)
    return None


def _tried(end: Ending, vector: Floats, bounds: tuple[IntArray, IntArray]) -> Floats:
    """(channels, numbers): every t whose sum is not beyond the limits, and some that are."""
    count = int(np.ceil((end.high - end.low + 4) / end.factor)) + 2
    first = np.floor((end.low - 2 - vector.astype(np.float64)) / end.factor)
    t = np.clip(first[:, None] + np.arange(count), bounds[0][:, None], bounds[1][:, None])
    return t.astype(np.float32)


def _sums(t: Floats, factor: Any, vector: Floats) -> Floats:
    found: Floats = t * np.float32(factor) + vector[:, None]
    return found


def _limited(end: Ending, sums: Floats) -> Floats:
    return np.clip(sums, np.float32(end.low), np.float32(end.high))


def _differ(end: Ending, t: Floats, factor: Any, vector: Floats, wanted: IntArray) -> IntArray:
    """Channels with a t for which adding `MIDDLE` does not give what is wanted."""
    words = _limited(end, _sums(t, factor, vector)) + np.float32(MIDDLE + end.point)
    whole = words.view(np.int32) - np.int32(MIDDLE_BITS + end.point)
    return np.flatnonzero((whole != wanted).any(axis=1))
