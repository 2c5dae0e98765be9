"""The tables of recipes on the BM1684X: what they hold, and the commands that build them in local memory.

Commands look things up in the memory of their lane, so that a program needs them there. They are made of what static
memory holds, by arithmetic that `entries` repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np

from bmcompiler.backends.bm1684x import static_tables
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Ar, Precision, Rounding
from bmcompiler.backends.bm1684x.instructions import arithmetic, special
from bmcompiler.backends.bm1684x.instructions.operands import Command, Operand, constant
from bmcompiler.backends.bm1684x.static_tables import FIRST_POWER, LAST_POWER, StaticTable
from bmcompiler.backends.lanes.tables import NORMAL, POWER_OF_TWO, Table
from bmcompiler.chip import Dims
from bmcompiler.numeric import fp32
from bmcompiler.numeric.arrays import Floats

_WORD, _BIAS = 4, 127
_BYTES = 256
_LN_2 = 0x3F31_7218
_POWERS = LAST_POWER - FIRST_POWER + 1
_SIZES = {
    Table.EXP_SERIES: 32,
    Table.LOG_SERIES: 64,
    Table.SINE_SERIES: 32,
    Table.SERIES_OF_TWO: 16,
    Table.NORMAL_SERIES: 16,
    Table.INTEGERS: _BYTES,
    Table.POWERS_OF_E: _BYTES,
    Table.LOGARITHMS: _BYTES,
}
"""Words that belong to each; all together are whole vectors."""
_DRAFT = sum(_SIZES.values()) * _WORD
SPACE = _DRAFT + _BYTES * _WORD
"""Bytes of a lane that all tables take together, and a draft."""


# -- what they hold ----------------------------------------------------------------------------------------------------
def entries(table: Table, count: int) -> Floats:
    """The first entries, of a series its constant term first."""
    return _ENTRIES[table]()[:count]


def _stored(table: StaticTable) -> Floats:
    return table.data().view("<f4")


@cache
def _exp_series() -> Floats:
    return np.concatenate([np.zeros(1, np.float32), _stored(static_tables.EXP)[1:]])


@cache
def _sine_series() -> Floats:
    signs = np.array([0, 1, 0, -1], np.float32)
    return _stored(static_tables.EXP) * np.tile(signs, 8)


def _by_byte(ordered: Floats) -> Floats:
    """Entries -103 to 88 at the places of their bytes, 0 between."""
    found = np.zeros(_BYTES, np.float32)
    found[np.arange(FIRST_POWER, LAST_POWER + 1) % _BYTES] = ordered
    return found


@cache
def _powers() -> Floats:
    return _by_byte(_stored(static_tables.EXP_TABLE))


@cache
def _integers() -> Floats:
    return _by_byte(np.arange(FIRST_POWER, LAST_POWER + 1, dtype=np.float32))


@cache
def _logarithms() -> Floats:
    return fp32.multiply(np.arange(_BYTES, dtype=np.float32) - _BIAS, np.array(_LN_2, "<u4").view("<f4"))


_ENTRIES: dict[Table, Callable[[], Floats]] = {
    Table.EXP_SERIES: _exp_series,
    Table.LOG_SERIES: lambda: _stored(static_tables.LOG),
    Table.SINE_SERIES: _sine_series,
    Table.SERIES_OF_TWO: lambda: np.array(POWER_OF_TWO, np.float32),
    Table.NORMAL_SERIES: lambda: np.array(NORMAL, np.float32),
    Table.INTEGERS: _integers,
    Table.POWERS_OF_E: _powers,
    Table.LOGARITHMS: _logarithms,
}


# -- how they are made -------------------------------------------------------------------------------------------------
@dataclass
class TableSpace:
    """The tables that a program has in its lanes, from byte `begin` of each on; `SPACE` bytes belong to them."""

    begin: int
    _loaded: set[Table] = field(default_factory=set)

    def place(self, table: Table, add: Callable[[Command], None]) -> int:
        """The offset of a table in each lane; the first time commands that make it are added."""
        before = list(_SIZES)[: list(_SIZES).index(table)]
        at = self.begin + _WORD * sum(_SIZES[each] for each in before)
        if table not in self._loaded:
            self._loaded.add(table)
            for command in _MADE[table](at, self.begin + _DRAFT):
                add(command)
        return at


def _row(at: int, entry: int = 0, step: int = 1, precision: Precision = Precision.FP32) -> Operand:
    return Operand(at + entry * _WORD, precision, True, (0, 0, 0, step))


def _shape(words: int) -> Dims:
    return (1, CHIP.lanes, 1, words)


def _loaded(at: int, table: StaticTable) -> Command:
    return special.static_broadcast(at, table.offset, CHIP.lanes, table.words, table.precision)


def _filled(at: int, words: int, bits: int = 0) -> Command:
    return arithmetic.unary(Ar.COPY, _shape(words), _row(at), constant(bits, Precision.FP32))


def _make_exp_series(at: int, draft: int) -> Iterator[Command]:
    yield _loaded(at, static_tables.EXP)
    yield _filled(at, 1)


def _make_log_series(at: int, draft: int) -> Iterator[Command]:
    yield _loaded(at, static_tables.LOG)


def _make_sine_series(at: int, draft: int) -> Iterator[Command]:
    """1 / k! with the signs 0, 1, 0, -1."""
    words = static_tables.EXP.words // 4
    yield _loaded(draft, static_tables.EXP)
    yield _filled(at, static_tables.EXP.words)
    yield arithmetic.unary(Ar.COPY, _shape(words), _row(at, 1, 4), _row(draft, 1, 4))
    zero = constant(0, Precision.FP32)
    yield arithmetic.binary(Ar.SUB, _shape(words), _row(at, 3, 4), zero, _row(draft, 3, 4))


def _make_of_numbers(table: Table, at: int, draft: int) -> Iterator[Command]:
    """Of what is not in static memory, a command for each."""
    for place, value in enumerate(entries(table, _SIZES[table])):
        yield _filled(at + _WORD * place, 1, int(value.view(np.uint32)))


def _place_by_byte(at: int, draft: int) -> Iterator[Command]:
    below = -FIRST_POWER
    yield _filled(at, _BYTES)
    yield arithmetic.unary(Ar.COPY, _shape(_POWERS - below), _row(at), _row(draft, below))
    yield arithmetic.unary(Ar.COPY, _shape(below), _row(at, _BYTES - below), _row(draft))


def _make_powers(at: int, draft: int) -> Iterator[Command]:
    yield _loaded(draft, static_tables.EXP_TABLE)
    yield from _place_by_byte(at, draft)


def _count(at: int, words: int, first: int) -> Iterator[Command]:
    """first, first + 1... as floats: what static memory has of it, doubled."""
    integer, serial = Precision.INT32, static_tables.SERIAL
    yield _loaded(at, serial)
    filled = serial.words
    while filled < words:
        more = min(filled, words - filled)
        target, source = _row(at, filled, precision=integer), _row(at, precision=integer)
        yield arithmetic.binary(Ar.ADD, _shape(more), target, source, constant(filled, integer))
        filled += more
    whole = _row(at, precision=integer)
    yield arithmetic.binary(Ar.ADD, _shape(words), whole, whole, constant(first, integer))
    yield arithmetic.cast(_shape(words), _row(at), whole, Rounding.HALF_EVEN)


def _make_integers(at: int, draft: int) -> Iterator[Command]:
    yield from _count(draft, _POWERS, FIRST_POWER)
    yield from _place_by_byte(at, draft)


def _make_logarithms(at: int, draft: int) -> Iterator[Command]:
    yield from _count(at, _BYTES, -_BIAS)
    yield arithmetic.binary(Ar.MUL, _shape(_BYTES), _row(at), _row(at), constant(_LN_2, Precision.FP32))


_MADE: dict[Table, Callable[[int, int], Iterator[Command]]] = {
    Table.EXP_SERIES: _make_exp_series,
    Table.LOG_SERIES: _make_log_series,
    Table.SINE_SERIES: _make_sine_series,
    Table.SERIES_OF_TWO: partial(_make_of_numbers, Table.SERIES_OF_TWO),
    Table.NORMAL_SERIES: partial(_make_of_numbers, Table.NORMAL_SERIES),
    Table.INTEGERS: _make_integers,
    Table.POWERS_OF_E: _make_powers,
    Table.LOGARITHMS: _make_logarithms,
}
