"""The constant tables that recipes look things up in; where they lie and what they hold is the chip's."""

from __future__ import annotations

from enum import Enum, auto


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
