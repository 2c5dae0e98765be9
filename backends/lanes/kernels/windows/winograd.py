"""Convolutions with a window of 3 x 3 by Winograd's F(2 x 2, 3 x 3): 16 products for 4 results instead of 36.

A cell of 2 x 2 results comes from 4 x 4 pixels d and the weights g as A^T [(G g G^T) * (B^T d B)] A, with

    B^T = 1  0 -1  0    G = 1    0    0     A^T = 1  1  1  0
          0  1  1  0        1/2  1/2  1/2         0  1 -1 -1
          0 -1  1  0        1/2 -1/2  1/2
          0  1  0 -1        0    0    1

(Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015). The products of a place of the 4 x 4 are a
1 x 1 convolution. Weights are transformed on the chip, so that no more of them cross the bus. Cells begin at even rows
and columns of the result, and no result depends on other pixels than those of its window: tiles give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import LaneFacts, Shape, Strides
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.backends.lanes.kernels.channel_constants import bias_buffer, channel_buffer
from bmcompiler.backends.lanes.kernels.functions.fused_activation import activation_cycles, emit_activation
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide
from bmcompiler.backends.lanes.kernels.windows.winograd_arithmetic import BIASED, DIFFERENCES
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.backends.lanes.recipes.recorder import float_bits
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.chip import align_up
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Box, Buffer, TileWork
from bmcompiler.ops.layers.nn import Conv, Convolution

if TYPE_CHECKING:
    from bmcompiler.backends.lanes.kernels.windows.float_conv import FloatConvKernel

_PLACES = 16
_GAIN = 0.8
_BAND_BYTES = 48 << 10
"""Of pixels and products that are worked on at once: what is left of local memory is for what comes next."""
_LOADED = 50
"""Bytes of weights in the time of a vector of products: where these take longer, nothing is gained."""
_HALF = Immediate(float_bits(0.5))


def suits(chip: LaneFacts, op: Convolution) -> bool:
    """Whether a convolution is computed so: by its shape alone, so that bits depend on nothing else."""
    plain = isinstance(op, Conv) and op.group == 1 and tuple(op.weight.shape[2:]) == (3, 3)
    if not (chip.winograd and plain and op.input.dtype == op.result.dtype == "f32"):
        return False
    if tuple(op.strides) != (1, 1) or tuple(op.dilations) != (1, 1) or max(op.pads) > 2:
        return False
    _, channels, height, width = op.type.shape
    depth, cells = op.input.shape[1], -(-height // 2) * -(-width // 2)
    sums, inputs = -(-channels // chip.lanes), -(-depth // chip.lanes)

    def vectors(count: int) -> int:
        return -(-count // chip.execution_units)

    direct = 9 * depth * sums * vectors(height * width)
    if op.weight.type.nbytes > _LOADED * direct:
        return False
    transforms = inputs * 2 * (2 * vectors(height * width) + _PLACES * vectors(cells) + 4 * vectors(2 * cells))
    transforms += sums * (2 * 24 * vectors(cells) + 48 * vectors(depth))
    return bool(_PLACES * depth * sums * vectors(cells) + transforms < _GAIN * direct)


class _Sizes(NamedTuple):
    """Of a band of cells that is computed at once, in words of a lane.

    Attributes:
        cells: rows and columns of cells. inputs: rounds of lanes of input channels.
        padded, mixed, plane: of a channel's pixels with their border, of its rows once mixed, of a place of its cells.
        weights: of a place, of a round of output channels. kept: rounds whose transformed weights stay.
    """

    cells: tuple[int, int]
    inputs: int
    padded: int
    mixed: int
    plane: int
    weights: int
    kept: int

    @property
    def columns(self) -> int:
        """Of pixels with their border."""
        return 2 * self.cells[1] + 2

    def scratch(self) -> tuple[int, ...]:
        """Bytes of pixels or rows of results, mixed rows or products, planes of pixels, weights, parts of these."""
        rows = max(self.inputs * self.padded, 12 * self.plane)
        products = max(4 * self.inputs * self.mixed, _PLACES * self.plane)
        pixels, weights = _PLACES * self.inputs * self.plane, _PLACES * self.kept * self.weights
        return 4 * rows, 4 * products, 4 * pixels, 4 * weights, 4 * 9 * self.weights


def _sizes(chip: LaneFacts, depth: int, cells: tuple[int, int], kept: int) -> _Sizes:
    words, columns = chip.alignment // 4, 2 * cells[1] + 2
    padded, mixed = (align_up(rows * columns, words) for rows in (2 * cells[0] + 2, cells[0]))
    plane, weights = align_up(cells[0] * cells[1], words), align_up(depth, words)
    return _Sizes(cells, -(-depth // chip.lanes), padded, mixed, plane, weights, kept)


def _bands(chip: LaneFacts, depth: int, box: Box) -> list[tuple[int, int]]:
    """Rows of a tile in bands of few words, which begin with cells; of these bands those with the fewest vectors."""
    (lo, hi), (left, right) = box[2:]
    first, down, across = lo // 2, -(-hi // 2) - lo // 2, -(-right // 2) - left // 2

    def vectors(rows: int) -> int:
        whole, rest = divmod(down, rows)
        return sum(count * -(-size * across // chip.execution_units) for count, size in ((whole, rows), (1, rest)))

    fitting = [r for r in range(1, down + 1) if sum(_sizes(chip, depth, (r, across), 0).scratch()) <= _BAND_BYTES]
    rows = min(fitting or [1], key=lambda rows: (vectors(rows), -rows))
    cuts = [2 * (first + row) for row in range(rows, down, rows)]
    return list(zip([lo, *cuts], [*cuts, hi]))


def work(kernel: FloatConvKernel, op: Convolution, box: Box) -> TileWork:
    """One tile, band by band and a round of output channels at a time."""
    chip, machine, dims = kernel.chip, kernel.machine, extents(box)
    c0, c1 = box[1]
    depth, slide = kernel.depth(op), kernel.slide(op, box, kernel.channels(op, c0, c1))
    rounds, bands = -(-dims[1] // chip.lanes), _bands(chip, depth, box)
    alone = len(bands) == dims[0] == 1
    kept = 1 if alone else rounds
    shares = [(first, min(first + chip.lanes, dims[1])) for first in range(0, dims[1], chip.lanes)]
    tiles = [_Tile(kernel, op, box, rows, slide, _band_sizes(chip, depth, box, rows, kept)) for rows in bands]
    sizes = tuple(max(each) for each in zip(*(tile.sizes.scratch() for tile in tiles)))
    starts = [0, *accumulate(sizes)]  # one area to be placed, and not five
    inputs: list[Buffer] = [kernel.input_buffer(op, [slide], "nhw")]
    if op.bias is not None:  # before the weights: the first share of them needs it
        inputs.append(bias_buffer(chip, op.bias, c0, c1))
    inputs.append(channel_buffer(chip, op.weight, "taps first", _taps_first, (9, depth), 4, (c0, c1), shares))

    def compute(build: LaneBuild, ins: list[int], outs: list[int], areas: list[int]) -> None:
        bias = ins[1] if op.bias is not None else None
        places = _Areas(build, [start + areas[0] for start in starts], sizes, ins[-1])
        for number in range(0 if alone else rounds):
            tiles[0].transform_weights(places, number)
        for image in range(dims[0]):
            source, target = (
                address + image * 4 * chip.aligned_strides(shape)[0]
                for address, shape in ((ins[0], slide.shape), (outs[0], dims))
            )
            for tile in tiles:
                tile.transform_pixels(places, source)
                for number in range(rounds):
                    if alone:
                        tile.transform_weights(places, number)
                    tile.multiply(places, number, bias)
                    tile.transform_results(places, number, target)
        emit_activation(build, op.activation, Words(outs[0], dims))

    cycles = dims[0] * sum(tile.cycles(rounds) for tile in tiles) + rounds * _weight_cycles(machine.cycles, depth)
    cycles += activation_cycles(machine.cycles, op.activation, dims)
    out = machine.activation_out(op.result, dims4(op.result), box)
    return TileWork(tuple(inputs), (out,), (sum(sizes),), compute, cycles)


def _band_sizes(chip: LaneFacts, depth: int, box: Box, rows: tuple[int, int], kept: int) -> _Sizes:
    down, across = (-(-hi // 2) - lo // 2 for lo, hi in (rows, box[3]))
    return _sizes(chip, depth, (down, across), kept)


def _taps_first(build: LaneBuild) -> Any:
    return lambda w: np.ascontiguousarray(w.transpose(0, 2, 3, 1))


class _Areas(NamedTuple):
    """Where a tile computes: scratch areas with their bytes, and its weights."""

    build: LaneBuild
    starts: Sequence[int]
    sizes: Sequence[int]
    weights: int

    def span(self, area: int) -> tuple[int, int]:
        """The bytes of an area."""
        return self.starts[area], self.starts[area] + self.sizes[area]

    def words(self, area: int, at: int, shape: Shape, strides: Strides) -> Words:
        """A tensor from word `at` of an area on."""
        return Words(self.starts[area] + 4 * at, shape, strides, within=self.span(area))


class _Tile(NamedTuple):
    """The commands of a band: `rows` of the tile `box`."""

    kernel: FloatConvKernel
    op: Convolution
    box: Box
    rows: tuple[int, int]
    slide: Slide
    sizes: _Sizes

    def cycles(self, rounds: int) -> int:
        """Of the band, without its weights."""
        timing, lanes, sizes = self.kernel.machine.cycles, self.kernel.chip.lanes, self.sizes
        (down, across), depth, passes = sizes.cells, self.kernel.depth(self.op), timing.pass_cycles
        _, (height, width) = self._seen_part()
        pixels = passes((1, depth, 2 * down + 2, sizes.columns)) + passes((1, depth, height, width))
        pixels += 4 * passes((1, depth, down, sizes.columns)) + 4 * passes((4, depth, down, across))
        sums = _PLACES * timing.convolution((1, lanes, down, across), 1, depth)
        results = 4 * passes((4, lanes, down, across)) + 2 * passes((2, lanes, down, across))
        for row, column in product(range(2), repeat=2):
            (_, height, _), (_, width, _) = self._cells((row, column))
            results += passes((1, lanes, height, width)) if height > 0 < width else 0
        return pixels + rounds * (sums + results)

    def _seen_part(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The part of the input that the cells see: (first row, word of it among theirs), (rows, columns)."""
        down, sizes = self.sizes.cells[0], self.sizes
        top, left = 2 * (self.rows[0] // 2) - self.op.pads[0], 2 * (self.box[3][0] // 2) - self.op.pads[2]
        (lo, hi), (begin, end) = self.slide.source[2:]
        first, beyond = max(lo, top), min(hi, top + 2 * down + 2)
        return (first, (first - top) * sizes.columns + begin - left), (beyond - first, end - begin)

    def _channels(self, number: int) -> int:
        """Output channels of a round of lanes."""
        lanes = self.kernel.chip.lanes
        return min(lanes, extents(self.box)[1] - number * lanes)

    def transform_weights(self, areas: _Areas, number: int) -> None:
        """G g G^T of a round, rows first; the halves of the two rows in the middle lie in the last area."""
        build, depth, weights = areas.build, self.kernel.depth(self.op), self.sizes.weights
        row, lanes = 3 * depth, self._channels(number)
        source = areas.weights + 4 * number * 9 * depth
        read = (source, source + 4 * 9 * depth)
        taps: Shape = (1, lanes, 3, depth)
        first, middle, last = (Words(source + 4 * tap * row, taps, (0, 0, depth, 1), within=read) for tap in range(3))
        total, above, below = (areas.words(4, place * row, taps, (0, 0, depth, 1)) for place in (2, 0, 1))
        build.combine(Unit.ADD, total, first, last)
        _halves(build, total, middle, above, below)
        outer = Words(source, (1, lanes, 2, depth), (0, 0, 2 * row, 1), within=read)
        inner = areas.words(4, 0, outer.shape, (0, 0, row, 1))
        at = _PLACES * weights * number if self.sizes.kept > 1 else 0
        for tensor, rows, step in ((outer, 0, 3), (inner, 1, 1)):
            ends = [tensor._replace(address=tensor.address + 4 * tap * depth) for tap in range(3)]
            strides: Strides = (0, 0, 4 * step * weights, 1)
            made = [areas.words(3, at + (4 * rows + column) * weights, tensor.shape, strides) for column in range(4)]
            total = areas.words(4, 2 * row, tensor.shape, (0, 0, depth, 1))
            build.combine(Unit.ADD, total, ends[0], ends[2])
            _halves(build, total, ends[1], made[1], made[2])
            build.copy(ends[0], made[0])
            build.copy(ends[2], made[3])

    def transform_pixels(self, areas: _Areas, source: int) -> None:
        """B^T d B, rows first."""
        build, sizes, op, slide = areas.build, self.sizes, self.op, self.slide
        (down, across), inside, columns = sizes.cells, sizes.inputs, sizes.columns
        depth, chip = self.kernel.depth(op), self.kernel.chip
        build.fill(areas.words(0, 0, (1, depth, 2 * down + 2, columns), (0, sizes.padded, columns, 1)), 0)
        (first, inner), (height, width) = self._seen_part()
        part: Shape = (1, depth, height, width)
        whole: Shape = (1, *slide.shape[1:])
        _, channel, line, _ = chip.aligned_strides(whole)
        start = source + 4 * (first - slide.source[2][0]) * line
        read = Words(start, part, (0, channel, line, 1), within=chip.plane(source, whole))
        build.copy(read, areas.words(0, inner, part, (0, sizes.padded, columns, 1)))
        mixed, plane = inside * sizes.mixed, inside * sizes.plane
        for row, (one, other, unit) in enumerate(DIFFERENCES):
            shape: Shape = (1, depth, down, columns)
            a, b = (areas.words(0, at * columns, shape, (0, sizes.padded, 2 * columns, 1)) for at in (one, other))
            build.combine(unit, areas.words(1, row * mixed, shape, (0, sizes.mixed, columns, 1)), a, b)
        for column, (one, other, unit) in enumerate(DIFFERENCES):
            cells: Shape = (4, depth, down, across)
            a, b = (areas.words(1, at, cells, (mixed, sizes.mixed, columns, 2)) for at in (one, other))
            build.combine(unit, areas.words(2, column * plane, cells, (4 * plane, sizes.plane, across, 1)), a, b)

    def multiply(self, areas: _Areas, number: int, bias: int | None) -> None:
        """The products of all places, for a round of output channels."""
        sizes, (down, across) = self.sizes, self.sizes.cells
        slide = self.slide._replace(geometry=Geometry((down, across), (1, 1)))
        at = number if sizes.kept > 1 else 0
        for place in range(_PLACES):
            data = areas.starts[2] + 4 * place * sizes.inputs * sizes.plane
            kernels = areas.starts[3] + 4 * (_PLACES * at + place) * sizes.weights
            first = [bias + 4 * number] if bias is not None and place == BIASED else []
            reads = [areas.span(2), areas.span(3), *((begin, begin + 4) for begin in first)]
            words = Words(areas.starts[1] + 4 * place * sizes.plane, (1, self._channels(number), down, across))
            self.kernel.emit_sums(self.op, areas.build, slide, [data, *first, kernels], words, reads)

    def transform_results(self, areas: _Areas, number: int, target: int) -> None:
        """A^T m A, rows first; of the cells at the border, what lies in the band."""
        build, (down, across), plane, channels = areas.build, self.sizes.cells, self.sizes.plane, self._channels(number)
        shape: Shape = (4, channels, down, across)
        flat: Strides = (plane, plane, across, 1)
        products = [areas.words(1, 4 * row * plane, shape, flat) for row in range(4)]
        between = areas.words(0, 8 * plane, shape, flat)
        for row, unit in enumerate((Unit.ADD, Unit.SUB)):
            build.combine(unit, between, products[row], products[row + 1])
            build.combine(unit, areas.words(0, 4 * row * plane, shape, flat), between, products[row + 2])
        pair: Shape = (2, channels, down, across)
        total = areas.words(0, 8 * plane, pair, flat)
        for column, unit in enumerate((Unit.ADD, Unit.SUB)):
            a, b = (areas.words(0, (column + at) * plane, pair, (4 * plane, plane, across, 1)) for at in range(2))
            build.combine(unit, total, a, b)
            for row in range(2):
                self._store(areas, number, target, (row, column), (unit, 8 + row, 4 * row + column + 2))

    def _store(
        self, areas: _Areas, number: int, target: int, place: tuple[int, int], sums: tuple[Unit, int, int]
    ) -> None:
        """Results of a row and column of all cells, made of two planes of the first area."""
        chip, dims, plane, across = self.kernel.chip, extents(self.box), self.sizes.plane, self.sizes.cells[1]
        (y, height, top), (x, width, left) = self._cells(place)
        if height < 1 or width < 1:
            return
        unit, *planes = sums
        shape: Shape = (1, self._channels(number), height, width)
        a, b = (areas.words(0, one * plane + y * across + x, shape, (0, plane, across, 1)) for one in planes)
        _, channel, line, _ = chip.aligned_strides(dims)
        start = target + 4 * (number * channel + top * line + left)
        made = Words(start, shape, (0, channel, 2 * line, 2), within=chip.plane(target, (1, *dims[1:])))
        areas.build.combine(unit, made, a, b)

    def _cells(self, place: tuple[int, int]) -> list[tuple[int, int, int]]:
        """The results at a place of all cells, along h and w: (first cell, how many in the band, first in the tile)."""
        spans, corner = (self.rows, self.box[3]), (self.box[2][0], self.box[3][0])
        found = []
        for (lo, hi), at, origin in zip(spans, place, corner):
            first, end = -(-(lo - at) // 2), -(-(hi - at) // 2)
            found.append((first - lo // 2, end - first, 2 * first + at - origin))
        return found


def _weight_cycles(timing: LaneCycles, depth: int) -> int:
    taps, pair = (timing.pass_cycles((1, 1, rows, depth)) for rows in (3, 2))
    halved = (2 * timing.pass_cycles((1, 1, rows, depth), in_place=True) for rows in (3, 2, 2))
    return 3 * taps + 2 * 5 * pair + sum(halved)


def _halves(build: LaneBuild, ends: Words, middle: Words, plus: Words, minus: Words) -> None:
    """(ends + middle) / 2 and (ends - middle) / 2."""
    for unit, target in ((Unit.ADD, plus), (Unit.SUB, minus)):
        build.combine(unit, target, ends, middle)
        build.combine(Unit.MUL, target, target, _HALF)
