"""Commands on words in local memory, as recipes and shared kernels ask for them (`lanes.build.LaneCommands`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from bmcompiler.backends.bm1684x import recipe_tables
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Ar, Cmp, Gather, Precision, Rounding, Trans
from bmcompiler.backends.bm1684x.instructions import arithmetic, matrix, special, transfers, window
from bmcompiler.backends.bm1684x.instructions.operands import Command, Operand, constant
from bmcompiler.backends.bm1684x.recipe_tables import TableSpace
from bmcompiler.backends.lanes.build import ONE
from bmcompiler.backends.lanes.facts import Range, Shape, Strides
from bmcompiler.backends.lanes.matrices import Matrix
from bmcompiler.backends.lanes.operands import Immediate, Source, Words, bytes_of, steps_of
from bmcompiler.backends.lanes.tables import AnyTable, Table
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.errors import EncodingError
from bmcompiler.numeric.halves import BF16, FP16

F32, I32, BYTE = Precision.FP32, Precision.INT32, Precision.INT8
RAW = {1: Precision.INT8, 2: Precision.INT16, 4: Precision.FP32}
"""What copies move by the bytes of an element; they leave bits alone."""
PRECISIONS = {
    "f32": (Precision.FP32, True),
    "f16": (Precision.FP16, True),
    "bf16": (Precision.BF16, True),
    "i8": (Precision.INT8, True),
    "u8": (Precision.INT8, False),
}
"""(precision, sign) of the types that the cube and windows know."""
_FLOAT = {Unit.ADD: Ar.ADD, Unit.SUB: Ar.SUB, Unit.MUL: Ar.MUL, Unit.MAX: Ar.MAX, Unit.MIN: Ar.MIN}
_BITS = {
    Unit.AND: Ar.AND,
    Unit.OR: Ar.OR,
    Unit.XOR: Ar.XOR,
    Unit.WORD_ADD: Ar.ADD,
    Unit.WORD_SUB: Ar.SUB,
    Unit.WORD_MUL: Ar.MUL,
}
_SHIFTS = {Unit.SHIFT: Ar.SHIFT_LOGICAL, Unit.SHIFT_SIGNED: Ar.SHIFT_ARITHMETIC}
HALF_TYPES = {Precision.FP16: FP16, Precision.BF16: BF16}
_INDEX_BYTES = 4096
_BYTE_VALUES = 256


class LaneCommandMaker:
    """Base of what issues commands; the last bank of every lane is its own.

    Only commands of the TIU reach that bank, so that what they touch there needs no order with transfers.
    """

    def __init__(self) -> None:
        self.start_tables()

    def start_tables(self) -> None:
        """Forget what lies in the last bank."""
        self._tables = TableSpace(CHIP.tile_bytes)
        self._index = CHIP.tile_bytes + recipe_tables.SPACE

    @abstractmethod
    def issue(self, command: Command, reads: Sequence[Range] = (), writes: Sequence[Range] = ()) -> None:
        """Add a command that touches these bytes of tiles."""

    def _add(self, command: Command, target: Words, *sources: Source) -> None:
        reads = [bytes_of(CHIP, source) for source in sources if isinstance(source, Words)]
        self.issue(command, reads, [bytes_of(CHIP, target)])

    @staticmethod
    def ranges(target: Words, *sources: Words) -> tuple[list[Range], list[Range]]:
        """The bytes that a command reads and writes."""
        return [bytes_of(CHIP, source) for source in sources], [bytes_of(CHIP, target)]

    def transfer(self, source: Words, target: Words) -> None:
        """By the GDMA, in order of the elements."""
        to, of = (transfers.Side(_window(words), words.shape, steps_of(CHIP, words)) for words in (target, source))
        self._add(transfers.copy(to, of, RAW[target.item]), target, source)

    def copy(self, source: Words, target: Words) -> None:
        """Copy words of each lane to others of the same lane."""
        for part in _by_images([each._replace(within=bytes_of(CHIP, each)) for each in (target, source)]):
            self.assign(*part)

    def transpose(self, target: Words, source: Words) -> None:
        """Channels become columns, columns channels."""
        _, c, _, w = target.shape
        command = special.move(Trans.WC, target.shape, _place(target), _place(source), RAW[target.item], (w, c))
        self._add(command, target, source)

    def fill(self, target: Words, bits: int) -> None:
        """By the execution units."""
        self.assign(target, Immediate(bits))

    def assign(self, target: Words, source: Source) -> None:
        """target = source, or an immediate everywhere."""
        kind = RAW[target.item]
        operand = _broadcast(source, target.shape, kind)
        self._add(arithmetic.unary(Ar.COPY, target.shape, _operand(target, kind), operand), target, source)

    def combine(self, unit: Unit, target: Words, a: Source, b: Source) -> None:
        """target = a `unit` b; operands of one element along an axis repeat."""
        shape, precision = target.shape, float_of(target) if unit in _FLOAT or unit is Unit.DIVIDE else I32
        result = _operand(target, precision)
        x, y = (_broadcast(source, shape, precision) for source in (a, b))
        if unit is Unit.DIVIDE:
            command = arithmetic.divide(shape, result, x, y)
        elif unit is Unit.MIN:  # the chip gives b where b <= a
            command = arithmetic.binary(Ar.MIN, shape, result, y, x)
        elif unit in _SHIFTS:
            places = constant(y.place & 0xFF, BYTE) if y.constant else y
            command = arithmetic.shift(_SHIFTS[unit], shape, result, x, places, Rounding.DOWN)
        else:
            command = arithmetic.binary({**_FLOAT, **_BITS}[unit], shape, result, x, y)
        self._add(command, target, a, b)

    def select(self, unit: Unit, target: Words, a: Source, b: Source, chosen: int) -> None:
        """target = the word `chosen` where `unit` holds for a and b, else 0."""
        precision = F32 if unit is Unit.GREATER else I32
        operation = Ar.SELECT_GT if unit is Unit.GREATER else Ar.SELECT_EQ
        x, y = (_broadcast(source, target.shape, precision) for source in (a, b))
        command = arithmetic.where(operation, target.shape, _operand(target, precision), x, y, chosen)
        self._add(command, target, a, b)

    def choose(self, target: Words, sources: Sequence[Source]) -> None:
        """target = a > b ? c : d, of tensors in the default layout."""
        kind = float_of(target)
        a, b, c, d = (_operand(source, kind) for source in sources)
        command = arithmetic.select(Cmp.SELECT_GT, target.shape, _operand(target, kind), a, b, c, d)
        self._add(command, target, *sources)

    def convert(self, unit: Unit, target: Words, source: Words) -> None:
        """A function of each word."""
        shape = target.shape
        if unit is Unit.TO_INT:
            command = arithmetic.cast(shape, _operand(target, I32), _operand(source), Rounding.TO_ZERO)
        elif unit is Unit.NEAREST_EXPONENT:
            command = special.exponent(shape, _place(target), _place(source), F32, I32)
        else:
            command = special.rsqrt(shape, _place(target), _place(source))
        self._add(command, target, source)

    def cast(self, target: Words, source: Words) -> None:
        """Floats of one type as those of another, rounded to nearest even; bytes as floats that hold all of them."""
        to, of = (_operand(words, float_of(words)) for words in (target, source))
        of = of._replace(signed=PRECISIONS[source.dtype][1])
        self._add(arithmetic.cast(target.shape, to, of, Rounding.HALF_EVEN), target, source)

    def widen_bytes(self, target: Words, signed: bool) -> None:
        """The low bytes of words become floats, in place: a command per image and row of channels, for its strides."""
        (n, c, h, w), (image, channel, row, step) = target.shape, steps_of(CHIP, target)
        for number in range(n):
            for first in range(0, c, CHIP.lanes):
                shape = (1, min(CHIP.lanes, c - first), h, w)
                place = target.address + 4 * (number * image + first // CHIP.lanes * channel)
                narrow = Operand(place, BYTE, signed, (0, 0, 4 * row, 4 * step))
                wide = Operand(place, F32, True, (0, 0, row, step))
                self._add(arithmetic.cast(shape, wide, narrow, Rounding.HALF_EVEN), target, target)

    def series(self, target: Words, source: Words, table: Table | int, terms: int) -> None:
        """The first terms of a power series behind its constant term, which is stored, too."""
        row = self._table(table) + _lane(source)
        command = special.taylor(target.shape, _place(target), _place(source), row, terms + 1, F32)
        self._add(command, target, source)

    def lookup(self, target: Words, source: Words, table: AnyTable, entries: int) -> None:
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
            self.issue(low_byte, [bytes_of(CHIP, source)])
            self._add(special.by_index(Gather.LANE_FAST, shape, place, (row, entries, True), indices, F32), target)

    def reduce(self, unit: Unit, target: Words, source: Words, geometry: Geometry, factor: int = ONE) -> None:
        """Sums of products with a float, its bits as fp32, or maxima, over windows padded with zeros."""
        kind = float_of(target)
        if unit is Unit.WINDOW_SUM:
            self._add(window.average(target, source, geometry, kind, immediate(factor, kind)), target, source)
        else:
            self._add(window.largest(target, source, geometry, kind), target, source)

    def largest(self, target: Words, source: Words, geometry: Geometry, dtype: str, border: int) -> None:
        """Maxima over windows of elements of a type; border: bits of the padding."""
        kind, signed = PRECISIONS[dtype]
        self._add(window.largest(target, source, geometry, kind, signed, border), target, source)

    def multiply(self, target: Matrix, left: Matrix, right: Matrix, bias: Matrix | None, *, add: bool) -> None:
        """Products of matrices of fp32 in sections."""
        sources = [left.words, right.words, *([target.words] if add else []), *([bias.words] if bias else [])]
        self._add(matrix.product(target, left, right, bias, add=add), target.words, *sources)

    def limit(self, unit: Unit, target: Words, bits: int) -> None:
        """Maximum or minimum with a constant, in place."""
        self.combine(unit, target, target, Immediate(bits))

    def weigh(self, target: Words, source: Words, weights: Words, add: bool) -> None:
        """target = source * weights, or target += source * weights."""
        shape = target.shape
        x, y = (_broadcast(words, shape) for words in (source, weights))
        self._add((arithmetic.mac if add else _multiply)(shape, _operand(target), x, y), target, source, weights)

    def _table(self, table: AnyTable) -> int:
        if not isinstance(table, Table):
            raise EncodingError("tables of programs are not looked up on this chip")
        return self._tables.place(table, self.issue)


def _multiply(shape: Shape, result: Operand, a: Operand, b: Operand) -> Command:
    return arithmetic.binary(Ar.MUL, shape, result, a, b)


def _lane(words: Words) -> int:
    return words.lane * CHIP.lmem_size


def _place(words: Words) -> int:
    return words.address + _lane(words)


def _window(words: Words) -> int:
    return transfers.in_window(_place(words))


def float_of(words: Words) -> Precision:
    """The precision of floats in a tensor."""
    return PRECISIONS[words.dtype][0]


def immediate(bits: int, precision: Precision) -> int:
    """The bits of a float, given as those of fp32, in a float type; others stay."""
    half = HALF_TYPES.get(precision)
    return bits if half is None else int(half.narrow(np.array([bits], "<u4").view(np.float32))[0])


def _operand(source: Source, precision: Precision = F32) -> Operand:
    if isinstance(source, Immediate):
        return constant(immediate(source.bits, precision), precision)
    return Operand(_place(source), precision, True, source.strides and _said(source, source.strides))


def _said(source: Words, strides: Strides) -> Strides:
    """Strides without those that no field can say and nothing is reached by: of one image, of one row of channels."""
    n, c, h, w = strides
    image = 0 if source.shape[0] == 1 and n > CHIP.most_size else n
    return image, 0 if CHIP.channel_rows(source.lane, source.shape[1]) == 1 and c > CHIP.most_size else c, h, w


def _by_images(alike: Sequence[Words]) -> Iterator[Sequence[Words]]:
    """Tensors of one shape, image by image if those of one lie farther apart than a field holds."""
    if all(each.strides is None or each.strides[0] <= CHIP.most_size for each in alike):
        yield alike
        return
    images, c, h, w = alike[0].shape
    for image in range(images):
        part = []
        for words in alike:
            apart, by_c, by_h, by_w = steps_of(CHIP, words)
            address = words.address + image * apart * words.item
            part.append(words._replace(address=address, shape=(1, c, h, w), strides=(0, by_c, by_h, by_w)))
        yield part


def _broadcast(source: Source, shape: Shape, precision: Precision = F32) -> Operand:
    """An operand of the shape; axes of one element repeat."""
    operand = _operand(source, precision)
    if isinstance(source, Immediate) or source.shape == shape:
        return operand
    steps = (0 if have == 1 != want else step for have, want, step in zip(source.shape, shape, steps_of(CHIP, source)))
    n, c, h, w = steps
    return operand._replace(strides=(n, c, h, w))


def _pieces(shape: Shape) -> Iterator[tuple[Shape, int]]:
    """(shape with h = 1, byte offset in a lane) of parts of an aligned tensor of words whose indices fit."""
    n, c, h, w = shape
    image, channel, _, _ = CHIP.aligned(shape, 4)
    for number in range(n):
        for row in range(CHIP.channel_rows(0, c)):
            lanes = min(CHIP.lanes, c - row * CHIP.lanes)
            for first in range(0, h * w, _INDEX_BYTES):
                size = min(_INDEX_BYTES, h * w - first)
                yield (1, lanes, 1, size), number * image + row * channel + 4 * first
