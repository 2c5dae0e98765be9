"""The commands of shared kernels as instructions of the BM1684: which task, unit and precision each one is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.instructions import functions, matrix, transfers, window, words
from bmcompiler.backends.bm1684.isa import Direction, Eu
from bmcompiler.backends.bm1684.tables import OFFSETS
from bmcompiler.backends.lanes.build import ONE, LaneCommands
from bmcompiler.backends.lanes.facts import LaneFacts, Range
from bmcompiler.backends.lanes.matrices import Matrix
from bmcompiler.backends.lanes.operands import Immediate, Source, Words
from bmcompiler.backends.lanes.tables import Table
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Geometry

_FLOATS = {
    Unit.ADD: Eu.ADD,
    Unit.SUB: Eu.SUB,
    Unit.MUL: Eu.MUL,
    Unit.DIVIDE: Eu.DIVIDE,
    Unit.MAX: Eu.MAX,
    Unit.MIN: Eu.MIN,
}
_BITS = {Unit.AND: Eu.AND, Unit.OR: Eu.OR, Unit.XOR: Eu.XOR, Unit.SHIFT: Eu.SHIFT, Unit.SHIFT_SIGNED: Eu.SHIFT}
_TESTS = {Unit.GREATER: Eu.SELECT_GT, Unit.SAME_BITS: Eu.SELECT_EQ}
_FUNCTIONS = {Unit.TO_INT: Eu.FP32_TO_INT, Unit.NEAREST_EXPONENT: Eu.INT_NORMALIZE, Unit.RSQRT: Eu.RSQRT}


class LaneInstructions(LaneCommands):
    """Base of what commands are added to by `tiu` and `gdma`."""

    chip: LaneFacts = CHIP

    def tiu(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> Any:
        """Add a TIU command."""
        raise TypeError(f"{type(self).__name__} takes no TIU commands")

    def gdma(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> Any:
        """Add a GDMA command."""
        raise TypeError(f"{type(self).__name__} takes no GDMA commands")

    # -- inside local memory -------------------------------------------------------------------------------------------
    def transfer(self, source: Words, target: Words) -> None:
        """Copy words in order, whatever the shapes and lanes."""
        sides = transfers.of_words(source), transfers.of_words(target)
        transfers.transfer(self, Direction.LOCAL_TO_LOCAL, *sides)

    def copy(self, source: Words, target: Words) -> None:
        """Copy words within lanes."""
        words.copy(self, target, source)

    def fill(self, target: Words, bits: int) -> None:
        """Fill words by the TIU."""
        words.copy(self, target, Immediate(bits))

    def combine(self, unit: Unit, target: Words, a: Source, b: Source) -> None:
        """target = a `unit` b."""
        if unit in _FLOATS:
            words.arithmetic(self, _FLOATS[unit], target, a, b)
        else:
            words.bits(self, _BITS[unit], target, a, b, signed=unit is Unit.SHIFT_SIGNED)

    def assign(self, target: Words, source: Source) -> None:
        """target = source, or an immediate everywhere."""
        words.copy_as_bits(self, target, source)

    def select(self, unit: Unit, target: Words, a: Source, b: Source, chosen: int) -> None:
        """target = the word `chosen` where `unit` holds, else 0."""
        words.select(self, _TESTS[unit], target, a, b, chosen)

    def choose(self, target: Words, sources: Sequence[Source]) -> None:
        """target = a > b ? c : d."""
        functions.choose(self, target, sources)

    def convert(self, unit: Unit, target: Words, source: Words) -> None:
        """A function of each word."""
        functions.function(self, _FUNCTIONS[unit], target, source)

    def series(self, target: Words, source: Words, table: Table | int, terms: int) -> None:
        """The first terms of a power series."""
        functions.series(self, target, source, _offset(table), terms)

    def lookup(self, target: Words, source: Words, table: Table | int, entries: int) -> None:
        """Entries of a table of the chip, or of one at an offset of L2."""
        functions.lookup(self, target, source, _offset(table), entries)

    def reduce(self, unit: Unit, target: Words, source: Words, geometry: Geometry, factor: int = ONE) -> None:
        """Sums or maxima over windows of floats."""
        if unit is Unit.WINDOW_SUM:
            window.float_sums(self, target, source, geometry, factor)
        else:
            window.float_largest(self, target, source, geometry)

    def largest(self, target: Words, source: Words, geometry: Geometry, dtype: str, border: int) -> None:
        """Maxima over windows; what is padded is below all numbers."""
        signed, item = None if dtype == "f32" else dtype == "i8", 4 if dtype == "f32" else 1
        place, data = (window.map_at(words.address, words.shape, item) for words in (target, source))
        window.largest(self, (target.shape, place), data, geometry, signed)

    def multiply(self, target: Matrix, left: Matrix, right: Matrix, bias: Matrix | None, *, add: bool) -> None:
        """Products of matrices of floats."""
        matrix.product(self, target, left, right, bias, add=add)

    def limit(self, unit: Unit, target: Words, bits: int) -> None:
        """In place: maximum or minimum of floats and a constant."""
        words.limit(self, _FLOATS[unit], target, bits)

    def weigh(self, target: Words, source: Words, weights: Words, add: bool) -> None:
        """target = source * weights, or target += source * weights."""
        words.weigh(self, target, source, weights, add=add)


def _offset(table: Table | int) -> int:
    return table if isinstance(table, int) else OFFSETS[table]
