"""Which elements of rows are the largest: the least of them is found bit by bit, from how many are below a number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from bmcompiler.backends.lanes.recipes.recorder import Recorder, Register

_HIGHEST = float(np.finfo(np.float32).max)
_BITS = 31
"""Of the magnitude of a float."""


def leading(m: Recorder, x: Register, index: Register, count: int, k: int) -> Register:
    """1 for the k largest of `count` elements, of equals the first ones, else 0; `index` holds 0 to `count` - 1.

    Elements are compared as the chip's sum with 0 makes them; what is not finite is the next finite number.
    """
    clean = m.min(m.max(m.add(x, 0.0), -_HIGHEST), _HIGHEST)
    least = _least(m, clean, count, k)
    above, below = m.greater(clean, least), m.greater(least, clean)
    place = m.add(m.mul(m.max(above, below), count), index)
    last = _last(m, place, m.sub(k - 0.5, m.total(above)), count)
    return m.max(above, m.greater(m.add(last, 0.5), place))


def _least(m: Recorder, x: Register, count: int, k: int) -> Register:
    """The least of the k largest.

    Where it is below 0, so is -x of the `count` - k + 1 largest: of these the least is above 0. The bits of floats
    above 0 are in the order of the floats, so the largest is built that has no more than so many elements below it.
    """
    below, beyond = m.total(m.greater(0.0, x)), count - k + 0.5
    sign = m.choose(below, beyond, -1.0, 1.0)
    most = m.choose(below, beyond, k - 0.5, beyond)
    magnitude, bits = m.mul(x, sign), reversed(range(_BITS))
    return m.mul(_largest(m, magnitude, most, (partial(m.or_, b=1 << bit) for bit in bits)), sign)


def _last(m: Recorder, place: Register, most: Register, count: int) -> Register:
    """The largest number that no more than `most` places are below."""
    bits = reversed(range((count - 1).bit_length()))
    return _largest(m, place, most, (partial(m.add, b=1 << bit) for bit in bits))


def _largest(m: Recorder, x: Register, most: Register, raised: Iterable[Callable[[Register], Register]]) -> Register:
    """0, raised by each of these, the largest first, unless more than `most` elements are below that."""
    found = m.mul(most, 0.0)
    for raise_ in raised:
        trial = raise_(found)
        found = m.choose(m.total(m.greater(trial, x)), most, found, trial)
    return found
