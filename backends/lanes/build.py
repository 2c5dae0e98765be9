"""What shared kernels emit through: the typed calls that the program under construction of every lane chip has.

Global tensors are dense arrays of their element type. Addresses in local memory are byte offsets in a lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bmcompiler.backends.lanes.facts import LaneFacts, Shape, Strides
from bmcompiler.backends.lanes.matrices import Matrix
from bmcompiler.backends.lanes.operands import Source, Words
from bmcompiler.backends.lanes.tables import AnyTable, Table
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.codegen.build import Box
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.ir import Value

ONE = 0x3F80_0000
"""The bits of 1.0."""
Frame = tuple[int, int, int, int]
"""(top, bottom, left, right) rows and columns."""


class LaneTransfers(Protocol):
    """Where values lie, and moves between global and local memory."""

    coefficients: Coefficients

    @property
    def chip(self) -> LaneFacts:
        """Facts of the chip."""

    def neuron(self, value: Value) -> int:
        """Address of an activation."""

    def source(self, value: Value) -> int:
        """Address to load a value from: neuron memory, or the coefficients for constants as they stand."""

    def coefficient(self, offset: int) -> int:
        """Address of byte `offset` of the coefficients."""

    def load_box(self, value: Value, view: Shape, box: Box, address: int) -> None:
        """Load the `box` of a value seen as `view` (N, C, H, W) into an aligned local tensor."""

    def store_box(self, value: Value, view: Shape, box: Box, address: int) -> None:
        """The way back of `load_box`."""

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
        """Load a strided global tensor of `item`-byte elements into an aligned local one.

        Args:
            source: global address; strides: (n, c, h, w) in elements, 0 repeats.
            frame: rows and columns of the local tensor around what is loaded.
            channels: how many of its channels come before and after.
        """

    def store(self, target: int, shape: Shape, strides: Strides, item: int, address: int) -> None:
        """The way back of `load`."""

    def load_compact(
        self, source: int, shape: Shape, item: int, address: int, strides: Strides | None = None, lane: int = 0
    ) -> None:
        """Load weights, a bias or per-channel values (dense unless `strides` say otherwise) without gaps.

        lane: that of the first channel.
        """

    def load_spaced(self, source: int, shape: tuple[int, int, int], pitch: int, address: int, lane: int) -> None:
        """Load dense bytes (lanes, rows, bytes of a row) so that rows lie `pitch` bytes apart, from `lane` on."""

    def load_words(self, source: int, dtype: str, shape: Shape, strides: Strides, address: int) -> None:
        """Load a strided global tensor (in elements, 0 repeats) into an aligned tile of words (`recipes.words`)."""

    def store_words(self, target: int, item: int, shape: Shape, strides: Strides, address: int) -> None:
        """Store the low `item` bytes of each word of an aligned tile."""

    def load_part(self, source: int, strides: Strides, target: Words, item: int = 4) -> None:
        """Load elements of `item` bytes of a strided global tensor into the low bytes of the words of `target`."""

    def store_part(self, target: int, strides: Strides, source: Words) -> None:
        """The way back of `load_part`."""

    def load_matrix(self, source: int, pitch: int, target: Matrix, transposed: bool = False) -> None:
        """Load a matrix of fp32; in global memory rows lie `pitch` elements apart, columns do when `transposed`."""

    def store_matrix(self, target: int, pitch: int, source: Matrix) -> None:
        """Store a matrix of fp32 to rows `pitch` elements apart."""

    def copy_global(self, target: int, source: int, item: int, shape: Shape, to: Strides, by: Strides) -> None:
        """Copy inside global memory; strides in elements: `to` of the target, `by` of the source."""

    def fill_global(self, target: int, item: int, shape: Shape, strides: Strides, bits: int) -> None:
        """Fill a strided part of global memory with the low bits of a constant."""

    def fill_local(self, address: int, shape: Shape, item: int, bits: int) -> None:
        """Fill an aligned local tensor by transfers; `bits` is one element, all image slots get it."""

    def fill_frame(self, address: int, shape: Shape, item: int, bits: int, frame: Frame) -> None:
        """Fill the rows and columns of a frame of an aligned local tensor as `fill_local` does."""


class LaneCommands(Protocol):
    """Commands on words in local memory. Which unit of the chip runs them, and in which form, is the chip's."""

    def transfer(self, source: Words, target: Words) -> None:
        """Copy in order of the elements, whatever the shapes and lanes."""

    def copy(self, source: Words, target: Words) -> None:
        """Copy within lanes; one shape."""

    def transpose(self, target: Words, source: Words) -> None:
        """target(n, c, 0, w) = source(n, w, 0, c), on chips with `LaneFacts.transposes`; only in the default layout."""
        raise TypeError(f"{type(self).__name__} transposes no matrices")

    def fill(self, target: Words, bits: int) -> None:
        """Fill by the execution units, which need not wait for what the transfers are busy with."""

    def combine(self, unit: Unit, target: Words, a: Source, b: Source) -> None:
        """target = a `unit` b: float arithmetic, or logic and shifts of bits; operands of one element repeat."""

    def assign(self, target: Words, source: Source) -> None:
        """target = source, or an immediate everywhere."""

    def select(self, unit: Unit, target: Words, a: Source, b: Source, chosen: int) -> None:
        """target = the word `chosen` where `unit` holds for a and b, else 0."""

    def choose(self, target: Words, sources: Sequence[Source]) -> None:
        """target = a > b ? c : d; only of tensors in the default layout."""

    def convert(self, unit: Unit, target: Words, source: Words) -> None:
        """A function of each word; only of tensors in the default layout."""

    def series(self, target: Words, source: Words, table: Table | int, terms: int) -> None:
        """The first terms of a power series without constant term; only of tensors in the default layout."""

    def lookup(self, target: Words, source: Words, table: AnyTable, entries: int) -> None:
        """Entry word mod `entries` of a table of the chip or the program; only in the default layout."""

    def lookup_bytes(self, target: Words, source: Words, table: AnyTable, entries: int) -> None:
        """The entry of each byte of the words of `source`, in turn, on chips with `LaneFacts.byte_floats`."""
        raise TypeError(f"{type(self).__name__} looks up no bytes")

    def pack_bytes(self, target: int, source: int, halves: int, dims: Shape, *, signed: bool, whole: bool) -> None:
        """Numbers that fit a byte, a word each, of several images as the bytes of words that images share.

        Args:
            halves: a place for as many images of bytes as there are halves of the words. whole: whether they fill
                their words; else those of signed bytes, 128 larger, are in the low halves below more than 255.
        """
        raise TypeError(f"{type(self).__name__} packs no bytes")

    def reduce(self, unit: Unit, target: Words, source: Words, geometry: Geometry, factor: int = ONE) -> None:
        """Sums of products with a float, or maxima, over windows, padded with zeros; only in the default layout."""

    def largest(self, target: Words, source: Words, geometry: Geometry, dtype: str, border: int) -> None:
        """Maxima over windows of elements of a type; border: bits of the padding, the lowest number of the type."""

    def multiply(self, target: Matrix, left: Matrix, right: Matrix, bias: Matrix | None, *, add: bool) -> None:
        """target = left @ right (+ bias), or target += left @ right."""

    def limit(self, unit: Unit, target: Words, bits: int) -> None:
        """In place: maximum or minimum of a float tensor and a constant; what activations on results need."""

    def weigh(self, target: Words, source: Words, weights: Words, add: bool) -> None:
        """target = source * weights, or target += source * weights, all with strides."""


class LaneBuild(LaneTransfers, LaneCommands, Protocol):
    """A program under construction."""
