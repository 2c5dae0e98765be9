"""Runs of consecutive elements of strided tensors, for chips whose memory is faster the longer they are."""

from __future__ import annotations

from typing import Any

Count = Any
"""A number of one command, or a column of those of many."""


def run_of(sizes: tuple[Count, ...], strides: tuple[Count, ...]) -> Count:
    """Elements of each run of consecutive ones of a tensor of (n, c, h, w) elements with strides in elements."""
    *outer, full = sizes
    run = _either(strides[3] == 1, full, 1)
    for count, stride in zip(reversed(outer), strides[2::-1]):
        joined = (run == full) & ((count == 1) | (stride == full))
        full = full * count
        run = _either(joined, full, run)
    return run


def _either(fact: Count, yes: Count, no: Count) -> Count:
    """`yes` where `fact` holds, else `no`."""
    return no + fact * (yes - no)
