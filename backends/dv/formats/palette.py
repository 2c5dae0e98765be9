"""Weights as bytes that point into a table of 256 fp16 numbers (dv.md 1.3, 3.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ir.keys import PALETTE
from bmcompiler.numeric.arrays import Array, Bits16, Bytes, Halves
from bmcompiler.quant.palette import SIZE, distinct

_PROBE = 4096  # weights that show most layers to have too many different values


class Coded(NamedTuple):
    """The form that the packers take: bytes in the shape of the weights, and the patterns of 256 fp16 numbers."""

    indices: Bytes
    table: Bits16


def coded(weights: Halves) -> Coded | None:
    """The weights as bytes and a table, without a difference; None where they have too many different values.

    Entry 0 is 0, because unused places of a packed block hold byte 0 (dv.md 1.8). A zero with a sign loses it, which no
    exact sum can tell.
    """
    found = _table(weights.reshape(-1)[:_PROBE])
    found = None if found is None else _table(weights)
    if found is None:
        return None
    table = np.zeros(SIZE, np.uint16)
    table[1 : found.size + 1] = found
    lookup = np.zeros(1 << 16, np.uint8)
    lookup[found] = np.arange(1, found.size + 1)
    return Coded(lookup[_patterns(weights)], table)


def _table(weights: Halves) -> Bits16 | None:
    """The patterns of the different values besides 0, in ascending order of values."""
    values, _ = distinct(weights)
    others = values[values != 0]
    return None if others.size >= SIZE else _patterns(others)


def _patterns(values: Array) -> Bits16:
    return np.ascontiguousarray(values).view(np.uint16)


def is_palette(value: Value) -> bool:
    """Whether a constant was made to be stored as bytes."""
    return value.op is not None and PALETTE in value.op.attributes
