"""Convolution and transposed convolution of bytes: four images at a time, exact sums (bm1684.md 6.1, 6.2, 7.3)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from math import prod

import numpy as np

from bmcompiler.backends.bm1684.build import Build, extents, lane_bytes
from bmcompiler.backends.bm1684.chip import CHIP, align_up, aligned_strides
from bmcompiler.backends.bm1684.cycles import PIXELS
from bmcompiler.backends.bm1684.instructions.products import LocalPlace, convolution, depthwise
from bmcompiler.backends.bm1684.packed.channel_end import RULE as FACTORS
from bmcompiler.backends.bm1684.packed.channel_end import shifts_buffer, takes_factors
from bmcompiler.backends.bm1684.packed.int_requantize import Requantize
from bmcompiler.backends.bm1684.packed.int_short import ShortRequantize, over_depth
from bmcompiler.backends.lanes.build import LaneTransfers
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import dims4, item_bytes
from bmcompiler.backends.lanes.kernels.channel_constants import Joined, channel_buffer, joined_buffer
from bmcompiler.backends.lanes.kernels.windows.conv_geometry import ConvGeometry, DeconvGeometry, channel_groups
from bmcompiler.backends.lanes.kernels.windows.fold_rows import fold_inside
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide
from bmcompiler.backends.lanes.operands import Immediate
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.codegen.build import dense_strides as global_strides
from bmcompiler.codegen.groups.timeline import HIDDEN
from bmcompiler.codegen.hazards import Range
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.nn import Conv, Convolution, Deconv, Matmul
from bmcompiler.target import Kernel, rule

_MOST_JOINED = 1 << 16
"""Bytes of weights beyond which the load of a bias costs next to nothing in comparison."""
QUAD = 4
"""Input channels of an 8-bit kernel lie in groups of four (bm1684.md 4.4)."""


class IntConvKernel(ConvGeometry):
    """conv of i8 and u8: the sums in one instruction per tile, then what the mode says."""

    ops: tuple[type[Convolution], ...] = (Conv,)
    only_in_commands = ("scale", "rshift")

    def tiling_facts(self, op: Convolution) -> Hashable:
        return Requantize(self.machine, op).tiling_facts

    @rule("The result must be i8, u8, i16 or u16")
    def known_result(self, op: Convolution) -> bool:
        return op.type.dtype in ("i8", "u8", "i16", "u16")

    @rule("A bias that is added before the shift must be i16 or u16")
    def known_bias(self, op: Convolution) -> bool:
        return op.bias is None or not Requantize(self.machine, op).adds_bias or op.bias.dtype in ("i16", "u16")

    @rule(FACTORS)
    def known_factors(self, op: Convolution) -> bool:
        return takes_factors(op, op.factors)

    @rule("The sums must fit 32 bits: fewer input channels, or a smaller window")
    def exact_sums(self, op: Convolution) -> bool:
        return Requantize(self.machine, op).fits_accumulator(self.depth(op) * prod(self.taps(op)))

    def border(self, op: Convolution) -> int:
        return op.zero_points[0] & 0xFF if op.zero_points else 0

    def fills(self, op: Convolution) -> bool:
        return self.border(op) != 0 or super().fills(op)

    def evaluate(self, op: Convolution, *arrays: Array) -> Array:
        """The op itself: sums are exact and rounding is the op's."""
        return Kernel.evaluate(self, op, *arrays)

    # -- rows of the window as channels --------------------------------------------------------------------------------
    def stacks_rows(self, op: Convolution) -> bool:
        """Whether the command takes the rows of the window for input channels, a round of lanes for each.

        Channel 64 * r + c of a row is channel c of the row r further down, in the same lane: no byte moves. What is in
        lanes without a channel is multiplied by 0.
        """
        if isinstance(op, Deconv) or op.group > 1 or any(op.pads[:2]) or self.folds_rows(op):
            return False
        rows, channels = op.weight.shape[2], self.depth(op)
        points = op.zero_points[1] if op.zero_points else 0
        if rows == 1 or channels > CHIP.lanes or CHIP.lanes * (rows - 1) + channels > CHIP.most_depth or points:
            return False
        (down, across), step, shape = self.taps(op), op.strides[1], (1, 1, 1, PIXELS)
        cycles = self.machine.cycles
        stacked = cycles.convolution(shape, across, CHIP.lanes * (down - 1) + channels, 1, step)
        return stacked < cycles.convolution(shape, down * across, channels, 1, step)

    def command(self, op: Convolution) -> tuple[tuple[int, int], int]:
        """Taps and input channels of the command."""
        (down, across), depth = self.taps(op), self.depth(op)
        return ((1, across), CHIP.lanes * (down - 1) + depth) if self.stacks_rows(op) else ((down, across), depth)

    def sum_cycles(self, op: Convolution, shape: Shape, slide: Slide, item: int) -> int:
        if self.is_depthwise(op):
            return super().sum_cycles(op, shape, slide, item)
        taps, depth = self.command(op)
        return self.machine.cycles.convolution(shape, prod(taps), depth, item, slide.geometry.steps[1])

    def _stacked(self, op: Convolution, slide: Slide) -> tuple[Geometry, Strides | None]:
        """The window of the command, and the strides of its operand if these are not those of the map."""
        geometry = slide.geometry
        if not self.stacks_rows(op):
            return geometry, None
        (height, width), (down, across), step = geometry.size, geometry.taps, geometry.dilations[0]
        images, _, rows, columns = aligned_strides(CHIP.words_of(slide.shape, 1))
        size = height - (down - 1) * step, width
        return geometry._replace(size=size, taps=(1, across)), (images, step * rows, rows, columns)

    # -- a tile --------------------------------------------------------------------------------------------------------
    def whole_work(self, op: Convolution, box: Box) -> TileWork:
        """Without bands, and packed: the result stays in the layout that other ops read."""
        packed = partial(self.work, op, whole=True) if item_bytes(op.result) == 1 else None
        return fold_inside(self, op, box, self.work(op, box, whole=True), packed)

    def _search(self, op: Convolution) -> tuple[tuple[Axis, ...], Callable[[Box], TileWork], Hashable]:
        """Tilings with other channels share their inputs, and how these are cut."""
        grid, _, key = super()._search(op)
        return grid, partial(self.work, op, cuts={}), key

    def work(self, op: Convolution, box: Box, whole: bool = False, cuts: dict[Box, bool] | None = None) -> TileWork:
        requantize, (c0, c1) = Requantize(self.machine, op), box[1]
        bands, slides, dims = self._parts(op, [box] if whole else self._cut(op, requantize, box, cuts))
        weights = self._weights(op, requantize, c0, c1)
        framed = whole and any(slides[0].frame) and not self.folds_rows(op)
        axes = "nchw" if op.group > 1 else "nhw"
        data = self.plain_input(op, slides[0], axes) if framed else self.input_buffer(op, slides, axes)
        inputs = [data, *weights]
        packs = whole and requantize.in_words and item_bytes(op.result) == 1
        joined = self._joined(op, c0, c1) if whole and requantize.adds_bias and len(weights) == 1 else None
        if joined is not None:
            inputs[1:] = [joined.buffer]
        elif requantize.adds_bias or (requantize.has_vector and not packs):
            inputs.append(self._vector(op, requantize, c0, c1))
        short = ShortRequantize(requantize, partial(self.oriented, op)) if packs else None
        end = short or requantize
        constants = short.constants(dims[0], c0, c1) if short else None
        if op.factors is not None:
            constants = shifts_buffer(op.factors, c0, c1)
        if constants is not None:
            inputs.append(constants)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            reads = [buffer.read(place) for place, buffer in zip(ins, inputs)]
            image, *others = ins
            kernels, added = others[: len(weights)], others[len(weights) :]
            bias, vector = added[0] if requantize.adds_bias and added else 0, added[-1] if added else 0
            if joined is not None:
                bias = kernels[0] + joined.bias
            if framed:
                *scratch, frame = scratch
                self.emit_frame(op, build, slides[0], image, frame)
                image, reads[0] = frame, CHIP.plane(frame, slides[0].shape, 1)

            depth = None if self.is_depthwise(op) else self.command(op)[1]
            geometry, steps = self._stacked(op, slides[0])

            def sums(result: int, crossed: bool) -> None:
                kernel = kernels[crossed] if crossed < len(kernels) else None
                emit_sums(build, requantize, dims, (image, kernel, bias), result, (geometry, depth, steps), reads)

            end.emit(build, dims, sums, outs[0], scratch, vector)

        by = global_strides(dims4(op.result))
        if packs:
            out = self.machine.activation_out(op.result, dims4(op.result), box)
        else:
            starts = [sum(lo * step for (lo, _), step in zip(band, by)) for band in bands]
            out = requantize.result_buffer(dims, by, starts, box if len(bands) == 1 else None)
        cycles = self.sum_cycles(op, dims, slides[0], 1) * (1 + requantize.crossed) + end.cycles(dims)
        scratch = end.scratch(dims)
        if framed:
            scratch += (lane_bytes(slides[0].shape, 1),)
            framing = slides[0].shape, extents(slides[0].source)
            cycles += sum(self.machine.cycles.pass_cycles(shape, 1) for shape in framing)
        apart = () if framed else self.apart(op, dims, 1, len(weights))
        return TileWork(tuple(inputs), (out,), scratch, compute, cycles, apart)

    def _bands(self, op: Convolution, box: Box) -> list[Box]:
        """A tile of a single image in up to four bands of rows, which fill the image slots of words.

        The last one overlaps where the rows do not divide. Inserted zeros have no place in the padding of a band.
        """
        (n0, n1), channels, (y0, y1), columns = box
        if n1 - n0 > 1 or self.windows(op)[0].insert:
            return [box]
        count = min(y1 - y0, QUAD)
        rows = -(-(y1 - y0) // count)
        starts = (min(y0 + k * rows, y1 - rows) for k in range(count))
        return [((n0, n1), channels, (y, y + rows), columns) for y in starts]

    def _cut(
        self, op: Convolution, requantize: Requantize, box: Box, known: dict[Box, bool] | None = None
    ) -> list[Box]:
        """A tile as it is or in bands, whichever takes less time; tiles that share their input are cut alike.

        known: whether tiles of all channels are cut, where that was asked; what is found is added.
        """
        channels = box[1] if op.group > 1 else (0, op.type.shape[1])
        judged: Box = (box[0], channels, *box[2:])
        cut = None if known is None else known.get(judged)
        if cut is None:
            choices = [judged], self._bands(op, judged)
            plain, banded = (self._time(op, requantize, *self._parts(op, bands)[1:]) for bands in choices)
            cut = plain > banded
            if known is not None:
                known[judged] = cut
        return self._bands(op, box) if cut else [box]

    def _parts(self, op: Convolution, bands: list[Box]) -> tuple[list[Box], list[Slide], Shape]:
        """Bands, their inputs, and the shape of the tile of results."""
        channels = self.channels(op, *bands[0][1])
        slides = [self.slide(op, band, channels, fill_rows=len(bands) > 1) for band in bands]
        n, c, h, w = extents(bands[0])
        return bands, slides, (max(n, len(bands)), c, h, w)

    def _time(self, op: Convolution, requantize: Requantize, slides: list[Slide], dims: Shape) -> float:
        """Cycles of computing and moving, the shorter of both being mostly hidden.

        Bands compute faster and move in more and shorter runs.
        """
        cycles, (n, c, h, w) = self.machine.cycles, dims
        moved = n * cycles.store(c, h * w * item_bytes(op.result))
        for images, channels, rows, columns in (extents(slide.source) for slide in slides):
            moved += cycles.load(images * channels, rows * columns)
        computed = self.sum_cycles(op, dims, slides[0], 1) * (1 + requantize.crossed) + requantize.cycles(dims)
        return max(computed, moved) + HIDDEN * min(computed, moved)

    # -- constants -----------------------------------------------------------------------------------------------------
    def _weights(self, op: Convolution, requantize: Requantize, c0: int, c1: int) -> list[Buffer]:
        """The weights; of depthwise convolutions also those that are all the zero point.

        A constant kernel means something else there (bm1684.md 6.2).
        """
        if not self.is_depthwise(op):
            taps, depth = self.command(op)
            row = prod(taps) * align_up(depth, QUAD)
            pack = self._packing(op, lambda w: channel_groups(w, QUAD))
            return [weight_buffer(op.weight, f"{op.opname} quads {op.group} {prod(taps)}", pack, row, c0, c1)]
        row = prod(self.taps(op))
        found = [weight_buffer(op.weight, f"{op.opname} bytes", self._packing(op, np.asarray), row, c0, c1)]
        if requantize.crossed:
            point = op.zero_points[1]
            layout = f"{op.opname} all {point}"
            found.append(weight_buffer(op.weight, layout, lambda w: np.full_like(w, point), row, c0, c1))
        return found

    def _joined(self, op: Convolution, c0: int, c1: int) -> Joined | None:
        """Weights and bias of each lane side by side: a load takes long to begin. None for what is not worth a copy."""
        depthwise = self.is_depthwise(op)
        taps, depth = self.command(op)
        row = prod(taps) * (1 if depthwise else align_up(depth, QUAD))
        if op.bias is None or row * (c1 - c0) > _MOST_JOINED:
            return None
        pack = self._packing(op, np.asarray if depthwise else lambda w: channel_groups(w, QUAD))
        return joined_buffer(CHIP, op.weight, op.bias, f"{op.opname} {op.group} joined", pack, row, (c0, c1))

    def _packing(self, op: Convolution, pack: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda w: pack(_stacked_rows(self.oriented(op, w)) if self.stacks_rows(op) else self.oriented(op, w))

    def _vector(self, op: Convolution, requantize: Requantize, c0: int, c1: int) -> Buffer:
        """The bias of the sums, or the numbers added at the end."""
        if op.bias is not None and requantize.adds_bias:
            return vector_buffer(op.bias, "plain", np.asarray, 2, c0, c1)
        return real_vector_buffer(op, requantize, over_depth, c0, c1)


class IntDeconvKernel(DeconvGeometry, IntConvKernel):
    """deconv of i8 and u8."""

    ops = (Deconv,)


def emit_sums(
    build: Build,
    requantize: Requantize,
    dims: Shape,
    sources: tuple[int, int | None, int],
    result: int,
    window: tuple[Geometry, int | None, Strides | None],
    reads: list[Range],
) -> None:
    """Emit the command of the sums.

    Args:
        sources: addresses of data, weights (None: all are their zero point), bias if the sums take one.
        window: geometry, the input channels of dense weights, and the strides of data with others than its own. reads:
            the bytes of all inputs of the tile.
    """
    (data, weight, bias), (geometry, depth, steps) = sources, window
    weights = Immediate(requantize.zero_points[1] & 0xFF) if weight is None else weight
    target, added = (dims, LocalPlace(result, requantize.sums_bytes(dims))), bias if requantize.adds_bias else None
    if depth is None:
        depthwise(build, target, data, weights, added, geometry, requantize.numbers, reads)
    else:
        convolution(build, target, data, (weights, depth), added, geometry, requantize.numbers, reads, steps)


def _stacked_rows(weight: np.ndarray) -> np.ndarray:
    """(O, C, KH, KW) -> (O, 64 * (KH - 1) + C, 1, KW): the channels of each row follow 64 further."""
    outputs, channels, down, across = weight.shape
    made = np.zeros((outputs, down, CHIP.lanes, across), weight.dtype)
    made[:, :, :channels] = weight.swapaxes(1, 2)
    return made.reshape(outputs, -1, 1, across)[:, : CHIP.lanes * (down - 1) + channels]


def weight_buffer(
    weight: Value, layout: str, pack: Callable[[np.ndarray], np.ndarray], row: int, c0: int, c1: int
) -> Buffer:
    """Output channels [c0, c1) of packed weights, `row` bytes each."""
    item = 4 if row % 4 == 0 else 1  # the transfer moves words where it can
    return channel_buffer(CHIP, weight, layout, lambda build: pack, (1, row // item), item, (c0, c1))


def vector_buffer(
    constant: Value, layout: str, pack: Callable[[np.ndarray], np.ndarray], item: int, c0: int, c1: int
) -> Buffer:
    """Channels [c0, c1) of a packed vector of `item`-byte elements."""
    return channel_buffer(CHIP, constant, layout, lambda build: pack, (1, 1), item, (c0, c1))


def real_vector_buffer(
    op: Convolution | Matmul, requantize: Requantize, over_depth: Callable[[np.ndarray], np.ndarray], c0: int, c1: int
) -> Buffer:
    """fl(fl(bias) * scale), of the corrected bias in the asymmetric mode: what is added at the end (bmlang.md 3.3)."""
    _, weight, *biases = op.operands
    bias, scale = biases[0] if biases else None, np.float32(requantize.scale)
    if bias is not None and not op.zero_points:
        return vector_buffer(bias, f"times {scale}", lambda b: b.astype(np.float32) * scale, 4, c0, c1)
    key = "" if bias is None or bias.op is None else bias.op.attributes["key"]

    def pack(build: LaneTransfers) -> Callable[[np.ndarray], np.ndarray]:
        own = None if bias is None else build.coefficients.array(bias)
        return lambda w: requantize.vector(w, own, over_depth)

    layout = f"{op.opname} bias {key} {scale} {op.zero_points}"
    return channel_buffer(CHIP, weight, layout, pack, (1, 1), 4, (c0, c1))
