"""Where a varying size is in a tensor, and what fills the positions beyond those that were given."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from bmcompiler.ir import Value

LOW = -5000.0
"""A number by which networks hide a position: after a softmax nothing is left of it, in any float type."""


class Filling(Enum):
    """What is in filled positions, where it is no number that all of them have."""

    ANY = "finite numbers"
    HIDDEN = "numbers at least -LOW below those of given positions"


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


def moved(marks: Marks, axes: Mapping[int, int]) -> dict[Place, Filled]:
    """Marks whose axes have other numbers; fills stay."""
    return {(axes[axis], inner): fill for (axis, inner), fill in marks.items()}


def reshaped(marks: Marks, value: Value, shape: tuple[int, ...], size: int) -> dict[Place, Filled] | None:
    """The marks of the same elements under another shape, in row-major order; None where a place is torn apart."""
    found: dict[Place, Filled] = {}
    for (axis, inner), fill in marks.items():
        stride = inner * _product(value.shape[axis + 1 :])
        for new in range(len(shape)):
            behind = _product(shape[new + 1 :])
            if stride % behind == 0 and (behind * shape[new]) % (stride * size) == 0:
                found[new, stride // behind] = fill
                break
        else:
            return None
    return found


def _product(sizes: tuple[int, ...]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result
