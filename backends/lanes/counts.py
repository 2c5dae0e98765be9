"""Numbers of one command, or columns of those of many: what tables of cycles count with."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.numeric.arrays import Mask

Count = Any
"""A number of one command, or a column of those of many."""
Fact = bool | Mask


def up(value: Count, step: Count) -> Count:
    """value / step, rounded up."""
    return -(-value // step)


def either(fact: Count, yes: Count, no: Count) -> Count:
    """`yes` where `fact` holds, else `no`."""
    return no + fact * (yes - no)


def whole(cycles: float | NDArray[np.floating[Any]]) -> Count:
    """`cycles` rounded up."""
    return np.ceil(cycles).astype(np.int64) if isinstance(cycles, np.ndarray) else ceil(cycles)


def floored(cycles: float | NDArray[np.floating[Any]]) -> Count:
    """`cycles` rounded down."""
    return np.floor(cycles).astype(np.int64) if isinstance(cycles, np.ndarray) else floor(cycles)


def larger(one: Count, other: Count) -> Count:
    """The larger of both. Planners ask of one command at a time, for which numpy takes ten times as long."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.maximum(one, other)
    return max(one, other)


def smaller(one: Count, other: Count) -> Count:
    """The smaller of both."""
    return -larger(-one, -other)


def run_of(sizes: tuple[Count, ...], strides: tuple[Count, ...]) -> Count:
    """Elements of each run of consecutive ones of a tensor of (n, c, h, w) elements with strides in elements."""
    *outer, full = sizes
    run = either(strides[3] == 1, full, 1)
    for count, stride in zip(reversed(outer), strides[2::-1]):
        joined = (run == full) & ((count == 1) | (stride == full))
        full = full * count
        run = either(joined, full, run)
    return run
