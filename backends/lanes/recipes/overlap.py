"""Boxes that go, as they overlap a better one: steps of the suppression of boxes.

Boxes are their lowest y, lowest x, highest y, highest x. `rank` falls by 1 from box to box, down to 1 or more.
"""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.lanes.recipes.recorder import ONE, Recorder, Register

ALL = 0xFFFF_FFFF
LOWEST = float(np.finfo(np.float32).min)
"""The score of what is out."""
_HEAD = 0xFFFF_F000
"""The bits of a float whose significand has 12 bits."""


def admitted(m: Recorder, scores: Register, least: float) -> Register:
    """Scores, of those that are not above `least` the lowest."""
    clean = m.add(scores, 0.0)
    return m.choose(clean, least, clean, LOWEST)


def best_score(m: Recorder, scores: Register) -> Register:
    """That of the best box of each class."""
    return m.highest(scores)


def larger(m: Recorder, a: Register, b: Register) -> Register:
    """Of two parts."""
    return m.max(a, b)


def total(m: Recorder, a: Register, b: Register) -> Register:
    """Of two parts."""
    return m.add(a, b)


def best_rank(m: Recorder, scores: Register, best: Register, rank: Register) -> Register:
    """The rank of the first box with the best score, 0 where there is none."""
    return m.highest(m.and_(m.same_bits(scores, best, ALL), rank))


def raised(m: Recorder, rank: Register, by: int) -> Register:
    """A rank among all boxes, of one among those of a part; 0 stays 0."""
    return m.choose(rank, 0.5, m.add(rank, by), 0.0)


def lowered(m: Recorder, rank: Register, by: int) -> Register:
    """The inverse of `raised`; that of no box of the part for the boxes of others."""
    return m.sub(rank, by)


def corner_of(m: Recorder, rank: Register, chosen: Register, corner: Register) -> Register:
    """A corner of the box of a rank: a sum of which all but one are 0."""
    return m.total(m.and_(m.same_bits(rank, chosen, ALL), corner))


def number_of(m: Recorder, best: Register, chosen: Register, count: int) -> Register:
    """The number of the box of a rank; -1 where all are out."""
    return m.sub(m.mul(m.greater(best, LOWEST), m.sub(count + 1, chosen)), 1.0)


def area_of(m: Recorder, *corners: Register) -> Register:
    """Height times width of boxes."""
    top, left, bottom, right = corners
    return m.mul(m.sub(bottom, top), m.sub(right, left))


def goes(m: Recorder, rank: Register, chosen: Register, *corners: Register, overlap: float) -> Register:
    """1 for the chosen box and those whose intersection over union with it is above `overlap`, else 0.

    `corners`: four of each box, four of the chosen one, and its area.
    """
    boxes, best, area = corners[:4], corners[4:8], corners[8]
    high, wide = (m.max(m.sub(m.min(boxes[i + 2], best[i + 2]), m.max(boxes[i], best[i])), 0.0) for i in range(2))
    common = m.mul(high, wide)
    union = m.sub(m.add(area_of(m, *boxes), area), common)
    return m.or_(quotient_above(m, common, union, overlap), m.same_bits(rank, chosen, ONE))


def quotient_above(m: Recorder, a: Register, b: Register, limit: float) -> Register:
    """1 where a / b, rounded to the nearest fp32 (of two the even one), is above `limit`, else 0; 0 without a > 0.

    No quotient is computed, as that of the chip is some units in the last place off: a - b * limit is compared with b
    times half of the distance from `limit` to the next float. Both factors are cut in halves, whose products are
    exact; and so are the differences, from the largest on, wherever they could have the wrong sign.
    """
    whole = np.float32(limit)
    head = (whole.view(np.uint32) & np.uint32(_HEAD)).view(np.float32)
    half = float((np.nextafter(whole, np.float32(np.inf)) - whole) / np.float32(2))
    upper = m.and_(b, _HEAD)
    lower = m.sub(b, upper)
    left = a
    for part in (float(head), float(whole - head)):
        left = m.sub(left, m.mul(upper, part))
    for part in (float(head), float(whole - head)):
        left = m.sub(left, m.mul(lower, part))
    least = m.mul(b, half)
    above = m.greater(left, least) if whole.view(np.uint32) % 2 == 0 else m.xor(m.greater(least, left), ONE)
    return m.and_(above, m.greater(a, 0.0))


def kept(m: Recorder, number: Register) -> Register:
    """A number of the chosen box, for the result."""
    return m.copy(number)


def out(m: Recorder, gone: Register, scores: Register) -> Register:
    """Scores, of boxes that go the lowest."""
    return m.choose(gone, 0.5, LOWEST, scores)
