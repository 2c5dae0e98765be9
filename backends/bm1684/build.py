"""The instruction builder kernels emit through: addresses, waits, and moves between global and local memory.

Global tensors are dense arrays of their element type. In local memory 8-bit and 16-bit feature maps are packed, four or
two images to a word (bm1684.md 4.2): they are moved with one command per image slot.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bmcompiler.backends.bm168x.build import NEURON_VIRTUAL, FamilyBuild
from bmcompiler.backends.bm1684.builder import CommandBuilder
from bmcompiler.backends.bm1684.chip import CHIP, is_local, local_address
from bmcompiler.backends.bm1684.instructions.matrix import load_matrix, store_matrix
from bmcompiler.backends.bm1684.instructions.transfers import (
    FORMAT_OF_SIZE,
    Side,
    convert,
    fill,
    in_lane,
    side_fields,
    transfer,
)
from bmcompiler.backends.bm1684.isa import GDMA, DataFormat, Direction, Engine
from bmcompiler.backends.bm1684.lane_instructions import LaneInstructions
from bmcompiler.backends.bm1684.tables import TableSpace
from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.matrices import Matrix
from bmcompiler.codegen.build import Box, dense_strides, extents
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.hazards import Range
from bmcompiler.codegen.memory import MemoryPlan

__all__ = [
    "FORMAT_OF_SIZE",
    "NEURON_VIRTUAL",
    "Box",
    "Build",
    "compact_bytes",
    "extents",
    "lane_bytes",
    "place_neurons",
    "side_fields",
    "word_shape",
]

word_shape, lane_bytes, compact_bytes = CHIP.words_of, CHIP.aligned_bytes, CHIP.compact_bytes


class Build(LaneInstructions, FamilyBuild[CommandBuilder], LaneBuild):
    """One program under construction; `serial` makes every command wait for all before it."""

    first_address = CHIP.program_base

    def __init__(self, plan: MemoryPlan, coefficients: Coefficients, serial: bool = False) -> None:
        super().__init__(plan, coefficients, CommandBuilder(), serial)

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
        offset, fresh = self._tables.place((place, size), size)
        if fresh:
            address, dims = CHIP.l2_window + offset, (1, 1, 1, size // 4)
            steps = dense_strides(dims)
            target = Side(address, dims, steps, ((address, address + size),))
            transfer(self, Direction.SYSTEM_TO_SYSTEM, Side(self.coefficient(place), dims, steps), target)
        return offset

    # -- moves ---------------------------------------------------------------------------------------------------------
    def move(self, source: Side, target: Side, item: int) -> None:
        """See `StridedMoves`; strides of 0 repeat, along w they are at most 4095."""
        transfer(self, _DIRECTIONS[is_local(source.address), is_local(target.address)], source, target, item)

    def fill_side(self, target: Side, item: int, bits: int) -> None:
        """See `StridedMoves`."""
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
        """Rows go `pitch` elements apart."""
        store_matrix(self, target, pitch, source)

    def lane_address(self, offset: int, lane: int) -> int:
        """In the window of local memory."""
        return local_address(offset, lane)


_BYTES = {"i8": DataFormat.INT8, "u8": DataFormat.UINT8, "bool": DataFormat.UINT8}
_DIRECTIONS = {
    (False, False): Direction.SYSTEM_TO_SYSTEM,
    (False, True): Direction.SYSTEM_TO_LOCAL,
    (True, False): Direction.LOCAL_TO_SYSTEM,
    (True, True): Direction.LOCAL_TO_LOCAL,
}
"""By whether source and target are local."""


def place_neurons(commands: bytes, start: int) -> bytes:
    """GDMA commands with their virtual neuron addresses moved to the real start of neuron memory."""
    if not commands:
        return commands
    columns = GDMA.decode(np.frombuffer(commands, np.uint8))
    for side in ("src", "dst"):
        address = columns[f"{side}_addr_lo"] | columns[f"{side}_addr_hi"] << 32
        moved = np.where(address >= NEURON_VIRTUAL, address - NEURON_VIRTUAL + start, address)
        columns[f"{side}_addr_lo"], columns[f"{side}_addr_hi"] = moved & 0xFFFF_FFFF, moved >> 32
    return GDMA.encode(columns).tobytes()
