"""Average pooling of windows above 7 x 7 as poolings of poolings (dv.md 7)."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from bmcompiler.backends.dv.chip import CHIP

_LARGEST = CHIP.max_kernel_size


class Step(NamedTuple):
    """Elements of a window along one axis, which lie side by side, and how many zeros follow the last of the map."""

    window: int
    zeros: int


@cache
def steps_of(size: int, exact: bool = False) -> tuple[Step, ...] | None:
    """Windows of at most 7 elements, one after the other, that reduce `size` elements to one; the fewest steps.

    Args:
        exact: without zeros, so that longer maps fall into windows of `size`. None where a prime factor is too large.
    """
    if size <= _LARGEST:
        return (Step(size, 0),)
    found: list[tuple[Step, ...]] = []
    for window in range(_LARGEST, 1, -1):
        rest = steps_of(-(-size // window), exact)
        if rest is not None and not (exact and size % window):
            found.append((Step(window, -size % window), *rest))
    return min(found, key=lambda chain: (len(chain), sum(step.zeros for step in chain)), default=None)
