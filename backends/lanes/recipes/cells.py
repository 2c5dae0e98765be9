"""Functions by a cubic polynomial for each of 256 cells of a range: a lookup for each coefficient, and no division."""

from __future__ import annotations

import math
import struct
from functools import cache

from bmcompiler.backends.lanes.recipes.recorder import Recorder, Register
from bmcompiler.backends.lanes.tables import BYTE_VALUES, OwnTable

_CELLS = 8
"""In an interval of length 1: 256 of them reach from -16 to 16."""
_NEAREST = 1.5 * 2.0**23 / _CELLS
"""Added to a number it gives the middle of its cell, whose number the low bits then hold."""
_LOWEST, _HIGHEST = -16.0, 15.9
"""Beyond, sigmoid is 0 or 1 but for the last bit; above 15.9375 numbers of cells would begin again."""


def sigmoid_by_cells(m: Recorder, x: Register) -> Register:
    """1 / (1 + e**-x), off by less than 1.5e-7; below -15.9375 it is 0."""
    limited = m.min(m.max(x, _LOWEST), _HIGHEST)
    cell = m.add(limited, _NEAREST)
    rest = m.sub(limited, m.sub(cell, _NEAREST))
    *lower, total = (OwnTable(_sigmoids(), 4 * BYTE_VALUES * power) for power in range(4))
    value = m.lookup(cell, total)
    for table in reversed(lower):
        value = m.mac(m.lookup(cell, table), value, rest)
    return value


@cache
def _sigmoids() -> bytes:
    """Four tables, by the power of what x lies above the middle of its cell: Taylor's coefficients of sigmoid."""
    rows = [_taylor(cell if cell < BYTE_VALUES // 2 else cell - BYTE_VALUES) for cell in range(BYTE_VALUES)]
    return b"".join(struct.pack(f"<{BYTE_VALUES}f", *column) for column in zip(*rows))


def _taylor(cell: int) -> tuple[float, float, float, float]:
    """Of a cell by its number as a signed byte; in the first one nothing is left."""
    if cell == -BYTE_VALUES // 2:
        return 0.0, 0.0, 0.0, 0.0
    value = 1 / (1 + math.exp(-cell / _CELLS))
    slope = value * (1 - value)
    return value, slope, slope * (1 - 2 * value) / 2, slope * (1 - 6 * slope) / 6
