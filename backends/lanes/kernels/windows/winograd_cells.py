"""Convolutions by Winograd's F(2, 3) along h or w, where windows have three taps: 4 products for 2 results, not 6.

A cell of two results comes from four pixels d and the taps g:

    m0 = (d0 - d2) * g0    m1 = (d1 + d2) * (g0 + g2 + g1) / 2    y0 = m0 + m1 + m2
    m3 = (d1 - d3) * g2    m2 = (d2 - d1) * (g0 + g2 - g1) / 2    y1 = m1 - m2 - m3

Each product is a convolution with a window of one tap along that axis, which sums over its taps along the other one
and over all channels in one command. Weights are transformed on the chip, so that no more of them cross the bus. Cells
begin at even results, and no result depends on other pixels than those of its window: tiles give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import LaneFacts, LineCells, Range, Shape, Strides
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.backends.lanes.kernels.functions.fused_activation import activate, activation_cycles, emit_activation
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide
from bmcompiler.backends.lanes.kernels.windows.winograd_arithmetic import DIFFERENCES
from bmcompiler.backends.lanes.operands import Immediate, Source, Words
from bmcompiler.backends.lanes.recipes.recorder import float_bits
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.chip import align_up
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Apart, Box, Buffer, TileWork
from bmcompiler.numeric.arrays import Floats
from bmcompiler.ops.layers.nn import Conv, Convolution

if TYPE_CHECKING:
    from bmcompiler.backends.lanes.kernels.windows.float_conv import FloatConvKernel, Placed

H, W = 2, 3
"""Axes."""
_PLACES = 4
_TAPS = 3
_BIASED = 1
"""The product that is added once to both results: what it begins with is their bias."""
_SUMS = ((Unit.ADD, 0, 1, 2), (Unit.SUB, 1, 2, 3))
"""Of both results: how products go together, the one that takes the sum, and the other two."""
_GAIN = 0.9
_HALF, _ZERO = Immediate(float_bits(0.5)), Immediate(0)


def axis_of(kernel: FloatConvKernel, op: Convolution) -> int | None:
    """Along which axis there are cells, if any: by the shape alone, so that bits depend on nothing else."""
    facts, taps = kernel.chip.line_cells, op.weight.shape[H:]
    if facts is None or _TAPS not in taps or not isinstance(op, Conv) or op.group > 1 or max(op.pads) > 2:
        return None
    fitting = zip((H, W), zip(taps, op.strides, op.dilations))
    axes = [axis for axis, along in fitting if along == (_TAPS, 1, 1)]
    if not axes or kernel.folds_rows(op):
        return None
    depth, (_, channels, height, width) = op.input.shape[1], op.type.shape
    sums, tap = -(-channels // kernel.chip.lanes), depth * facts.channel + facts.tap
    direct = sums * facts.groups(height * width) * prod(taps) * tap
    cycles, axis = min((_judged(kernel.chip, facts, op, axis), axis) for axis in axes)
    return axis if cycles < _GAIN * direct else None


def _judged(chip: LaneFacts, facts: LineCells, op: Convolution, axis: int) -> int:
    """About how long a convolution takes with cells along an axis."""
    depth, channels, others = op.input.shape[1], op.type.shape[1], prod(op.weight.shape[H:]) // _TAPS
    sums, inputs, cells = -(-channels // chip.lanes), -(-depth // chip.lanes), -(-op.type.shape[axis] // 2)
    results, pixels = (
        facts.groups(prod(shape[H:]) // shape[axis] * cells) for shape in (op.type.shape, op.input.shape)
    )
    products = _PLACES * sums * results * others * (depth * facts.channel + facts.tap)
    weights = sums * facts.groups(others * depth)
    passes = (_PLACES * (inputs * pixels + sums * results) + 3 * weights) * facts.pair + 4 * weights * facts.single
    return products + passes + 5 * _PLACES * facts.start


def work(
    kernel: FloatConvKernel, op: Convolution, box: Box, slide: Slide, inputs: Sequence[Buffer], placed: Placed
) -> TileWork:
    """One tile; placed: says where what its inputs hold lies."""
    axis = axis_of(kernel, op)
    assert axis is not None, "`axis_of` found one"
    tile = _Tile(kernel, op, box, slide, axis)
    dims, sizes = extents(box), tile.sizes

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        (data, *bias, weights), reads = placed(ins)
        areas = _Areas(build, scratch, sizes)
        tile.transform_weights(areas, weights, reads[-1])
        tile.transform_pixels(areas, data)
        tile.multiply(areas, list(zip(bias, reads[1:])))
        tile.transform_results(areas, outs[0])
        emit_activation(build, op.activation, Words(outs[0], dims))

    timing = kernel.machine.cycles
    out = kernel.machine.activation_out(op.result, dims4(op.result), box)
    shared = _PLACES * timing.shared_bank(tile.results, tile.others, kernel.depth(op))
    apart = (Apart(len(inputs), len(inputs) + 2, shared),) if shared else ()
    cycles = tile.cycles() + activation_cycles(timing, op.activation, dims)
    return TileWork(tuple(inputs), (out,), sizes, compute, cycles, apart)


class _Areas(NamedTuple):
    """Scratch areas with their bytes: transformed pixels, products, transformed weights."""

    build: LaneBuild
    starts: Sequence[int]
    sizes: Sequence[int]

    def span(self, area: int) -> Range:
        """The bytes of an area."""
        return self.starts[area], self.starts[area] + self.sizes[area]

    def at(self, area: int, place: int) -> int:
        """Where a quarter of an area begins."""
        return self.starts[area] + place * self.sizes[area] // _PLACES

    def words(self, area: int, place: int, shape: Shape, strides: Strides) -> Words:
        """A tensor in a quarter of an area."""
        return Words(self.at(area, place), shape, strides, within=self.span(area))


class _Run(NamedTuple):
    """So many cells from the first one on, and which pixels that reads, None = beyond the input."""

    first: int
    cells: int
    sources: tuple[int | None, int | None]


class _Tile(NamedTuple):
    """The commands of a tile."""

    kernel: FloatConvKernel
    op: Convolution
    box: Box
    slide: Slide
    axis: int

    @property
    def cells(self) -> tuple[int, int]:
        """The first cell, and how many."""
        lo, hi = self.box[self.axis]
        return lo // 2, -(-hi // 2) - lo // 2

    @property
    def pixels(self) -> Shape:
        """Of transformed pixels, of each of the four."""
        return _with(self.slide.shape, self.axis, self.cells[1])

    @property
    def results(self) -> Shape:
        """Of each of the four products."""
        return _with(extents(self.box), self.axis, self.cells[1])

    @property
    def others(self) -> int:
        """Taps along the other axis."""
        return int(self.op.weight.shape[H + W - self.axis])

    @property
    def weights(self) -> Shape:
        """Of each of the four transformed taps, channels last."""
        return 1, self.results[1], self.others, self.kernel.dense_row(self.op)[1]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of the scratch areas; what weights need between lies among the products."""
        chip, weights = self.kernel.chip, self.kernel.chip.compact_bytes(self.weights)
        products = max(chip.aligned_bytes(self.results), align_up(-(-weights // _PLACES), chip.alignment))
        return _PLACES * chip.aligned_bytes(self.pixels), _PLACES * products, _PLACES * weights

    def cycles(self) -> int:
        """Of all commands but activations, with nothing in one bank."""
        timing, depth = self.kernel.machine.cycles, self.kernel.depth(self.op)
        step = _pair(self.axis, self.slide.geometry.steps, 1)[1]
        total = _PLACES * timing.convolution(self.results, self.others, depth, stride=step)
        for place in range(_PLACES):
            for run in self._runs(place):
                shape = _with(self.pixels, self.axis, run.cells)
                total += timing.pass_cycles(shape, pair=None not in run.sources)
        total += 3 * timing.pass_cycles(self.weights, pair=True) + 4 * timing.pass_cycles(self.weights)
        total += 2 * timing.pass_cycles(self.results, pair=True)
        kept = [_with(self.results, self.axis, count) for _, count, _ in self._stored() if count]
        return total + sum(timing.pass_cycles(shape, pair=True) for shape in kept)

    def transform_weights(self, areas: _Areas, source: int, read: Range) -> None:
        """The four taps that products are made with."""
        build, shape = areas.build, self.weights
        _, _, others, depth = shape
        tap, other = (others * depth, depth) if self.axis == H else (depth, _TAPS * depth)
        by = (0, _TAPS * others * depth, other, 1)
        first, middle, last = (Words(source + 4 * at * tap, shape, by, within=read) for at in range(_TAPS))
        dense = (0, others * depth, depth, 1)
        made = [areas.words(2, place, shape, dense) for place in range(_PLACES)]
        ends = areas.words(1, 0, shape, dense)
        build.combine(Unit.ADD, ends, first, last)
        for unit, target in ((Unit.ADD, made[1]), (Unit.SUB, made[2])):
            build.combine(unit, target, ends, middle)
            build.combine(Unit.MUL, target, target, _HALF)
        build.copy(first, made[0])
        build.copy(last, made[3])

    def transform_pixels(self, areas: _Areas, source: int) -> None:
        """Sums and differences of two pixels of each cell; those beyond the input are zero."""
        chip, axis, whole = self.kernel.chip, self.axis, self.slide.shape
        steps, inner = chip.aligned_strides(whole), chip.aligned_strides(self.pixels)
        strides = _with(steps, axis, 2 * steps[axis])
        for place, (_, _, unit) in enumerate(DIFFERENCES):
            target = areas.words(0, place, self.pixels, inner)
            for first, count, sources in self._runs(place):
                shape = _with(self.pixels, axis, count)
                pixels = Words(source, shape, strides, within=chip.plane(source, whole))
                one, other = (_ZERO if at is None else _moved(pixels, at * steps[axis]) for at in sources)
                _combine(areas.build, unit, _moved(target._replace(shape=shape), first * inner[axis]), one, other)

    def _runs(self, place: int) -> list[_Run]:
        """Runs of cells by which of the two pixels that go together at a place lie in the tile's input."""
        (first, count), (low, high) = self.cells, self.slide.source[self.axis]
        pad = self.op.pads[2 * (self.axis - H)]
        begins = [2 * first + pixel - pad - low for pixel in DIFFERENCES[place][:2]]  # of the first cell
        there = [(-(begin // 2), -(-(high - low - begin) // 2)) for begin in begins]
        cuts = sorted({0, count, *(min(max(cut, 0), count) for span in there for cut in span)})
        found = []
        for cut, end in pairwise(cuts):
            one, other = (2 * cut + b if s <= cut < e else None for b, (s, e) in zip(begins, there))
            found.append(_Run(cut, end - cut, (one, other)))
        return found

    def multiply(self, areas: _Areas, bias: Sequence[tuple[int, Range]]) -> None:
        """The four products."""
        op, given = self.op, self.slide.geometry
        top, bottom, left, right = given.pads
        window = given._replace(
            size=_pair(self.axis, given.size, self.cells[1]),
            taps=_pair(self.axis, given.taps, 1),
            dilations=_pair(self.axis, given.dilations, 1),
            pads=(0, 0, left, right) if self.axis == H else (top, bottom, 0, 0),
            steps=_pair(self.axis, given.steps, 1),
        )
        slide = self.slide._replace(geometry=window)
        for place in range(_PLACES):
            own = list(bias) if place == _BIASED else []
            places = [areas.at(0, place), *(start for start, _ in own), areas.at(2, place)]
            reads = [areas.span(0), *(span for _, span in own), areas.span(2)]
            self.kernel.emit_sums(op, areas.build, slide, places, Words(areas.at(1, place), self.results), reads)

    def transform_results(self, areas: _Areas, target: int) -> None:
        """The results of the cells that are in the tile."""
        chip, axis, dims = self.kernel.chip, self.axis, extents(self.box)
        steps, inner = chip.aligned_strides(dims), chip.aligned_strides(self.results)
        products = [areas.words(1, place, self.results, inner) for place in range(_PLACES)]
        for (unit, total, one, other), (first, count, at) in zip(_SUMS, self._stored()):
            areas.build.combine(unit, products[total], products[total], products[one])
            if not count:
                continue
            shape = _with(self.results, axis, count)
            a, b = (_moved(products[each]._replace(shape=shape), first * inner[axis]) for each in (total, other))
            made = Words(target, shape, _with(steps, axis, 2 * steps[axis]), within=chip.plane(target, dims))
            areas.build.combine(unit, _moved(made, at * steps[axis]), a, b)

    def _stored(self) -> list[tuple[int, int, int]]:
        """Of both results of cells those in the tile: first cell, how many, first place in the tile."""
        (lo, hi), (cell, _) = self.box[self.axis], self.cells
        found = []
        for result in range(2):
            first, end = -(-(lo - result) // 2), -(-(hi - result) // 2)
            found.append((first - cell, end - first, 2 * first + result - lo))
        return found


def _with(dims: Sequence[int], axis: int, size: int) -> Shape:
    """Sizes or strides with another one for an axis."""
    n, c, h, w = dims
    return (n, c, size, w) if axis == H else (n, c, h, size)


def _pair(axis: int, pair: tuple[int, int], value: int) -> tuple[int, int]:
    """(vertical, horizontal) with `value` for an axis."""
    return (value, pair[1]) if axis == H else (pair[0], value)


def _moved(words: Words, distance: int) -> Words:
    """By so many words."""
    return words._replace(address=words.address + 4 * distance)


def _combine(build: LaneBuild, unit: Unit, target: Words, one: Source, other: Source) -> None:
    if isinstance(one, Words) or isinstance(other, Words):
        build.combine(unit, target, one, other)
    else:
        build.fill(target, 0)


def evaluate(kernel: FloatConvKernel, op: Convolution, x: Floats, weight: Floats, bias: Floats | None) -> Floats:
    """The op in the chip's arithmetic and order."""
    axis = axis_of(kernel, op)
    assert axis is not None, "`axis_of` found one"
    arithmetic, window = kernel.machine.arithmetic_of(op.result.dtype), kernel.window(op)
    steps = {Unit.ADD: arithmetic.add, Unit.SUB: arithmetic.subtract}
    size, before = op.type.shape[axis], op.pads[2 * (axis - H)]
    count = -(-size // 2)
    padded = np.zeros(_with(x.shape, axis, max(2 * count + 2, before + x.shape[axis])), np.float32)
    padded[_along(axis, before, before + x.shape[axis])] = x
    window = replace(
        window,
        kernel=_pair(axis, window.kernel, 1),
        before=_pair(axis, window.before, 0),
        after=_pair(axis, window.after, 0),
        out=_pair(axis, window.out, count),
    )
    with np.errstate(all="ignore"):
        first, middle, last = (np.ascontiguousarray(weight[_along(axis, tap, tap + 1)]) for tap in range(_TAPS))
        ends, half = arithmetic.add(first, last), np.float32(0.5)
        taps = [first, *(arithmetic.multiply(step(ends, middle), half) for step in steps.values()), last]
        products = []
        for place, (*pixels, unit) in enumerate(DIFFERENCES):
            a, b = (np.ascontiguousarray(padded[_along(axis, at, at + 2 * count, 2)]) for at in pixels)
            own = bias if place == _BIASED else None
            products.append(kernel.sums(op, window, steps[unit](a, b), taps[place], own))
        out = np.empty(_with(op.type.shape, axis, 2 * count), np.float32)
        for result, (unit, total, one, other) in enumerate(_SUMS):
            made = steps[unit](steps[unit](products[total], products[one]), products[other])
            out[_along(axis, result, 2 * count, 2)] = made
        return activate(arithmetic, op.activation, np.ascontiguousarray(out[_along(axis, 0, size)]))


def _along(axis: int, first: int, end: int, step: int = 1) -> tuple[slice, ...]:
    """The index of a part along an axis."""
    return (*(slice(None),) * axis, slice(first, end, step))
