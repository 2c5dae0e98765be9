"""Commands on words in local memory, as recipes and shared kernels ask for them (`lanes.build.LaneCommands`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bmcompiler.backends.bm1684x import recipe_tables
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Ar, Cmp, Gather, Pord, Precision, Rounding
from bmcompiler.backends.bm1684x.instructions import arithmetic, special, transfers
from bmcompiler.backends.bm1684x.instructions.operands import Command, Operand, constant
from bmcompiler.backends.bm1684x.instructions.special import Window
from bmcompiler.backends.bm1684x.recipe_tables import TableSpace
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.operands import Immediate, Source, Words
from bmcompiler.backends.lanes.tables import Table
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.errors import EncodingError

F32, I32, BYTE = Precision.FP32, Precision.INT32, Precision.INT8
_FLOAT = {Unit.ADD: Ar.ADD, Unit.SUB: Ar.SUB, Unit.MUL: Ar.MUL, Unit.MAX: Ar.MAX, Unit.MIN: Ar.MIN}
_BITS = {Unit.AND: Ar.AND, Unit.OR: Ar.OR, Unit.XOR: Ar.XOR}
_SHIFTS = {Unit.SHIFT: Ar.SHIFT_LOGICAL, Unit.SHIFT_SIGNED: Ar.SHIFT_ARITHMETIC}
_INDEX_BYTES = 4096
_BYTE_VALUES = 256
_FOOT = CHIP.lmem_size - CHIP.lmem_bank_size
USABLE = _FOOT
"""Bytes of a lane that programs have: the last bank holds tables and indices."""


class LaneCommandMaker:
    """Adds commands to a program; the last bank of every lane is its own."""

    def __init__(self, add: Callable[[Command], None], begin: int = _FOOT) -> None:
        self._add = add
        self._tables = TableSpace(begin)
        self._index = begin + recipe_tables.SPACE

    def transfer(self, source: Words, target: Words) -> None:
        """By the GDMA, in order of the elements."""
        to, of = (transfers.Side(_window(words), words.shape, _strides(words)) for words in (target, source))
        self._add(transfers.copy(to, of, F32))

    def copy(self, source: Words, target: Words) -> None:
        """Within lanes."""
        self.assign(target, source)

    def fill(self, target: Words, bits: int) -> None:
        """By the execution units."""
        self.assign(target, Immediate(bits))

    def assign(self, target: Words, source: Source) -> None:
        """target = source, or an immediate everywhere."""
        self._add(arithmetic.unary(Ar.COPY, target.shape, _operand(target), _broadcast(source, target.shape)))

    def combine(self, unit: Unit, target: Words, a: Source, b: Source) -> None:
        """target = a `unit` b; operands of one element along an axis repeat."""
        shape, precision = target.shape, F32 if unit in _FLOAT or unit is Unit.DIVIDE else I32
        result = _operand(target, precision)
        x, y = (_broadcast(source, shape, precision) for source in (a, b))
        if unit is Unit.DIVIDE:
            self._add(arithmetic.divide(shape, result, x, y))
        elif unit is Unit.MIN:  # the chip gives b where b <= a
            self._add(arithmetic.binary(Ar.MIN, shape, result, y, x))
        elif unit in _SHIFTS:
            self._shift(_SHIFTS[unit], shape, result, x, y)
        else:
            self._add(arithmetic.binary({**_FLOAT, **_BITS}[unit], shape, result, x, y))

    def _shift(self, operation: Ar, shape: Shape, result: Operand, x: Operand, places: Operand) -> None:
        if places.constant:
            places = constant(places.place & 0xFF, BYTE)
        self._add(arithmetic.shift(operation, shape, result, x, places, Rounding.DOWN))

    def select(self, unit: Unit, target: Words, a: Source, b: Source, chosen: int) -> None:
        """target = the word `chosen` where `unit` holds for a and b, else 0."""
        precision = F32 if unit is Unit.GREATER else I32
        operation = Ar.SELECT_GT if unit is Unit.GREATER else Ar.SELECT_EQ
        x, y = (_broadcast(source, target.shape, precision) for source in (a, b))
        self._add(arithmetic.where(operation, target.shape, _operand(target, precision), x, y, chosen))

    def choose(self, target: Words, sources: Sequence[Source]) -> None:
        """target = a > b ? c : d, of tensors in the default layout."""
        a, b, c, d = (_operand(source) for source in sources)
        self._add(arithmetic.select(Cmp.SELECT_GT, target.shape, _operand(target), a, b, c, d))

    def convert(self, unit: Unit, target: Words, source: Words) -> None:
        """A function of each word."""
        shape = target.shape
        if unit is Unit.TO_INT:
            self._add(arithmetic.cast(shape, _operand(target, I32), _operand(source), Rounding.TO_ZERO))
        elif unit is Unit.NEAREST_EXPONENT:
            self._add(special.exponent(shape, _place(target), _place(source), F32, I32))
        else:
            self._add(special.rsqrt(shape, _place(target), _place(source)))

    def series(self, target: Words, source: Words, table: Table | int, terms: int) -> None:
        """The first terms of a power series; its constant term is stored as 0."""
        row = self._table(table) + _lane(source)
        self._add(special.taylor(target.shape, _place(target), _place(source), row, terms + 1, F32))

    def lookup(self, target: Words, source: Words, table: Table | int, entries: int) -> None:
        """Entry word mod 256 of a table; in pieces whose indices fit their place."""
        if entries != _BYTE_VALUES:
            raise EncodingError(f"tables of {entries} entries are not looked up on this chip, those of 256 are")
        row, lane = self._table(table) + _lane(source), _lane(source)
        index = self._index + lane
        for shape, offset in _pieces(target.shape):
            words = Operand(_place(source) + offset, I32)
            low_byte = arithmetic.binary(Ar.ADD, shape, Operand(index, BYTE), words, constant(0, I32))
            indices = (index, shape[3], BYTE)
            place = _place(target) + offset
            self._add(low_byte)
            self._add(special.by_index(Gather.LANE_FAST, shape, place, (row, entries, True), indices, F32))

    def reduce(self, unit: Unit, target: Words, source: Words, geometry: Geometry) -> None:
        """Sums or maxima over windows, padded with zeros."""
        window = Window(geometry.taps, geometry.steps, geometry.dilations, geometry.pads)
        image = (*source.shape[:2], *geometry.size)
        sums = {"opd1_const": 1, "opd1_addr": 0x3F80_0000} if unit is Unit.WINDOW_SUM else {}
        operation = Pord.AVERAGE if unit is Unit.WINDOW_SUM else Pord.MAX
        types = {"res0_prec": F32, "opd0_prec": F32}
        self._add(special.pool(operation, image, window, _place(target), _place(source), **types, **sums))

    def limit(self, unit: Unit, target: Words, bits: int) -> None:
        """Maximum or minimum with a constant, in place."""
        self.combine(unit, target, target, Immediate(bits))

    def weigh(self, target: Words, source: Words, weights: Words, add: bool) -> None:
        """target = source * weights, or target += source * weights."""
        shape = target.shape
        x, y = (_broadcast(words, shape) for words in (source, weights))
        self._add((arithmetic.mac if add else _multiply)(shape, _operand(target), x, y))

    def _table(self, table: Table | int) -> int:
        if not isinstance(table, Table):
            raise EncodingError("tables of programs are not looked up on this chip")
        return self._tables.place(table, self._add)


def _multiply(shape: Shape, result: Operand, a: Operand, b: Operand) -> Command:
    return arithmetic.binary(Ar.MUL, shape, result, a, b)


def _lane(words: Words) -> int:
    return words.lane * CHIP.lmem_size


def _place(words: Words) -> int:
    return words.address + _lane(words)


def _window(words: Words) -> int:
    return transfers.in_window(_place(words))


def _strides(words: Words) -> tuple[int, int, int, int]:
    n, c, h, w = CHIP.aligned(words.shape, 4, words.lane)
    return words.strides or (n // 4, c // 4, h // 4, w // 4)


def _operand(source: Source, precision: Precision = F32) -> Operand:
    if isinstance(source, Immediate):
        return constant(source.bits, precision)
    return Operand(_place(source), precision, True, source.strides)


def _broadcast(source: Source, shape: Shape, precision: Precision = F32) -> Operand:
    """An operand of the shape; axes of one element repeat."""
    operand = _operand(source, precision)
    if isinstance(source, Immediate) or source.shape == shape:
        return operand
    steps = (0 if have == 1 != want else step for have, want, step in zip(source.shape, shape, _strides(source)))
    n, c, h, w = steps
    return operand._replace(strides=(n, c, h, w))


def _pieces(shape: Shape) -> Iterator[tuple[Shape, int]]:
    """(shape with h = 1, byte offset in a lane) of parts of an aligned tensor of words whose indices fit."""
    n, c, h, w = shape
    image, channel, _, _ = CHIP.aligned(shape, 4)
    for number in range(n):
        for row in range(CHIP.rows(0, c)):
            lanes = min(CHIP.lanes, c - row * CHIP.lanes)
            for first in range(0, h * w, _INDEX_BYTES):
                size = min(_INDEX_BYTES, h * w - first)
                yield (1, lanes, 1, size), number * image + row * channel + 4 * first
