"""Moves between global and local memory as strided copies: what builds of chips with a strided GDMA share.

Small elements share the words of local memory with those of other images on chips that pack them (`LaneFacts.word`):
such maps are moved with one command per image slot.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from bmcompiler.backends.lanes.build import Frame
from bmcompiler.backends.lanes.facts import LaneFacts, Range, Shape, Strides, frame_parts
from bmcompiler.backends.lanes.operands import Words, bytes_of, steps_of
from bmcompiler.codegen.build import BaseBuild, Box, dense_strides, extents, start_of
from bmcompiler.ir import Value


class Side(NamedTuple):
    """One side of a transfer.

    Attributes:
        address: as the GDMA sees it, of global memory, L2 or local memory.
        shape, strides: in elements; a source stride of 0 repeats.
        touched: bytes of a lane, or of L2, that count as touched; () in global memory.
    """

    address: int
    shape: Shape
    strides: Strides
    touched: tuple[Range, ...] = ()


class StridedMoves(BaseBuild):
    """Base of builds: all moves by `move` and `fill_side` of the chip."""

    chip: LaneFacts

    @abstractmethod
    def move(self, source: Side, target: Side, item: int) -> None:
        """Add a command that copies elements of `item` bytes in order; one shape on both sides."""

    @abstractmethod
    def fill_side(self, target: Side, item: int, bits: int) -> None:
        """Add a command that fills elements of `item` bytes with the low bits of a constant."""

    @abstractmethod
    def lane_address(self, offset: int, lane: int) -> int:
        """What the GDMA calls byte `offset` of a lane."""

    @abstractmethod
    def source(self, value: Value) -> int:
        """Address to load a value from."""

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
        frame: Frame = (0, 0, 0, 0),
        channels: tuple[int, int] = (0, 0),
    ) -> None:
        """See `LaneTransfers`; elements that are smaller than a word are packed."""
        chip, (n, c, h, w), word = self.chip, shape, self.chip.word_item(item)
        top, bottom, left, right = frame
        whole = (n, channels[0] + c + channels[1], h + top + bottom, w + left + right)
        row, lane = divmod(channels[0], chip.lanes)
        step = chip.aligned_strides(chip.words_of(whole, item), item=word)[1]
        first = address + word * (row * step + top * whole[3] + left)
        for k, (images, *_), local in self._slots(whole, item):
            part = (images, c, h, w)
            outer = Side(source + k * strides[0] * item, part, (strides[0] * (word // item), *strides[1:]))
            place = self.lane_address(first, lane) + k * item
            self.move(outer, Side(place, part, local, (chip.plane(address, whole, item),)), item)

    def store(self, target: int, shape: Shape, strides: Strides, item: int, address: int) -> None:
        """The way back of `load`."""
        chip, word = self.chip, self.chip.word_item(item)
        for k, part, local in self._slots(shape, item):
            place = self.lane_address(address, 0) + k * item
            outer = Side(target + k * strides[0] * item, part, (strides[0] * (word // item), *strides[1:]))
            self.move(Side(place, part, local, (chip.plane(address, shape, item),)), outer, item)

    def _slots(self, shape: Shape, item: int) -> Iterator[tuple[int, Shape, Strides]]:
        """(image slot, shape of its images, strides in local memory in elements) of a feature map."""
        chip, (count, c, h, w), word = self.chip, shape, self.chip.word_item(item)
        slots = word // item
        n, *others = (stride * slots for stride in chip.aligned_strides(chip.words_of(shape, item), item=word))
        for k in range(min(count, slots)):
            yield k, (-(-(count - k) // slots), c, h, w), (n, *others)  # type: ignore[misc]

    # -- words ---------------------------------------------------------------------------------------------------------
    def load_low(self, source: int, item: int, shape: Shape, strides: Strides, address: int) -> None:
        """Load elements of `item` bytes as they are into the low bytes of words, the way back of `store_words`."""
        self.move(Side(source, shape, strides), self._low(address, item, shape), item)

    def store_words(self, target: int, item: int, shape: Shape, strides: Strides, address: int) -> None:
        """Store the low `item` bytes of each word of an aligned tile."""
        self.move(self._low(address, item, shape), Side(target, shape, strides), item)

    def load_part(self, source: int, strides: Strides, target: Words, item: int = 4) -> None:
        """See `LaneTransfers`."""
        self.move(Side(source, target.shape, strides), self._words(target, item), item)

    def store_part(self, target: int, strides: Strides, source: Words) -> None:
        """The way back of `load_part`."""
        self.move(self._words(source, 4), Side(target, source.shape, strides), 4)

    def _words(self, words: Words, item: int) -> Side:
        """The low `item` bytes of words."""
        n, c, h, w = (4 // item * step for step in steps_of(self.chip, words))
        place = self.lane_address(words.address, words.lane)
        return Side(place, words.shape, (n, c, h, w), (bytes_of(self.chip, words),))

    def _low(self, address: int, item: int, shape: Shape) -> Side:
        """The low `item` bytes of each word of an aligned tile."""
        n, c, h, w = (4 // item * step for step in self.chip.aligned_strides(shape))
        touched = address, address + self.chip.lane_bytes(shape, 4)
        return Side(self.lane_address(address, 0), shape, (n, c, h, w), (touched,))

    # -- compact tensors and global moves ------------------------------------------------------------------------------
    def load_compact(
        self, source: int, shape: Shape, item: int, address: int, strides: Strides | None = None, lane: int = 0
    ) -> None:
        """Load weights, a bias or per-channel values (dense unless `strides` say otherwise) without gaps.

        lane: that of the first channel.
        """
        touched = (address, address + self.chip.compact_bytes(shape, item))
        target = Side(self.lane_address(address, lane), shape, self.chip.compact_strides(shape, lane), (touched,))
        self.move(Side(source, shape, strides or dense_strides(shape)), target, item)

    def load_spaced(self, source: int, shape: tuple[int, int, int], pitch: int, address: int, lane: int) -> None:
        """See `LaneBuild`."""
        lanes, rows, width = shape
        outer, sizes = Side(source, (1, lanes, rows, width), (0, rows * width, width, 1)), (1, lanes, rows, width)
        local = self.lane_address(address, lane)
        self.move(outer, Side(local, sizes, (0, rows * pitch, pitch, 1), ((address, address + rows * pitch),)), 1)

    def copy_global(self, target: int, source: int, item: int, shape: Shape, to: Strides, by: Strides) -> None:
        """Copy inside global memory; strides in elements: `to` of the target, `by` of the source."""
        self.move(Side(source, shape, by), Side(target, shape, to), item)

    def fill_global(self, target: int, item: int, shape: Shape, strides: Strides, bits: int) -> None:
        """Fill a strided part of global memory with the low bits of a constant."""
        self.fill_side(Side(target, shape, strides), item, bits)

    def fill_local(self, address: int, shape: Shape, item: int, bits: int) -> None:
        """Fill an aligned local tensor; `bits` is one element, all image slots get it."""
        self._fill_parts(address, shape, item, bits, [(0, 0, self.chip.words_of(shape, item))])

    def fill_frame(self, address: int, shape: Shape, item: int, bits: int, frame: Frame) -> None:
        """Fill (top, bottom, left, right) rows and columns of an aligned local tensor as `fill_local` does."""
        self._fill_parts(address, shape, item, bits, frame_parts(self.chip.words_of(shape, item), frame))

    def _fill_parts(
        self, address: int, shape: Shape, item: int, bits: int, parts: list[tuple[int, int, Shape]]
    ) -> None:
        chip, word = self.chip, self.chip.word_item(item)
        words, touched, pattern = (
            chip.words_of(shape, item),
            chip.plane(address, shape, item),
            chip.repeated(bits, item),
        )
        strides = chip.aligned_strides(words, item=word)
        for row, column, part in parts:
            place = self.lane_address(address + word * (row * words[3] + column), 0)
            self.fill_side(Side(place, part, strides, (touched,)), word, pattern)
