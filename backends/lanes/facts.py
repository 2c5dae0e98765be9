"""Facts of a chip that kernels for lanes need: sizes in bytes unless a name says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bmcompiler.chip import Dims, LaneChip, align_up
from bmcompiler.codegen.strided_copy import CopyLimits

Shape = Dims
Strides = Dims
Range = tuple[int, int]
"""Bytes [first, end) of a lane."""


@dataclass(frozen=True)
class LineCells:
    """About how long commands take, in units of their own: which convolutions are computed by cells of two results.

    Attributes:
        pixels: results of a channel that a lane makes at once: a group.
        channel, tap: of a group and a position of the window of a convolution: for each input channel, and besides.
        single, pair: of a group of an element-wise command with one tensor, and with two. start: of a command.
    """

    pixels: int
    channel: int
    tap: int
    single: int
    pair: int
    start: int

    def groups(self, pixels: int) -> int:
        """Of so many results of a channel."""
        return -(-pixels // self.pixels)


@dataclass(frozen=True)
class LaneFacts(LaneChip):
    """A chip with lanes as shared kernels see it; the chip's own class adds its address map.

    Elements that are smaller than `word` share words with those of other images: image n of a feature map lies in
    slot n mod (word / item) of its word. With a word of one byte each element stands for itself.

    Attributes:
        execution_units: elements of a word that a lane works on at once.
        word: what image slots share.
        most_images, most_channels, most_size, most_depth: what the fields of one command hold: images, output channels
            (whole rounds of lanes), rows or columns, and input channels of a convolution.
        most_pad, most_step: zeros on each side that windows add, and their steps.
        idle_depths: bytes of an element -> numbers of input channels that take as long as many more.
        reserved: bytes at the end of each lane that the chip's builder needs for itself.
        share_bytes: of weights of a convolution in a lane that arrive together; the channels of a share are summed
            while the next one arrives. 0: all arrive together.
        most_item: bytes of the largest elements that commands copy inside local memory, at least a word.
        copy_limits: of a command that copies inside global memory.
        least_run: bytes that a run of consecutive bytes in a lane costs at least.
        word_sums: whether words are added as integers; division and lookups then take long beside it.
        own_tables: whether programs bring tables of 256 words, and a lookup takes no longer than a sum.
        constant_terms: whether series have one, and programs bring series.
        winograd: whether dense convolutions of floats with windows of 3 x 3 are computed by Winograd's algorithm.
        line_cells: how convolutions are judged for Winograd's algorithm along one axis; None: never.
        command_bytes: that cross the bus in the time in which a transfer starts.
        transposes: whether a command of the execution units makes channels of columns and columns of channels.
        rows_in_lanes: whether products of matrices have them so, that other ops do well to keep them there, too.
        byte_floats: where lookups find the floats of all unsigned bytes and those of all signed ones.
    """

    execution_units: int
    lmem_banks: int
    lmem_bank_size: int
    word: int
    most_images: int
    most_channels: int
    most_size: int
    most_depth: int
    most_pad: int
    most_step: int
    copy_limits: CopyLimits
    idle_depths: Mapping[int, Sequence[int]] = field(default_factory=dict, hash=False)
    reserved: int = 0
    most_item: int = 1
    share_bytes: int = 0
    least_run: int = 128
    word_sums: bool = False
    own_tables: bool = False
    constant_terms: bool = False
    winograd: bool = False
    line_cells: LineCells | None = None
    command_bytes: int = 1 << 14
    transposes: bool = False
    rows_in_lanes: bool = False
    byte_floats: tuple[int, int] | None = None

    @property
    def tile_bytes(self) -> int:
        """Bytes of a lane that tiles may take."""
        return self.lmem_size - self.reserved

    # -- layouts -------------------------------------------------------------------------------------------------------
    def image_slots(self, item: int) -> int:
        """Images that share a word of `item`-byte elements."""
        return max(self.word // item, 1)

    def words_of(self, shape: Shape, item: int = 4) -> Shape:
        """What commands on whole words see of a feature map: word-images, c, h, w."""
        n, c, h, w = shape
        return -(-n // self.image_slots(item)), c, h, w

    def word_item(self, item: int) -> int:
        """Bytes of the words of a feature map of `item`-byte elements."""
        return max(self.word, item)

    def repeated(self, bits: int, item: int) -> int:
        """The word whose elements of `item` bytes are all `bits`."""
        return int.from_bytes((bits & (1 << 8 * item) - 1).to_bytes(item, "little") * self.image_slots(item), "little")

    def channel_rows(self, lane: int, channels: int) -> int:
        """Rows of channels in each lane when channel 0 is in `lane`."""
        return -(-(lane + channels) // self.lanes)

    def aligned_strides(self, shape: Shape, lane: int = 0, item: int = 4) -> Strides:
        """Strides (n, c, h, w) of a feature map of words of `item` bytes, in words: its channels begin aligned."""
        _, c, h, w = shape
        channel = align_up(h * w, self.alignment // item)
        return self.channel_rows(lane, c) * channel, channel, w, 1

    def compact_strides(self, shape: Shape, lane: int = 0) -> Strides:
        """Strides (n, c, h, w), in elements, of weights, biases and per-channel vectors: no gaps between channels."""
        _, c, h, w = shape
        return self.channel_rows(lane, c) * h * w, h * w, w, 1

    def aligned_bytes(self, shape: Shape, item: int = 4) -> int:
        """Bytes per lane of a feature map in its aligned layout; the space of a partial group of images is whole."""
        return self.lane_bytes(self.words_of(shape, item), self.word_item(item))

    def compact_bytes(self, shape: Shape, item: int = 4) -> int:
        """Bytes per lane of weights, biases and per-channel vectors."""
        n, c, h, w = shape
        return n * -(-c // self.lanes) * h * w * item

    def plane(self, address: int, shape: Shape, item: int = 4) -> Range:
        """The bytes of an aligned feature map at `address`."""
        return address, address + self.aligned_bytes(shape, item)

    def fits_fields(self, shape: tuple[int, ...]) -> bool:
        """Whether a feature map (n, c, h, w) is small enough for one command."""
        n, c, *sizes = shape
        return n <= self.most_images and c <= self.most_channels and max(sizes) <= self.most_size


def frame_parts(words: Shape, frame: tuple[int, int, int, int]) -> list[tuple[int, int, Shape]]:
    """(first row, first column, shape) of what is filled for a frame of a map of words; all of it where little is left.

    Args: frame: (top, bottom, left, right).
    """
    n, c, h, w = words
    top, bottom, left, right = frame
    if top + bottom >= h or left + right >= w:
        return [(0, 0, words)]
    parts = (
        (0, 0, (n, c, top, w)),
        (h - bottom, 0, (n, c, bottom, w)),
        (0, 0, (n, c, h, left)),
        (0, w - right, (n, c, h, right)),
    )
    return [part for part in parts if all(part[2])]
