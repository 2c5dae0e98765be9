"""Where a varying size is in a tensor, and what fills the positions beyond those that were given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

from bmcompiler.ir import Value

LOW = -5000.0
"""A number by which networks hide a position: after a softmax nothing is left of it, in any float type."""


class Filling(Enum):
    """What is in filled positions, where it is no number that all of them have."""

    ANY = "finite numbers"
    NOT_NEGATIVE = "finite numbers from 0 on"
    POSITIVE = "finite numbers above 0"
    HIDDEN = "numbers at least -LOW below those of given positions, or -infinity"
    WILD = "anything, NaN and infinity among it: 0 times that is not 0"


Filled = Filling | float
Place = tuple[int, int]
"""(axis, inner): the position is `index // inner % size` of the index along that axis."""
Marks = Mapping[Place, Filled]
"""The varying size of a tensor at each of its places; {} where it has none.

What a fill says holds for elements whose other places are positions that were given.
"""


class MixesError(Exception):
    """Padding would change results; the text is why, `layer` names where."""

    def __init__(self, reason: str, layer: str) -> None:
        super().__init__(reason)
        self.layer = layer


def hides(fill: Filled) -> bool:
    """Whether a softmax makes 0 of what is filled in."""
    return fill is Filling.HIDDEN or (isinstance(fill, float) and fill <= LOW)


def is_finite(fill: Filled) -> bool:
    """Whether 0 times what is filled in is 0."""
    return math.isfinite(fill) if isinstance(fill, float) else fill not in (Filling.HIDDEN, Filling.WILD)


def worked_on(*fills: Filled) -> Filling:
    """What an op makes of filled positions that gives finite numbers for finite ones."""
    return Filling.ANY if all(map(is_finite, fills)) else Filling.WILD


def moved(marks: Marks, axes: Mapping[int, int]) -> dict[Place, Filled]:
    """Marks whose axes have other numbers; fills stay."""
    return {(axes[axis], inner): fill for (axis, inner), fill in marks.items()}


def reshaped(marks: Marks, value: Value, shape: tuple[int, ...], size: int) -> dict[Place, Filled] | None:
    """The marks of the same elements under another shape, in row-major order; None where a place is torn apart."""
    found: dict[Place, Filled] = {}
    for (axis, inner), fill in marks.items():
        stride = inner * math.prod(value.shape[axis + 1 :])
        for new in range(len(shape)):
            behind = math.prod(shape[new + 1 :])
            if stride % behind == 0 and (behind * shape[new]) % (stride * size) == 0:
                found[new, stride // behind] = fill
                break
        else:
            return None
    return found
