"""The instruction builder kernels emit through: addresses, waits, and moves between global and local memory.

Global tensors are dense arrays of their element type. In local memory 8-bit and 16-bit feature maps are packed, four or
two images to a word (bm1684.md 4.2): they are moved with one command per image slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bmcompiler.backends.bm168x.build import NEURON_VIRTUAL, FamilyBuild
from bmcompiler.backends.bm1684.builder import CommandBuilder
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.instructions.transfers import (
    FORMAT_OF_SIZE,
    Side,
    fill,
    in_lane,
    side_fields,
    transfer,
)
from bmcompiler.backends.bm1684.isa import GDMA, Direction, Engine
from bmcompiler.backends.bm1684.lane_instructions import LaneInstructions
from bmcompiler.backends.bm1684.tables import TableSpace
from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape, Strides, frame_parts
from bmcompiler.codegen.build import Box, dense_strides, extents, start_of
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.hazards import Range
from bmcompiler.codegen.memory import MemoryPlan
from bmcompiler.ir import Value

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

    # -- feature maps --------------------------------------------------------------------------------------------------
    def load_box(self, value: Value, view: Shape, box: Box, address: int) -> None:
        """Load the `box` of a value seen as `view` (N, C, H, W) into an aligned local tensor at `address`."""
        strides = dense_strides(view)
        item = value.type.numpy.itemsize
        self.load(self.source(value) + start_of(box, view) * item, extents(box), strides, item, address)

    def store_box(self, value: Value, view: Shape, box: Box, address: int) -> None:
        """The way back of `load_box`."""
        strides = dense_strides(view)
        item = value.type.numpy.itemsize
        self.store(self.neuron(value) + start_of(box, view) * item, extents(box), strides, item, address)

    def load(
        self,
        source: int,
        shape: Shape,
        strides: Strides,
        item: int,
        address: int,
        frame: tuple[int, int, int, int] = (0, 0, 0, 0),
        channels: tuple[int, int] = (0, 0),
    ) -> None:
        """Load a strided global tensor into an aligned local one.

        Args:
            source: global address; strides: (n, c, h, w) in elements, 0 repeats (w: at most 4095).
            item: bytes of an element; 1 and 2 are packed into words.
            frame: (top, bottom, left, right) rows and columns of the local tensor around what is loaded.
            channels: how many of its channels come before and after.
        """
        n, c, h, w = shape
        top, bottom, left, right = frame
        whole = (n, channels[0] + c + channels[1], h + top + bottom, w + left + right)
        row, lane = divmod(channels[0], CHIP.lanes)
        step = CHIP.aligned_strides(word_shape(whole, item))[1]
        first = address + 4 * (row * step + top * whole[3] + left)
        for k, (images, *_), local in _slots(whole, item):
            part = (images, c, h, w)
            outer = Side(source + k * strides[0] * item, part, (strides[0] * (4 // item), *strides[1:]))
            inner = in_lane(first, part, local, CHIP.plane(address, whole, item), lane=lane, byte=k * item)
            transfer(self, Direction.SYSTEM_TO_LOCAL, outer, inner, item)

    def store(self, target: int, shape: Shape, strides: Strides, item: int, address: int) -> None:
        """The way back of `load`."""
        for k, part, local in _slots(shape, item):
            inner = in_lane(address, part, local, CHIP.plane(address, shape, item), byte=k * item)
            outer = Side(target + k * strides[0] * item, part, (strides[0] * (4 // item), *strides[1:]))
            transfer(self, Direction.LOCAL_TO_SYSTEM, inner, outer, item)

    # -- compact tensors and global moves ------------------------------------------------------------------------------
    def load_compact(self, source: int, shape: Shape, item: int, address: int, strides: Strides | None = None) -> None:
        """Load weights, a bias or per-channel values (dense unless `strides` say otherwise) without gaps."""
        touched = (address, address + compact_bytes(shape, item))
        target = in_lane(address, shape, CHIP.compact_strides(shape), touched)
        outer = Side(source, shape, strides or dense_strides(shape))
        transfer(self, Direction.SYSTEM_TO_LOCAL, outer, target, item)

    def copy_global(self, target: int, source: int, item: int, shape: Shape, to: Strides, by: Strides) -> None:
        """Copy inside global memory; strides in elements: `to` of the target, `by` of the source (w: at most 4095)."""
        transfer(self, Direction.SYSTEM_TO_SYSTEM, Side(source, shape, by), Side(target, shape, to), item)

    def fill_global(self, target: int, item: int, shape: Shape, strides: Strides, bits: int) -> None:
        """Fill a strided part of global memory with the low bits of a constant."""
        fill(self, Direction.SYSTEM_TO_SYSTEM, Side(target, shape, strides), item, bits)

    def fill_local(self, address: int, shape: Shape, item: int, bits: int) -> None:
        """Fill an aligned local tensor; `bits` is one element, all image slots get it."""
        words = word_shape(shape, item)
        self._fill_words(
            address, (0, lane_bytes(shape, item)), words, CHIP.aligned_strides(words), CHIP.repeated(bits, item)
        )

    def fill_frame(self, address: int, shape: Shape, item: int, bits: int, frame: tuple[int, int, int, int]) -> None:
        """Fill (top, bottom, left, right) rows and columns of an aligned local tensor as `fill_local` does."""
        words, end, pattern = word_shape(shape, item), lane_bytes(shape, item), CHIP.repeated(bits, item)
        for row, column, part in frame_parts(words, frame):
            start = 4 * (row * words[3] + column)
            self._fill_words(address + start, (-start, end - start), part, CHIP.aligned_strides(words), pattern)

    def _fill_words(self, address: int, within: Range, shape: Shape, strides: Strides, bits: int) -> None:
        """Fill words from `address` on; `within`: the bytes of the tensor they are part of, counted from there."""
        touched = (address + within[0], address + within[1])
        fill(self, Direction.LOCAL_TO_LOCAL, in_lane(address, shape, strides, touched), 4, bits)


def _slots(shape: Shape, item: int) -> Iterator[tuple[int, Shape, Strides]]:
    """(image slot, shape of its images, strides in local memory in elements) of a feature map."""
    n, c, h, w = shape
    slots = 4 // item
    words = CHIP.aligned_strides(word_shape(shape, item))
    local: Strides = tuple(stride * slots for stride in words)  # type: ignore[assignment]
    for k in range(min(n, slots)):
        yield k, (-(-(n - k) // slots), c, h, w), local


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
