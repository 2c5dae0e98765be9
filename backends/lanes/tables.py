"""The tables that recipes look things up in: those of the chip, which says where they lie, and those of programs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from bmcompiler.numeric.arrays import Floats

BYTE_VALUES = 256
"""Entries of a table that the low byte of a word is looked up in."""


class Table(Enum):
    """Tables of fp32; series are coefficients of x, x**2, ... but where they say that they begin with a constant."""

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
    SERIES_OF_TWO = auto()
    """`POWER_OF_TWO`, with its constant; this and what follows are on chips with `LaneFacts.constant_terms`."""
    NORMAL_SERIES = auto()
    """`NORMAL`, with its constant."""


POWER_OF_TWO = (
    *(1.0, 0.6931471824645996, 0.24022647738456726, 0.055503323674201965, 0.00961843691766262),
    *(0.0013398873852565885, 0.00015353361959569156),
)
"""Coefficients of 2**x for |x| up to 1/2, fitted to make the largest relative error small: 2e-9 before roundings."""
NORMAL_LIMIT = 5.375
"""Beyond, the normal distribution is 0 or 1."""
NORMAL = (
    *(0.13153576850891113, -0.004542818758636713, 0.00023334247816819698, -1.3039559235039633e-05),
    *(7.374670758508728e-07, -4.079143423041387e-08, 2.1462094323965175e-09, -1.0450911663850704e-10),
    *(4.931206918495912e-12, -2.4107980694208775e-13, 9.332402336808751e-15, -1.8647443568693223e-16),
    *(8.410956102535172e-18, -8.310761679490579e-19, 2.3801988032481258e-20),
)
"""Coefficients of (normal distribution of x - 1/2) / x in x**2 - NORMAL_LIMIT**2 / 2, for |x| up to the limit, where it
is 1/2 / x exactly. Fitted to make the largest error of the distribution small: in fp32 it is off by 1.2e-7 and never
below 0.
"""


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
