"""Boxes of values in local memory: which lies in which, where, and how one becomes the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from bmcompiler.chip import Dims, LaneChip
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Box, Contents
from bmcompiler.ir import Value

RANK = 4


def whole_box(shape: Sequence[int]) -> Box:
    """The box that is all of a tensor."""
    return tuple((0, size) for size in shape)


def four_axes(shape: Sequence[int]) -> Dims:
    """A shape as groups cut it: what has more or fewer than four axes is one matrix, of rows of its last axis."""
    n, c, h, w = shape if len(shape) == RANK else (1, 1, prod(shape[:-1]), prod(shape[-1:]))
    return n, c, h, w


def whole_of(part: Contents) -> Contents:
    """The whole that `part` is a box of."""
    if part.box is None:
        return part
    n, c, h, w = as_shape(part.layout)
    return Contents(part.value, (n, c, h * w))


def box_of(contents: Contents) -> Box | None:
    """What is held of a value, as a box of its `four_axes`; None for layouts that do not say that.

    A layout is the value's own, or has its matrices as images and their rows as channels.
    """
    n, c, h, w = shape = four_axes(contents.value.shape)
    if contents.box is None:
        return whole_box(shape) if contents.layout in ((n, c, h * w), (n * c, h, w)) else None
    if contents.layout == shape:
        return contents.box
    if contents.layout != (n * c, h, 1, w):
        return None
    (first, end), rows, _, columns = contents.box
    alone = first // c == (end - 1) // c
    channels = (first % c, (end - 1) % c + 1) if alone else (0, c)
    return (first // c, (end - 1) // c + 1), channels, rows, columns


def rows_of(shape: Sequence[int], box: Box, parts: bool = False) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """(matrices, rows of each) of a box of a shape of four axes; None where they do not follow each other.

    Args: parts: of rows will do, too.
    """
    (n0, n1), (c0, c1), rows, columns = box
    _, c, _, w = shape
    if not (parts or columns == (0, w)) or (n1 - n0 > 1 and (c0, c1) != (0, c)):
        return None
    return (n0 * c + c0, (n1 - 1) * c + c1), rows


def as_shape(layout: Hashable) -> tuple[int, ...]:
    """The sizes that a layout of feature maps consists of; empty for other layouts."""
    return layout if isinstance(layout, tuple) else ()


def within(inner: Box, outer: Box) -> bool:
    """Whether one box lies in another."""
    return all(o[0] <= i[0] and i[1] <= o[1] for i, o in zip(inner, outer))


def joined(a: Box, b: Box) -> Box:
    """The smallest box around two."""
    return tuple((min(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b))


def inside(inner: Contents, outer: Contents) -> bool:
    """Whether all of `inner` can be taken from `outer`: its layout is the same, its box lies within."""
    if inner == outer:
        return True
    if inner.box is None or inner.value is not outer.value:
        return False
    if outer.box is None:
        return outer == whole_of(inner)
    return outer.layout == inner.layout and within(inner.box, outer.box)


@dataclass(frozen=True)
class StridedCopy:
    """A box copied between two tensors in local memory; `shape` counts stored elements, strides count bytes in a lane.

    Attributes:
        reshaped: the shape in the target, where that is another one of as many elements in the same order.
        source, target: bytes before the first element, and strides.
        source_bytes, target_bytes: what the two tensors take in a lane.
    """

    shape: Dims
    source: tuple[int, Dims]
    target: tuple[int, Dims]
    source_bytes: int
    target_bytes: int
    reshaped: Dims | None = None


class LocalCopier(ABC):
    """What a chip knows of feature maps in local memory. Raises nothing: what cannot be is None."""

    chip: LaneChip

    @abstractmethod
    def stored(self, value: Value, dims: Dims) -> tuple[Dims, int]:
        """(shape, bytes of an element) of what is stored for `dims` elements of a value, images being packed or not."""

    @abstractmethod
    def emit(self, build: Any, strided: StridedCopy, source: int, target: int) -> None:
        """Emit the copy between the tensors at two local addresses."""

    @abstractmethod
    def cycles(self, strided: StridedCopy) -> int:
        """What it takes."""

    def transfers(self, strided: StridedCopy) -> int:
        """Of its cycles those for which it needs the engine that moves data."""
        return 0

    def lane_bytes(self, contents: Contents) -> int:
        """Bytes per lane of an aligned tensor."""
        shape, item = self._stored(contents)
        return self.chip.lane_bytes(shape, item)

    def offset(self, outer: Contents, inner: Contents) -> int | None:
        """Bytes from the address of `outer` to a tensor within it that is just what `inner` would be alone."""
        if outer.box is None and inner.box is None:
            return 0 if self._lie_alike(outer, inner) else None
        place = self._place(outer, inner)
        if place is None:
            return None
        start, by = place
        (n, c, h, w), item = self._stored(inner)
        own = self.chip.strides((n, c, h, w), item)
        counts = n, -(-c // self.chip.lanes), h, w
        same = all(a == b or count == 1 for a, b, count in zip(by, own, counts))
        return start if same and start % self.chip.alignment == 0 else None

    def _lie_alike(self, a: Contents, b: Contents) -> bool:
        """Whether two layouts of a whole are one: behind images that fill their lanes the next ones follow as rows."""
        (n, c, *sizes), (m, d, *others) = self._stored(a)[0], self._stored(b)[0]
        full = all(images == 1 or rows % self.chip.lanes == 0 for images, rows in ((n, c), (m, d)))
        packed = self.images_per_element(a.value) > 1
        return a == b or (full and not packed and (n * c, sizes) == (m * d, others))

    def copy(self, source: Contents, target: Contents) -> StridedCopy | None:
        """How the smaller of two boxes gets from `source` into `target`, one of which lies within the other.

        Of two wholes, how one layout becomes the other.
        """
        if source.box is None and target.box is None:
            return self._reshape(source, target)
        inner = target if inside(target, source) else source
        a, b = self._place(source, inner), self._place(target, inner)
        if a is None or b is None:
            return None
        return StridedCopy(self._stored(inner)[0], a, b, self.lane_bytes(source), self.lane_bytes(target))

    def reshapes(self, source: Contents, target: Contents) -> bool:
        """Whether the chip can give a whole another layout."""
        return False

    def _reshape(self, source: Contents, target: Contents) -> StridedCopy | None:
        if not self.reshapes(source, target):
            return None
        (a, item), (b, _) = self._stored(source), self._stored(target)
        places = (0, self.chip.strides(a, item)), (0, self.chip.strides(b, item))
        return StridedCopy(a, *places, self.lane_bytes(source), self.lane_bytes(target), b)

    def _stored(self, contents: Contents) -> tuple[Dims, int]:
        return self.stored(contents.value, self._dims(contents))

    @staticmethod
    def _dims(contents: Contents) -> Dims:
        if contents.box is not None:
            return extents(contents.box)
        n, c, size = as_shape(contents.layout)
        return n, c, 1, size

    def _place(self, outer: Contents, inner: Contents) -> tuple[int, Dims] | None:
        """(offset, strides in bytes) of `inner` within `outer`; None where it begins inside a word or another lane."""
        if inner.box is None:
            dims, item = self._stored(outer)
            return 0, self.chip.strides(dims, item)
        view = as_shape(inner.layout)
        around = outer.box or whole_box(view)
        shape, item = self.stored(inner.value, extents(around))
        steps = self.chip.strides(shape, item)
        n, c, h, w = (lo - start for (lo, _), (start, _) in zip(inner.box, around))
        images = self.images_per_element(inner.value)
        if n % images or c % self.chip.lanes:
            return None
        position = n // images, c // self.chip.lanes, h, w
        return sum(count * step for count, step in zip(position, steps)), steps

    def images_per_element(self, value: Value) -> int:
        """Images that a stored element holds."""
        return 1

    def grain(self, value: Value) -> Dims:
        """Along which multiples of images, channels, rows and columns a value is cut."""
        return self.images_per_element(value), self.chip.lanes, 1, 1
