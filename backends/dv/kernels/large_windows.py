"""Windows of poolings beyond what a run takes, as poolings of poolings (dv.md 7)."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from bmcompiler.backends.dv.chip import CHIP

_LARGEST = CHIP.max_kernel_size


class WindowStep(NamedTuple):
    """Elements of a window along one axis, which lie side by side, and how many zeros follow the last of the map."""

    window: int
    zeros: int


@cache
def steps_of(size: int, exact: bool = False) -> tuple[WindowStep, ...] | None:
    """Windows of at most 7 elements, one after the other, that reduce `size` elements to one; the fewest steps.

    Args:
        exact: without zeros, so that longer maps fall into windows of `size`. None where a prime factor is too large.
    """
    if size <= _LARGEST:
        return (WindowStep(size, 0),)
    found: list[tuple[WindowStep, ...]] = []
    for window in range(_LARGEST, 1, -1):
        rest = steps_of(-(-size // window), exact)
        if rest is not None and not (exact and size % window):
            found.append((WindowStep(window, -size % window), *rest))
    return min(found, key=lambda chain: (len(chain), sum(step.zeros for step in chain)), default=None)


_MOST = 12  # poolings in a row


class WindowChain(NamedTuple):
    """One max pooling along one axis: its elements and the padding before and after the map."""

    size: int
    before: int
    after: int


def max_steps(size: int, before: int, after: int, count: int) -> list[WindowChain] | None:
    """`count` windows of at most 3 elements, each with stride 1 but the last, that reach as far as one of `size`.

    None where so many windows of at least one element reach too far, or not far enough. A window never lies in padding
    as a whole, so that what padding cuts off is seen by its neighbour.
    """
    reach, windows = size - 1, []
    if not 0 <= reach <= 2 * count:
        return None
    for left in range(count, 0, -1):
        part = -(-reach // left)
        pads = min(before, part), min(after, part)
        windows.append(WindowChain(part + 1, *pads))
        reach, before, after = reach - part, before - pads[0], after - pads[1]
    return windows if not before and not after else None


def max_counts(down: int, across: int) -> int | None:
    """How many poolings in a row make a window of that size; None where the device has no such windows."""
    count = -(-(max(down, across) - 1) // 2)
    fits = across - 1 >= count  # a window has 2 columns at least (dv.md 1.7), and may have one row
    return count if fits and 1 <= count <= _MOST else None
