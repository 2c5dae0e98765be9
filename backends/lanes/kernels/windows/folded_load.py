"""Rows of windows become input channels behind a load of the map as it lies.

A load that folds them reads each row by itself, as often as windows see it, and a short run takes as long as a long
one. Where that costs more, the map is loaded in long runs and folded by transfers inside local memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from bmcompiler.backends.lanes.build import Frame, LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import dims4, item_bytes
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import dense_strides, extents
from bmcompiler.codegen.kernels import runs_of
from bmcompiler.codegen.tiling import Box, Buffer
from bmcompiler.ops.layers.nn import Convolution

_PART = 2
"""A map takes at most one in so many bytes of a lane: it is there for its load alone, and larger ones have long rows.
"""


class _Map(NamedTuple):
    """What the windows of a tile, or of a band of it, see of the input: a box, and the rows and columns around it."""

    box: Box
    frame: Frame


class FoldedLoad:
    """The input of a tile, in one band or several, folded behind its load.

    Args:
        slides: of the bands, each with folded rows. border: the bits of an element of the padding.
    """

    def __init__(self, machine: LaneMachine, op: Convolution, slides: Sequence[Slide], border: int) -> None:
        self.machine, self.chip, self.op, self.border = machine, machine.chip, op, border
        self.item, self.taps = item_bytes(op.input), int(op.weight.shape[2])
        self.maps = [self._map(slide) for slide in slides]
        bands, (n, depth, rows, columns) = len(slides), slides[0].shape
        self.folded: Shape = (max(n, bands), depth, rows, columns)
        self.whole: Shape = (max(n, bands), op.input.shape[1], self._height(rows), columns)

    def _height(self, rows: int) -> int:
        """Rows of the input around those that so many rows of windows see."""
        return int((rows - 1) * self.op.strides[0] + (self.taps - 1) * self.op.dilations[0] + 1)

    def _map(self, slide: Slide) -> _Map:
        images, _, (y0, y1), columns = slide.source
        (_, channels, height, _), lo = dims4(self.op.input), y0 * self.op.strides[0] - self.op.pads[0]
        hi = lo + self._height(y1 - y0)
        rows = min(max(lo, 0), height), max(min(hi, height), 0)
        return _Map((images, (0, channels), rows, columns), (rows[0] - lo, hi - rows[1], *slide.frame[2:]))

    @property
    def fits(self) -> bool:
        """Whether there is room for the map beside what becomes of it, and each band sees some of it."""
        size, fields = self.chip.aligned_bytes(self.whole, self.item), self.chip.words_of(self.whole, self.item)
        seen = all(lo < hi for one in self.maps for lo, hi in one.box)
        return seen and size * _PART <= self.machine.tiler.lane_bytes and self.chip.fits_fields(fields)

    @property
    def cycles(self) -> int:
        """Of the loads and the transfers behind them."""
        source, item, slots = dims4(self.op.input), self.item, self.chip.image_slots(self.item)
        found = 0
        for (images, *part), _ in self.maps:
            count = images[1] - images[0]
            each = -(-count // slots)
            runs = runs_of(source, ((0, 1), *part)).outer * each
            nbytes = each * item * prod(hi - lo for lo, hi in part)
            found += min(count, slots) * self.machine.cycles.load(runs, nbytes // runs)
        copied = [self._copied(taps) for _, taps in self._steps]
        return found + sum(self.machine.cycles.local_copy(shape, self.chip.word_item(item)) for shape in copied)

    @property
    def _steps(self) -> list[tuple[int, int]]:
        """(first row of the window, rows) of the transfers: one does for all where words hold one image."""
        alone = self.chip.words_of(self.whole, self.item)[0] == 1
        return [(0, self.taps)] if alone else [(tap, 1) for tap in range(self.taps)]

    def _copied(self, taps: int) -> Shape:
        images, channels, _, _ = self.chip.words_of(self.whole, self.item)
        return images * taps, channels, *self.folded[2:]

    def buffer(self, axes: str) -> Buffer:
        """The buffer of the tile."""
        size, area = (self.chip.aligned_bytes(shape, self.item) for shape in (self.folded, self.whole))

        def load(build: LaneBuild, address: int) -> None:
            self._load(build, address + size)
            self._fold(build, address + size, address)

        moved = round(self.cycles * self.machine.cycles.bytes_per_cycle)
        return Buffer(size + area, axes, moved, load, loads=len(self.maps) + len(self._steps), spare=area)

    def _load(self, build: LaneBuild, address: int) -> None:
        source, item, strides = self.op.input, self.item, dense_strides(dims4(self.op.input))
        frame = tuple(map(max, zip(*(one.frame for one in self.maps))))
        if any(frame):
            build.fill_frame(address, self.whole, item, self.border, frame)
        for slot, (box, around) in enumerate(self.maps):
            start = sum(lo * stride for (lo, _), stride in zip(box, strides))
            build.load(build.source(source) + start * item, extents(box), strides, item, address + slot, around)

    def _fold(self, build: LaneBuild, source: int, target: int) -> None:
        chip, op, word = self.chip, self.op, self.chip.word_item(self.item)
        before, after = (chip.words_of(shape, self.item) for shape in (self.whole, self.folded))
        by, to = (chip.aligned_strides(shape, item=word) for shape in (before, after))
        read, written = chip.plane(source, self.whole, self.item), chip.plane(target, self.folded, self.item)
        for tap, taps in self._steps:
            row, lane = divmod(tap * before[1], chip.lanes)
            start = source + word * tap * op.dilations[0] * by[2]
            steps = (by[0] if taps == 1 else op.dilations[0] * by[2], by[1], op.strides[0] * by[2], 1)
            shape = self._copied(taps)
            build.transfer(
                Words(start, shape, steps, within=read, item=word),
                Words(target + word * row * to[1], (after[0], taps * before[1], *shape[2:]), to, lane, written, word),
            )
