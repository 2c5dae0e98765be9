"""Tables in L2 (bm1684.md 6.5, 8): the constant ones, where they lie and what they hold, and those of programs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from functools import cache

import numpy as np

from bmcompiler.backends.bm1684.chip import CHIP, align_up
from bmcompiler.backends.lanes.tables import Table
from bmcompiler.numeric.arrays import Bytes, Floats

_FIRST_EXP, _LAST_EXP = -103, 88
_SERIES = 64
_SERIAL = 2048


FIRST = 0x30_0000
"""Offset in L2, in bytes, of the tables the chip keeps there; all fp32."""
OFFSETS = {
    Table.INTEGERS: FIRST,
    Table.POWERS_OF_E: 0x30_0400,
    Table.LOGARITHMS: 0x30_0800,
    Table.EXP_SERIES: 0x30_0C00,
    Table.LOG_SERIES: 0x30_0D00,
    Table.SINE_SERIES: 0x30_1700,
}


def table(offset: int, entries: int) -> Floats:
    """`entries` values from byte `offset` of L2 on, which must lie in the constant tables."""
    first = offset - FIRST
    return l2_tables()[first : first + 4 * entries].view(np.float32)


@cache
def l2_tables() -> Bytes:
    """The 14336 bytes of constant tables from offset 0x300000 of L2, computed (bm1684.md 8). Do not write to it."""
    signed = np.arange(256).astype(np.int8).astype(np.float64)
    inside = (signed >= _FIRST_EXP) & (signed <= _LAST_EXP)
    factorials = _inverse_factorials()
    signs = np.array([1, 0, -1, 0], np.float32)[np.arange(_SERIES) % 4]
    tables = (
        np.where(inside, signed, 0),  # EX_INT
        np.where(inside, np.exp(np.where(inside, signed, 0)), 0),  # EX
        (np.arange(256) - 127) * math.log(2),  # LNX
        factorials,  # EX_TAYLOR
        np.array([(-1) ** k / (k + 1) for k in range(_SERIES)]),  # LN_TAYLOR
        _arcsine_series(),  # ARCSIN_TAYLOR
        np.arange(256),  # UINT8 -> FLOAT
        signed,  # INT8 -> FLOAT
        signs * factorials,  # SIN_TAYLOR
        np.arange(_SERIAL),  # SERIAL
    )
    joined = np.concatenate([np.asarray(table).astype("<f4") for table in tables])
    return joined.view(np.uint8)


def _inverse_factorials() -> Floats:
    """1/(k+1)! by repeated float32 division, which is why some entries are off by one in the last bit."""
    return np.divide.accumulate(np.maximum(np.arange(_SERIES + 1), 1).astype(np.float32))[1:]


def _arcsine_series() -> Floats:
    """Odd terms (2m-1)!! / (2m)!! / (2m+1) in float32, even ones 0; the last are inf / inf, as on the chip."""
    m = np.arange(1, _SERIES // 2, dtype=np.float32)
    one = np.ones(1, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        odd = np.concatenate([one, np.multiply.accumulate(2 * m - 1)])
        even = np.concatenate([one, np.multiply.accumulate(2 * m)])
        terms = odd / even / (2 * np.arange(_SERIES // 2, dtype=np.float32) + 1)
    series = np.zeros(_SERIES, np.float32)
    series[::2] = terms
    return series


class TableSpace:
    """The part of L2 that programs may use, filled in turn; the oldest tables give way."""

    def __init__(self) -> None:
        self._next = CHIP.l2_free[0]
        self._known: dict[Hashable, tuple[int, int]] = {}

    def place(self, key: Hashable, size: int) -> tuple[int, bool]:
        """(offset in L2, whether it must be loaded) of a table of `size` bytes that `key` stands for."""
        if key in self._known:
            return self._known[key][0], False
        first, end = CHIP.l2_free
        start = self._next if self._next + size <= end else first
        stop = start + align_up(size, CHIP.alignment)
        self._known = {k: (a, b) for k, (a, b) in self._known.items() if b <= start or stop <= a}
        self._known[key] = start, stop
        self._next = stop
        return start, True


def joined(tables: Iterable[tuple[int, int]], align: int, most: int) -> list[tuple[int, int]]:
    """(place, bytes) of runs of tables that follow each other without a gap, of up to `most` bytes and what L2 holds.

    A run goes on only where the next table begins at a multiple of `align` bytes from the first one.
    """
    runs: list[tuple[int, int]] = []
    most = min(most, CHIP.l2_free[1] - CHIP.l2_free[0])
    for place, size in sorted(set(tables)):
        start, before = runs[-1] if runs else (0, 0)
        if runs and place == start + before and before % align == 0 and before + size <= most:
            runs[-1] = start, before + size
        else:
            runs.append((place, size))
    return runs
