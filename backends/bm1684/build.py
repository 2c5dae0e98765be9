"""The instruction builder kernels emit through: addresses, waits, and moves between global and local memory.

Global tensors are dense arrays of their element type. In local memory 8-bit and 16-bit feature maps are packed, four or
two images to a word (bm1684.md 4.2): they are moved with one command per image slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bmcompiler.backends.bm168x.build import NEURON_VIRTUAL, FamilyBuild
from bmcompiler.backends.bm168x.builder import GroupBuilder, Ticket
from bmcompiler.backends.bm1684.chip import CHIP, is_local, local_address
from bmcompiler.backends.bm1684.instructions import packed, products, transfers, words
from bmcompiler.backends.bm1684.instructions.products import load_matrix, store_matrix
from bmcompiler.backends.bm1684.instructions.transfers import (
    FORMAT_OF_SIZE,
    Side,
    convert,
    fill,
    in_lane,
    side_fields,
    transfer,
)
from bmcompiler.backends.bm1684.isa import FORMATS, GDMA, OWN_ID, WAIT_ID, DataFormat, Direction, Engine, Eu
from bmcompiler.backends.bm1684.tables import OFFSETS, TableSpace, joined
from bmcompiler.backends.lanes.build import ONE, LaneBuild, LaneCommands
from bmcompiler.backends.lanes.facts import LaneFacts, Range, Shape, Strides
from bmcompiler.backends.lanes.matrices import Matrix
from bmcompiler.backends.lanes.operands import Immediate, Source, Words
from bmcompiler.backends.lanes.tables import AnyTable, OwnTable, Table
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.codegen.build import Box, dense_strides, extents
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.memory import MemoryPlan
from bmcompiler.errors import EncodingError
from bmcompiler.ir import Operation
from bmcompiler.ops.elements.integer import Lut, LutSoftmax

_ADDRESSES = ("src_addr", "dst_addr")
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


class CommandBuilder(GroupBuilder):
    """Collects commands and gives them their ids and waits.

    Args:
        max_id: largest id of a group; smaller than the chip's limit only in tests.
    """

    def __init__(self, max_id: int = CHIP.max_command_id) -> None:
        super().__init__(max_id)

    def tiu(self, *, after: Iterable[Ticket] | None = None, **fields: int) -> Ticket:
        """Add a TIU command; see `add`."""
        return self.add(Engine.TIU, after=after, **fields)

    def gdma(self, *, after: Iterable[Ticket] | None = None, **fields: int) -> Ticket:
        """Add a GDMA command; see `add`."""
        return self.add(Engine.GDMA, after=after, **fields)

    def add(self, engine: Engine, *, after: Iterable[Ticket] | None = None, **fields: int) -> Ticket:
        """Add a command with its reset values overridden by `fields`; see `issue`.

        `src_addr` and `dst_addr` of GDMA commands (40 bits) stand for their two halves.

        Raises:
            EncodingError: unknown field, value that does not fit, id or wait among the fields.
        """
        layout, own, wait = FORMATS[engine], OWN_ID[engine], WAIT_ID[engine]
        for name in (own, wait):
            if name in fields:
                raise EncodingError(f"{layout.name}: field '{name}' is the builder's to set")
        for name in _ADDRESSES if engine is Engine.GDMA else ():
            if name in fields:
                address = fields.pop(name)
                fields |= {f"{name}_lo": address & 0xFFFF_FFFF, f"{name}_hi": address >> 32}
        return self.issue(engine, lambda number, other: layout.pack({**fields, own: number, wait: other}), after)


class LaneInstructions(LaneCommands):
    """Base of what commands are added to by `tiu` and `gdma`."""

    chip: LaneFacts = CHIP

    def tiu(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> Any:
        """Add a TIU command."""
        raise TypeError(f"{type(self).__name__} takes no TIU commands")

    def gdma(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> Any:
        """Add a GDMA command."""
        raise TypeError(f"{type(self).__name__} takes no GDMA commands")

    def own_table(self, table: OwnTable) -> int:
        """Offset in L2 of a table that the program brings along."""
        raise TypeError(f"{type(self).__name__} loads no tables")

    # -- inside local memory -------------------------------------------------------------------------------------------
    def transfer(self, source: Words, target: Words) -> None:
        sides = transfers.of_words(source), transfers.of_words(target)
        transfers.transfer(self, Direction.LOCAL_TO_LOCAL, *sides)

    def copy(self, source: Words, target: Words) -> None:
        words.copy(self, target, source)

    def fill(self, target: Words, bits: int) -> None:
        """Fill words by the TIU."""
        words.copy(self, target, Immediate(bits))

    def combine(self, unit: Unit, target: Words, a: Source, b: Source) -> None:
        if unit in _FLOATS:
            words.arithmetic(self, _FLOATS[unit], target, a, b)
        else:
            words.bits(self, _BITS[unit], target, a, b, signed=unit is Unit.SHIFT_SIGNED)

    def assign(self, target: Words, source: Source) -> None:
        words.copy_as_bits(self, target, source)

    def select(self, unit: Unit, target: Words, a: Source, b: Source, chosen: int) -> None:
        words.select(self, _TESTS[unit], target, a, b, chosen)

    def choose(self, target: Words, sources: Sequence[Source]) -> None:
        words.choose(self, target, sources)

    def convert(self, unit: Unit, target: Words, source: Words) -> None:
        words.function(self, _FUNCTIONS[unit], target, source)

    def series(self, target: Words, source: Words, table: Table | int, terms: int) -> None:
        words.series(self, target, source, _offset(table), terms)

    def lookup(self, target: Words, source: Words, table: AnyTable, entries: int) -> None:
        place = self.own_table(table) if isinstance(table, OwnTable) else _offset(table)
        words.lookup(self, target, source, place, entries)

    def lookup_bytes(self, target: Words, source: Words, table: AnyTable, entries: int) -> None:
        place = self.own_table(table) if isinstance(table, OwnTable) else _offset(table)
        words.lookup_bytes(self, target, source, place, entries)

    def pack_bytes(self, target: int, source: int, halves: int, dims: Shape, *, signed: bool, whole: bool) -> None:
        """By commands on the halves of words."""
        pack = packed.pack_words if whole else packed.pack_low_halves
        pack(self, dims, source, halves, target, signed)

    def reduce(self, unit: Unit, target: Words, source: Words, geometry: Geometry, factor: int = ONE) -> None:
        if unit is Unit.WINDOW_SUM:
            products.float_sums(self, target, source, geometry, factor)
        else:
            products.float_largest(self, target, source, geometry)

    def largest(self, target: Words, source: Words, geometry: Geometry, dtype: str, border: int) -> None:
        """Maxima over windows; what is padded is below all numbers."""
        signed, item = None if dtype == "f32" else dtype == "i8", 4 if dtype == "f32" else 1
        place, data = (products.map_at(words.address, words.shape, item) for words in (target, source))
        products.largest(self, (target.shape, place), data, geometry, signed)

    def multiply(self, target: Matrix, left: Matrix, right: Matrix, bias: Matrix | None, *, add: bool) -> None:
        products.product(self, target, left, right, bias, add=add)

    def limit(self, unit: Unit, target: Words, bits: int) -> None:
        words.limit(self, _FLOATS[unit], target, bits)

    def weigh(self, target: Words, source: Words, weights: Words, add: bool) -> None:
        words.weigh(self, target, source, weights, add=add)


def _offset(table: Table | int) -> int:
    return table if isinstance(table, int) else OFFSETS[table]


__all__ = [
    "FORMAT_OF_SIZE", "NEURON_VIRTUAL", "Box", "Build", "compact_bytes", "extents", "lane_bytes", "side_fields",
    "word_shape",
]  # fmt: skip

word_shape, lane_bytes, compact_bytes = CHIP.words_of, CHIP.aligned_bytes, CHIP.compact_bytes


class Build(LaneInstructions, FamilyBuild[CommandBuilder], LaneBuild):
    """One program under construction; `serial` makes every command wait for all before it."""

    first_address = CHIP.program_base

    def __init__(self, plan: MemoryPlan, coefficients: Coefficients, serial: bool = False) -> None:
        super().__init__(plan, coefficients, CommandBuilder(), serial)
        self._joined: list[dict[int, tuple[int, int]]] = []  # of each run of ops to come; empty where none is expected

    def expect(self, ops: Sequence[Operation]) -> None:
        """Tables of a run of ops that follow each other are loaded together, with the first.

        Together they take what the fields of one command can say, a small part of L2: none gives way before it is used.
        """
        from bmcompiler.backends.bm1684.packed.int_elementwise import table_of  # kernels, which import this

        tables = [table_of(op, self.coefficients) for op in ops if isinstance(op, (Lut, LutSoftmax))]
        runs = joined(tables, CHIP.alignment, CHIP.word * CHIP.most_size)
        self._joined.append({place: run for run in runs for place, _ in tables if run[0] <= place < sum(run)})

    def end_of_run(self) -> None:
        self._joined = self._joined[1:]

    def fresh(self) -> None:
        super().fresh()
        self._tables = TableSpace()

    # -- commands ------------------------------------------------------------------------------------------------------
    def tiu(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> None:
        """Add a TIU command. Ranges are bytes within a lane, or addresses from `CHIP.l2_window` for L2 tables."""
        self.ordered(Engine.TIU, reads, writes, lambda after: self._builder.add(Engine.TIU, after=after, **fields))

    def gdma(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> None:
        """Add a GDMA command; ranges as for `tiu`, global memory needs none."""
        self.ordered(Engine.GDMA, reads, writes, lambda after: self._builder.add(Engine.GDMA, after=after, **fields))

    def table(self, place: int, size: int) -> int:
        """Offset in L2 of the table of `size` bytes (whole words) that starts at byte `place` of the coefficients.

        It is loaded unless this program has it there already.
        """
        start, whole = self._joined[0].get(place, (place, size)) if self._joined else (place, size)
        if (start, whole) != (place, size):
            return self.table(start, whole) + place - start
        offset, fresh = self._tables.place((place, size), size)
        if fresh:
            address, dims = CHIP.l2_window + offset, (1, 1, 1, size // 4)
            steps = dense_strides(dims)
            target = Side(address, dims, steps, ((address, address + size),))
            transfer(self, Direction.SYSTEM_TO_SYSTEM, Side(self.coefficient(place), dims, steps), target)
        return offset

    def own_table(self, table: OwnTable) -> int:
        """It is loaded with the others of its data unless this program has them there already."""
        return self.table(self.coefficients.constant(table.data), len(table.data)) + table.first

    # -- moves ---------------------------------------------------------------------------------------------------------
    def move(self, source: Side, target: Side, item: int) -> None:
        """See `StridedMoves`; strides of 0 repeat, along w they are at most 4095."""
        transfer(self, _DIRECTIONS[is_local(source.address), is_local(target.address)], source, target, item)

    def fill_side(self, target: Side, item: int, bits: int) -> None:
        local = is_local(target.address)
        fill(self, _DIRECTIONS[local, local], target, item, bits)

    def load_words(self, source: int, dtype: str, shape: Shape, strides: Strides, address: int) -> None:
        """Load elements as words: bytes become floats, of halfwords only the low half of a word is written."""
        if dtype in _BYTES:
            inner = in_lane(address, shape, CHIP.aligned_strides(shape), CHIP.plane(address, shape))
            convert(self, Side(source, shape, strides), inner, _BYTES[dtype])
        else:
            self.load_low(source, 2 if dtype in ("i16", "u16") else 4, shape, strides, address)

    def load_matrix(self, source: int, pitch: int, target: Matrix, transposed: bool = False) -> None:
        """Rows lie `pitch` elements apart, columns do when `transposed`."""
        load_matrix(self, source, pitch, target, transposed)

    def store_matrix(self, target: int, pitch: int, source: Matrix) -> None:
        store_matrix(self, target, pitch, source)

    def lane_address(self, offset: int, lane: int) -> int:
        return local_address(offset, lane)

    @staticmethod
    def place_neurons(commands: bytes, start: int) -> bytes:
        if not commands:
            return commands
        columns = GDMA.decode(np.frombuffer(commands, np.uint8))
        for side in ("src", "dst"):
            address = columns[f"{side}_addr_lo"] | columns[f"{side}_addr_hi"] << 32
            moved = np.where(address >= NEURON_VIRTUAL, address - NEURON_VIRTUAL + start, address)
            columns[f"{side}_addr_lo"], columns[f"{side}_addr_hi"] = moved & 0xFFFF_FFFF, moved >> 32
        return GDMA.encode(columns).tobytes()


_BYTES = {"i8": DataFormat.INT8, "u8": DataFormat.UINT8, "bool": DataFormat.UINT8}
_DIRECTIONS = {
    (False, False): Direction.SYSTEM_TO_SYSTEM,
    (False, True): Direction.SYSTEM_TO_LOCAL,
    (True, False): Direction.LOCAL_TO_SYSTEM,
    (True, True): Direction.LOCAL_TO_LOCAL,
}
"""By whether source and target are local."""
