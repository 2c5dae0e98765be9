"""What recipes are written against: operations on tiles of 32-bit words.

A recipe is a function of a recorder and of registers, each of which stands for one tile of words:

    def sigmoid(m, x): return m.div(1.0, m.add(exp(m, m.neg(x)), 1.0))

Calling it once records its steps (`steps.record`). Float operations take Python numbers as fp32 immediates, bit
operations take them as the bits of a word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bmcompiler.backends.lanes.facts import LaneFacts
from bmcompiler.backends.lanes.operands import Immediate
from bmcompiler.backends.lanes.tables import BYTE_VALUES, AnyTable, Table
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.errors import EncodingError


class Register(NamedTuple):
    """A tile of 32-bit words; the inputs of a recipe come first, then the result of each step."""

    number: int


class Rows(NamedTuple):
    """`size` rows of a register from row `first` on, along h."""

    number: int
    first: int
    size: int


Operand = Register | Rows | Immediate
Number = Register | Rows | float | int
TILE, REDUCED, COLUMNS = 0, 1, -1
"""Heights of registers: as many rows as the tile, what a reduction leaves, the row that is left of columns; others
count rows.
"""
ONE = 0x3F80_0000
SIGN = 0x8000_0000
MAGNITUDE = 0x7FFF_FFFF


class Scan(NamedTuple):
    """Running totals along h: from which end, and whether each row counts its own element."""

    reverse: bool
    exclusive: bool

    def rows(self, count: int) -> list[int]:
        """The rows in the order in which they are computed."""
        return list(range(count))[::-1] if self.reverse else list(range(count))


class RecipeStep(NamedTuple):
    """One command, or for running totals one for each row.

    Attributes:
        chosen: bits that a selection gives.
        table: what is looked up in: a table of the chip, or the place that the build gave one of the program.
        terms: entries of the table that are used.
        window: of reductions: rows of the window and zero rows above; 0 rows = all that is reduced.
        scan: the operation runs from row to row of its only operand.
        height: of the result: `TILE`, `REDUCED`, `COLUMNS` or a number of rows.
    """

    unit: Unit
    sources: tuple[Operand, ...]
    chosen: int = 0
    table: AnyTable = 0
    terms: int = 0
    window: tuple[int, int] = (0, 0)
    scan: Scan | None = None
    height: int = TILE

    @property
    def small(self) -> bool:
        """Whether the result is what a reduction leaves."""
        return self.height in (REDUCED, COLUMNS)

    @property
    def in_place(self) -> bool:
        """Whether the result may take the place of an operand: commands that read each element just once."""
        separate = self.scan is not None or any(isinstance(s, Rows) for s in self.sources)
        return (self.unit.strided or self.unit is Unit.CHOOSE) and not separate


NEUTRAL = {Unit.ADD: 0, Unit.MUL: ONE}
"""Bits of what running totals and products begin with."""


def float_bits(value: float) -> int:
    """The bits of `value` as fp32."""
    return int(np.array([value], "<f4").view("<u4")[0])


class Recorder:
    """Records the steps of a recipe; `facts`: of the chip, for recipes that know several ways.

    `folded`: reductions over h and w are those of columns first, and then of the row that is left.
    """

    def __init__(self, inputs: int, facts: LaneFacts, folded: bool = False) -> None:
        self.inputs, self.folded = inputs, folded
        self.word_sums, self.own_tables, self.constant_terms = facts.word_sums, facts.own_tables, facts.constant_terms
        self.steps: list[RecipeStep] = []
        self._heights = [TILE] * inputs

    def _add(self, step: RecipeStep) -> Register:
        """Append a step; unless its height is given, it is that of its operands, of which reduced ones broadcast."""
        heights = {self._height(s) for s in step.sources if not isinstance(s, Immediate)}
        if not step.unit.windowed:
            wide = heights - {REDUCED} if len(heights) > 1 else heights
            if len(wide) > 1 or (len(heights) > 1 and not step.unit.strided):
                raise EncodingError(f"operands of {sorted(heights)} rows do not go together in {step.unit.name}")
            step = step._replace(height=wide.pop() if wide else TILE)
        self.steps.append(step)
        self._heights.append(step.height)
        return Register(len(self._heights) - 1)

    def _height(self, source: Register | Rows) -> int:
        return source.size if isinstance(source, Rows) else self._heights[source.number]

    def _float(self, unit: Unit, a: Number, b: Number) -> Register:
        return self._add(RecipeStep(unit, (_float(a), _float(b))))

    def _bits(self, unit: Unit, a: Number, b: Number) -> Register:
        return self._add(RecipeStep(unit, (_bits(a), _bits(b))))

    def add(self, a: Number, b: Number) -> Register:
        """a + b."""
        return self._float(Unit.ADD, a, b)

    def sub(self, a: Number, b: Number) -> Register:
        """a - b."""
        return self._float(Unit.SUB, a, b)

    def mul(self, a: Number, b: Number) -> Register:
        """a * b."""
        return self._float(Unit.MUL, a, b)

    def mac(self, total: Register, a: Register, b: Register) -> Register:
        """total + a * b in the place of `total`, which is the result of another step and read by none but this."""
        return self._add(RecipeStep(Unit.MAC, (total, a, b)))

    def div(self, a: Number, b: Number) -> Register:
        """a / b, some units in the last place off."""
        return self._float(Unit.DIVIDE, a, b)

    def max(self, a: Number, b: Number) -> Register:
        """a > b ? a : b."""
        return self._float(Unit.MAX, a, b)

    def min(self, a: Number, b: Number) -> Register:
        """a <= b ? a : b."""
        return self._float(Unit.MIN, a, b)

    def greater(self, a: Number, b: Number, chosen: int = ONE) -> Register:
        """a > b ? word with the bits `chosen` : 0."""
        return self._add(RecipeStep(Unit.GREATER, (_float(a), _float(b)), chosen))

    def same_bits(self, a: Number, b: Number, chosen: int = ONE) -> Register:
        """Word with the bits `chosen` where a and b have the same bits, else 0; immediates are bits."""
        return self._add(RecipeStep(Unit.SAME_BITS, (_bits(a), _bits(b)), chosen))

    def choose(self, a: Number, b: Number, c: Number, d: Number) -> Register:
        """a > b ? c : d; only of operands in the default layout."""
        return self._add(RecipeStep(Unit.CHOOSE, (_float(a), _float(b), _float(c), _float(d))))

    def copy(self, a: Number) -> Register:
        """a; of a number, a tile full of it."""
        return self._add(RecipeStep(Unit.COPY, (_float(a),)))

    def and_(self, a: Number, b: Number) -> Register:
        """a & b."""
        return self._bits(Unit.AND, a, b)

    def or_(self, a: Number, b: Number) -> Register:
        """a | b."""
        return self._bits(Unit.OR, a, b)

    def xor(self, a: Number, b: Number) -> Register:
        """a ^ b."""
        return self._bits(Unit.XOR, a, b)

    def add_words(self, a: Number, b: Number) -> Register:
        """a + b of integers, cut to 32 bits."""
        return self._bits(Unit.WORD_ADD, a, b)

    def mul_words(self, a: Number, b: Number) -> Register:
        """a * b of integers, cut to 32 bits."""
        return self._bits(Unit.WORD_MUL, a, b)

    def sub_words(self, a: Number, b: Number) -> Register:
        """a - b of integers, cut to 32 bits."""
        return self._bits(Unit.WORD_SUB, a, b)

    def shift(self, a: Number, places: Number, arithmetic: bool = False) -> Register:
        """a << places, of negative `places` a >> -places; -31 to 31, one integer or a word for each element."""
        return self._add(RecipeStep(Unit.SHIFT_SIGNED if arithmetic else Unit.SHIFT, (_bits(a), _bits(places))))

    def to_int(self, a: Register) -> Register:
        """int32 of a float, cut towards zero, saturating."""
        return self._add(RecipeStep(Unit.TO_INT, (a,)))

    def nearest_exponent(self, a: Register) -> Register:
        """Biased exponent, as integer, of the power of two nearest to a positive float."""
        return self._add(RecipeStep(Unit.NEAREST_EXPONENT, (a,)))

    def rsqrt(self, a: Register) -> Register:
        """1 / sqrt(a), large for 0; the result for negative values is of no use."""
        return self._add(RecipeStep(Unit.RSQRT, (a,)))

    def series(self, a: Register, table: Table, terms: int) -> Register:
        """c[0] * a + c[1] * a**2 + ... with the coefficients of a table, behind its constant term if it has one."""
        return self._add(RecipeStep(Unit.SERIES, (a,), table=table, terms=terms))

    def lookup(self, a: Register, table: AnyTable) -> Register:
        """Word a & 255 of a table."""
        return self._add(RecipeStep(Unit.LOOKUP, (a,), table=table, terms=BYTE_VALUES))

    def total(self, a: Register) -> Register:
        """Sum over the reduced axes, in the chip's order."""
        return self._reduced(Unit.WINDOW_SUM, a)

    def highest(self, a: Register) -> Register:
        """Maximum over the reduced axes."""
        return self._reduced(Unit.WINDOW_MAX, a)

    def _reduced(self, unit: Unit, a: Register) -> Register:
        rows = self._add(RecipeStep(unit, (a,), height=COLUMNS)) if self.folded else a
        return self._add(RecipeStep(unit, (rows,), height=REDUCED))

    def window_total(self, a: Register, rows: int, above: int) -> Register:
        """Sums over windows of so many rows, the first of which begins `above` rows above the tile."""
        return self._add(RecipeStep(Unit.WINDOW_SUM, (a,), window=(rows, above)))

    def product(self, a: Register, rows: int) -> Register:
        """Product over h, of so many rows: the first half of the rows times the second one, and so on.

        The last row of an odd number waits for the end.
        """
        left: list[Register | Rows] = []
        total: Register | Rows = Rows(a.number, 0, rows)
        while rows > 1:
            half = rows // 2
            if rows % 2:
                left.append(self.copy(Rows(total.number, rows - 1, 1)))
            total = self.mul(Rows(total.number, 0, half), Rows(total.number, half, half))
            rows = half
        for row in left:
            total = self.mul(total, row)
        return total if isinstance(total, Register) else self.copy(total)

    def running_total(self, a: Register, reverse: bool, exclusive: bool) -> Register:
        """Sums of the rows so far."""
        return self._add(RecipeStep(Unit.ADD, (a,), scan=Scan(reverse, exclusive)))

    def running_product(self, a: Register, reverse: bool, exclusive: bool) -> Register:
        """Products of the rows so far."""
        return self._add(RecipeStep(Unit.MUL, (a,), scan=Scan(reverse, exclusive)))

    def abs(self, a: Number) -> Register:
        """|a|."""
        return self.and_(a, MAGNITUDE)

    def neg(self, a: Number) -> Register:
        """-a."""
        return self.xor(a, SIGN)

    def polynomial(self, a: Register, coefficients: tuple[float, ...]) -> Register:
        """c[0] + c[1] * a + c[2] * a**2 + ... by Horner's rule."""
        *rest, first, last = coefficients
        total = self.add(self.mul(a, last), first)
        for c in reversed(rest):
            total = self.add(self.mul(total, a), c)
        return total


def _float(value: Number) -> Operand:
    return value if isinstance(value, (Register, Rows)) else Immediate(float_bits(value))


def _bits(value: Number) -> Operand:
    return value if isinstance(value, (Register, Rows)) else Immediate(int(value) & 0xFFFF_FFFF)
