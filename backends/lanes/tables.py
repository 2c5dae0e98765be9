"""The tables that recipes look things up in: those of the chip, which says where they lie, and those of programs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from bmcompiler.numeric.arrays import Floats

BYTE_VALUES = 256
"""Entries of a table that the low byte of a word is looked up in."""


class Table(Enum):
    """Tables of fp32; series are coefficients of x, x**2, ..."""

    INTEGERS = auto()
    """Of the signed byte i, the float i where e**i is neither 0 nor infinite, else 0; 256 entries."""
    POWERS_OF_E = auto()
    """e**i of the same bytes, 0 elsewhere."""
    LOGARITHMS = auto()
    """(e - 127) * ln 2 of the biased exponent e; 256 entries."""
    EXP_SERIES = auto()
    """Of e**x - 1."""
    LOG_SERIES = auto()
    """Of ln(1 + x)."""
    SINE_SERIES = auto()
    """Of sin x."""


@dataclass(frozen=True)
class OwnTable:
    """A table of fp32 that programs bring along, on chips with `LaneFacts.own_tables`.

    Attributes: data: bytes of all tables that are loaded together. first: where this one begins.
    """

    data: bytes
    first: int = 0

    def entries(self, count: int) -> Floats:
        """The first `count` of them."""
        return np.frombuffer(self.data, "<f4", count, self.first)


AnyTable = Table | OwnTable | int
"""Also the place that a build gave a table of the program."""
