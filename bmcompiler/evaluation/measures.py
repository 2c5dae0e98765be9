"""What of a float output's decisions another form of the output keeps, counted on arrays.

Each takes what was found, what float says, and what is known of the output (`About`); arrays have one shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmcompiler.numeric.arrays import Array

_OVERLAP = 0.5
"""Intersection over union from which on two boxes are the same."""
_CORNERS = 4


@dataclass(frozen=True)
class Count:
    """So many of all decisions were kept; of cosines, their sum."""

    kept: float = 0.0
    of: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.kept + other.kept, self.of + other.of)

    @property
    def share(self) -> float:
        """0 to 1; 1 where nothing is decided."""
        return self.kept / self.of if self.of else 1.0


@dataclass(frozen=True)
class About:
    """What float samples say of an output.

    axis: of classes, or of the columns of rows. threshold: of scores. usual: the class that most positions have, which
    say nothing where both find it; -1 for none. shape: of the output before ops that only move it, None as it is.
    least: what scores below say as well.
    """

    axis: int = -1
    threshold: float = 0.5
    usual: int = -1
    shape: tuple[int, ...] | None = None
    least: float = -np.inf


def classes_kept(found: Array, wanted: Array, about: About) -> Count:
    """Positions with the same largest class."""
    mine, theirs = (_shaped(array, about).argmax(about.axis) for array in (found, wanted))
    counted = (mine != about.usual) | (theirs != about.usual)
    return Count(float((mine == theirs)[counted].sum()), int(counted.sum()))


def letters_kept(found: Array, wanted: Array, about: About) -> Count:
    """Letters of strings as CTC reads them, equal neighbours being one and `usual` none, that both have in one order.

    Arrays are (strings, positions, classes), or (positions, 1, classes). Of how many: the letters of the longer string.
    """
    count = Count()
    for pair in zip(*(np.swapaxes(array, 0, 1) if array.shape[1] == 1 else array for array in (found, wanted))):
        mine, theirs = (_read_letters(scores.argmax(-1), about.usual) for scores in pair)
        common = np.zeros(len(theirs) + 1, int)  # with each beginning of theirs, the longest that both have
        for letter in mine:
            common[1:] = np.maximum.accumulate(np.maximum(common[1:], common[:-1] + (theirs == letter)))
        count += Count(float(common[-1]), max(len(mine), len(theirs)))
    return count


def numbers_kept(found: Array, wanted: Array, about: About) -> Count:
    """Positions with the same number, of outputs that are numbers of classes."""
    counted = (found != about.usual) | (wanted != about.usual)
    return Count(float((found == wanted)[counted].sum()), int(counted.sum()))


def sides_kept(found: Array, wanted: Array, about: About) -> Count:
    """Scores on the same side of the threshold."""
    same = (found > about.threshold) == (wanted > about.threshold)
    return Count(float(same.sum()), same.size)


def found_kept(found: Array, wanted: Array, about: About) -> Count:
    """Scores over the threshold in either form, that are over it in both."""
    here, there = found > about.threshold, wanted > about.threshold
    return Count(float((here & there).sum()), int((here | there).sum()))


def peaks_kept(found: Array, wanted: Array, about: About) -> Count:
    """Peaks of either map, above the threshold and not below their 8 neighbours, where the other is above it nearby."""
    count = Count()
    for one, other in ((wanted, found), (found, wanted)):
        peaks = (one > about.threshold) & (one >= _around(one))
        count += Count(float((_around(other) > about.threshold)[peaks].sum()), int(peaks.sum()))
    return count


def boxes_kept(found: Array, wanted: Array, about: About) -> Count:
    """Rows over the threshold in either form: over it in both, of one class, and of boxes that overlap.

    A row is centre, size and scores; where a last axis holds them, the first score says whether there is anything.
    Sizes that are not positive are no boxes yet, and only scores count.
    """
    rows = [np.moveaxis(array, about.axis, -1).reshape(-1, array.shape[about.axis]) for array in (found, wanted)]
    last = about.axis in (-1, wanted.ndim - 1)
    (some, here, kind), (others, there, expected) = (_read(each, about, first=last) for each in rows)
    same = here & there & (kind == expected) & (_overlaps(*(each[:, :_CORNERS] for each in (some, others))) > _OVERLAP)
    return Count(float(same.sum()), int((here | there).sum()))


def detections_kept(found: Array, wanted: Array, about: About) -> Count:
    """Rows image, class, score, corners: those above the threshold that have one like them in the other form."""
    mine, theirs = (array.reshape(-1, array.shape[-1]) for array in (found, wanted))
    count = Count()
    for one, other in ((theirs, mine), (mine, theirs)):
        rows = one[one[:, 2] > about.threshold]
        others = other[other[:, 2] > about.threshold / 2]
        alike = (rows[:, None, :2] == others[None, :, :2]).all(-1)
        near = alike & (_intersection(rows[:, None, 3:7], others[None, :, 3:7]) > _OVERLAP)
        count += Count(float(near.any(1).sum()), len(rows))
    return count


def cosines(found: Array, wanted: Array, about: About) -> Count:
    """Cosine of the angle between the two forms of each row."""
    a, b = (np.moveaxis(x, about.axis, -1).reshape(-1, x.shape[about.axis]).astype(np.float64) for x in (found, wanted))
    sizes = np.sqrt(np.square(a).sum(1) * np.square(b).sum(1))
    return Count(float(((a * b).sum(1) / np.maximum(sizes, 1e-30)).sum()), len(a))


def _shaped(array: Array, about: About) -> Array:
    return array if about.shape is None else array.reshape(-1, *about.shape[1:])


def _read_letters(classes: Array, blank: int) -> Array:
    changes = np.concatenate([[True], classes[1:] != classes[:-1]])
    read: Array = classes[changes & (classes != blank)]
    return read


def _around(maps: Array) -> Array:
    """The largest of each 3x3 window of the last two axes."""
    edges = [(0, 0)] * (maps.ndim - 2) + [(1, 1), (1, 1)]
    wide = np.pad(maps, edges, constant_values=-np.inf)
    rows = np.maximum(np.maximum(wide[..., :-2, :], wide[..., 1:-1, :]), wide[..., 2:, :])
    around: Array = np.maximum(np.maximum(rows[..., :-2], rows[..., 1:-1]), rows[..., 2:])
    return around


def _read(rows: Array, about: About, *, first: bool) -> tuple[Array, Array, Array]:
    """Rows, which of them hold a box, and its class."""
    scores = rows[:, _CORNERS:]
    if not first or scores.shape[1] == 1:
        return rows, scores.max(1) > about.threshold, scores.argmax(1)
    kinds = scores[:, 1:]
    return rows, scores[:, 0] * kinds.max(1) > about.threshold, kinds.argmax(1)


def _overlaps(a: Array, b: Array) -> Array:
    """Of boxes as centre and size."""
    sized = (np.minimum(a[:, 2:], b[:, 2:]) > 0).all(1)
    corners = [np.concatenate([x[:, :2] - x[:, 2:] / 2, x[:, :2] + x[:, 2:] / 2], 1) for x in (a, b)]
    return np.where(sized, _intersection(*corners), 1.0)


def _intersection(a: Array, b: Array) -> Array:
    """Intersection over union of boxes as two corners, on the last axis."""
    low, high = np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:])
    common = np.clip(high - low, 0, None).prod(-1)
    areas = [np.clip(x[..., 2:] - x[..., :2], 0, None).prod(-1) for x in (a, b)]
    shared: Array = common / np.maximum(areas[0] + areas[1] - common, 1e-30)
    return shared
