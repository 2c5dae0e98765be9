"""Matrix products of bytes: convolutions whose window is the whole row of the left operand (bm1684.md 6.1 "Large K").

The K inputs of a row are folded into channels and taps. The rows are those of images: a quarter of them in each of the
four images of a word, or almost. One instruction sums whole rows exactly; what follows is what follows a convolution.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.build import Build, compact_bytes, lane_bytes
from bmcompiler.backends.bm1684.chip import CHIP, align_up, aligned_strides
from bmcompiler.backends.bm1684.cycles import TileCycles
from bmcompiler.backends.bm1684.instructions.transfers import Side, in_lane, transfer
from bmcompiler.backends.bm1684.isa import Direction
from bmcompiler.backends.bm1684.machine import cycles_of
from bmcompiler.backends.bm1684.packed.channel_end import RULE as FACTORS
from bmcompiler.backends.bm1684.packed.channel_end import shifts_buffer, takes_factors
from bmcompiler.backends.bm1684.packed.conv_int import QUAD, emit_sums, real_vector_buffer, vector_buffer, weight_buffer
from bmcompiler.backends.bm1684.packed.int_requantize import Requantize
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation, is_constant
from bmcompiler.backends.lanes.kernels.sums.product import Product, product_of
from bmcompiler.backends.lanes.kernels.windows.conv_geometry import channel_groups
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Runs, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.quant_modes import ASYMMETRIC
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.target import rule

Fold = tuple[int, int]
"""Channels and taps whose product is the depth."""
_MAX_DEPTH = 4095  # channels of an operand (bm1684.md 13.1)
_MAX_TAPS = 4096
_MAX_STEP = 4095  # W stride of a GDMA source (bm1684.md 5.10)


class IntMatmulKernel(LocalKernel[Matmul]):
    """matmul of i8 and u8 with the modes of conv; the right operand may be an activation."""

    ops = (Matmul,)
    grid_of_result = False

    @rule("The left operand must be an activation")
    def computed_left(self, op: Matmul) -> bool:
        return is_activation(op.left)

    @rule("The bias must be a constant")
    def constant_bias(self, op: Matmul) -> bool:
        return is_constant(op.bias)

    @rule("The right operand must be a constant or an activation, in the asymmetric mode one constant matrix")
    def known_right(self, op: Matmul) -> bool:
        if op.mode == ASYMMETRIC:
            return is_constant(op.right) and prod(op.right.shape[:-2]) == 1
        return is_constant(op.right) or is_activation(op.right)

    @rule("The result must be i8, u8, i16 or u16")
    def known_result(self, op: Matmul) -> bool:
        return op.type.dtype in ("i8", "u8", "i16", "u16")

    @rule("A bias that is added before the shift must be i16 or u16")
    def known_bias(self, op: Matmul) -> bool:
        return op.bias is None or not Requantize(self.machine, op).adds_bias or op.bias.dtype in ("i16", "u16")

    @rule(FACTORS)
    def known_factors(self, op: Matmul) -> bool:
        return takes_factors(op, op.factors)

    @rule("The depth of the product must be at most 4095, or a product of two numbers up to 4095 and 4096")
    def depth_range(self, op: Matmul) -> bool:
        return bool(_folds(product_of(op).depth))

    @rule("The sums must fit 32 bits: a smaller depth")
    def exact_sums(self, op: Matmul) -> bool:
        return Requantize(self.machine, op).fits_accumulator(product_of(op).depth)

    @rule("A transposed left operand must have at most 4095 columns")
    def reachable_inputs(self, op: Matmul) -> bool:
        return not op.transpose_left or product_of(op).rows <= _MAX_STEP

    def grid(self, op: Matmul) -> tuple[Axis, ...]:
        product = product_of(op)
        return (
            Axis(product.rows, 4, CHIP.most_size),
            Axis(product.columns, CHIP.lanes, CHIP.most_channels),
            Axis(len(product.pairs), 1, 1),
            Axis(1),
        )

    def evaluate(self, op: Matmul, *arrays: Array) -> Array:
        """The op itself: sums are exact and rounding is the op's."""
        return op.evaluate(*arrays)

    def work(self, op: Matmul, box: Box) -> TileWork:
        product, requantize = product_of(op), Requantize(self.machine, op)
        (r0, r1), (c0, c1), (batch, _) = box[:3]
        images, rows = _images(r1 - r0)
        dims = (images, c1 - c0, rows, 1)
        fold = channels, taps = self._fold(op)
        inputs = [_left_buffer(op, product, fold, batch, (r0, r1)), _right_buffer(op, product, fold, batch, (c0, c1))]
        if op.bias is not None and requantize.adds_bias:
            inputs.append(vector_buffer(op.bias, "plain", np.asarray, 2, c0, c1))
        elif requantize.has_vector:
            inputs.append(real_vector_buffer(op, requantize, _over_depth(op), c0, c1))

        if op.factors is not None:
            inputs.append(shifts_buffer(op.factors, c0, c1))

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            left, right, *added = ins
            bias, vector = (added[0], added[-1]) if added else (0, 0)

            def sums(result: int, crossed: bool) -> None:
                window = Geometry((rows, taps), (1, taps)), channels, None
                reads = [(place, place + buffer.lane_bytes) for place, buffer in zip(ins, inputs)]
                operands = left, None if crossed else right, bias
                emit_sums(build, requantize, dims, operands, result, window, reads)

            requantize.emit(build, dims, sums, outs[0], scratch, vector)

        lines = [batch * product.rows + r0 + first for first in _starts(r1 - r0)]
        out = _result_buffer(op, requantize, dims, [line * product.columns + c0 for line in lines], product.columns)
        sums_cycles = self.machine.cycles.convolution(dims, taps, channels, 1) * (1 + requantize.crossed)
        cycles = sums_cycles + requantize.cycles(dims)
        return TileWork(tuple(inputs), (out,), requantize.scratch(dims), compute, cycles)

    def _fold(self, op: Matmul) -> Fold:
        facts = product_of(op), op.transpose_left, not is_constant(op.right), op.transpose_right
        return self.machine.decided(fold_of, cycles_of(self.machine), *facts)


def _folds(depth: int) -> list[tuple[int, int]]:
    """All (channels, taps) with channels * taps = depth that an instruction takes."""
    divided = ((*divmod(depth, taps), taps) for taps in range(1, min(depth, _MAX_TAPS) + 1))
    return [(channels, taps) for channels, rest, taps in divided if not rest and channels <= _MAX_DEPTH]


def fold_of(
    cycles: TileCycles, product: Product, left_transposed: bool, right_computed: bool, right_transposed: bool
) -> Fold:
    """(channels, taps) with channels * taps = depth that take least time to load and sum, and then least memory.

    Inputs of a row lie side by side, those of a channel's taps in one run: few taps are summed sooner, many are loaded
    sooner. So are columns of a computed right operand, which take a transfer for each tap or channel.
    """
    images, each = _images(product.rows)
    elements = product.rows * product.depth

    def cost(fold: Fold) -> tuple[int, ...]:
        channels, taps = fold
        sums = cycles.convolution((images, product.columns, each, 1), taps, channels, 1)
        run = taps if not left_transposed else each if taps == 1 else 1
        left = cycles.load(-(-elements // run), run, elements)
        transfers = 0 if not right_computed else 1 if right_transposed else min(taps, channels)
        size = lane_bytes((4, channels, 1, taps), 1)
        return sums + left + transfers * cycles.load(0, 0), size, channels, taps

    return min(_folds(product.depth), key=cost)


def _images(rows: int) -> tuple[int, int]:
    """(images, rows of each) for so many rows of a matrix."""
    images = min(rows, 4)
    return images, -(-rows // images)


def _starts(rows: int) -> list[int]:
    """First row of each image; the last one overlaps where the rows do not divide."""
    images, each = _images(rows)
    return [min(image * each, rows - each) for image in range(images)]


def _over_depth(op: Matmul) -> Any:
    """Sums of the weights behind each column."""
    axis = -1 if op.transpose_right else -2
    return lambda w: w.sum(axis).reshape(-1)


def _left_buffer(op: Matmul, product: Product, fold: Fold, batch: int, lines: tuple[int, int]) -> Buffer:
    """Rows of the left operand: those of images of channels x taps."""
    (channels, taps), (r0, r1) = fold, lines
    images, rows = _images(r1 - r0)
    row, step = (1, product.rows) if op.transpose_left else (product.depth, 1)
    start = product.pairs[batch][0] * product.rows * product.depth + r0 * row
    dims: Shape = (images, channels, rows, taps)
    size = lane_bytes(dims, 1)
    one = (1, channels, rows, taps)
    n, c, h, w = (QUAD * words for words in aligned_strides(one))

    def load(build: Build, address: int) -> None:
        for image, first in enumerate(_starts(r1 - r0)):
            outer = Side(build.source(op.left) + start + first * row, one, (0, taps * step, row, step))
            inner = in_lane(address, one, (n, c, h, w), (address, address + size), byte=image)
            transfer(build, Direction.SYSTEM_TO_LOCAL, outer, inner, 1)

    axes = "nh" if len({a for a, _ in product.pairs}) > 1 else "n"
    parts = prod(dims) if op.transpose_left else images * (1 if rows == 1 else rows * channels)
    return Buffer(size, axes, prod(dims), load, runs=Runs(parts, images * channels), loads=images)


def _result_buffer(op: Matmul, requantize: Requantize, dims: Shape, starts: list[int], pitch: int) -> Buffer:
    """How a tile is stored, image by image: its columns lie side by side in global memory.

    Args: starts: elements of the result before each image. pitch: elements from row to row.
    """
    images, columns, rows, _ = dims
    item = op.type.numpy.itemsize
    size = requantize.place_bytes(dims)

    def store(build: Build, address: int) -> None:
        for image, start in enumerate(starts):
            offset, (_, column, row, _) = requantize.image(dims, image)
            shape = (rows, columns, 1, 1)
            inner = in_lane(address, shape, (row, column, 0, 1), (address, address + size), byte=offset)
            outer = Side(build.neuron(op.result) + item * start, shape, (pitch, 1, 0, 1))
            transfer(build, Direction.LOCAL_TO_SYSTEM, inner, outer, item)

    return Buffer(size, "nchw", prod(dims) * item, store, runs=Runs(images * rows, prod(dims)))


def _right_buffer(op: Matmul, product: Product, fold: Fold, batch: int, columns: tuple[int, int]) -> Buffer:
    """Columns of the right operand as kernels of channels x taps."""
    (channels, taps), (c0, c1) = fold, columns
    row = taps * align_up(channels, QUAD)
    matrix = product.pairs[batch][1]
    if is_constant(op.right):

        def pack(w: np.ndarray) -> np.ndarray:
            by_column = w if op.transpose_right else np.swapaxes(w, -1, -2)
            return channel_groups(by_column.reshape(-1, channels, 1, taps), QUAD)

        first = matrix * product.columns
        found = weight_buffer(op.right, f"rows of {channels} {op.transpose_right}", pack, row, first + c0, first + c1)
        return (
            found
            if len({b for _, b in product.pairs}) == 1
            else Buffer(found.lane_bytes, "ch", found.nbytes, found.transfer, True)
        )
    column, step = (product.depth, 1) if op.transpose_right else (1, product.columns)
    start = matrix * product.depth * product.columns + c0 * column
    size = compact_bytes((1, c1 - c0, 1, row), 1)

    def load(build: Build, address: int) -> None:
        if channels % QUAD:
            build.fill_local(address, (1, CHIP.lanes, 1, -(-size // 4)), 4, 0)
        for first, place, shape, by, to in _pieces(op.transpose_right, channels, taps, c1 - c0, (column, step), row):
            outer = Side(build.source(op.right) + start + first, shape, by)
            inner = in_lane(address, shape, to, (address, address + size), byte=place)
            transfer(build, Direction.SYSTEM_TO_LOCAL, outer, inner, 1)

    count = (c1 - c0) * product.depth
    transfers = 1 if op.transpose_right else min(taps, channels)
    runs = Runs(1 if op.transpose_right else product.depth, count)
    return Buffer(size, "ch" if len(product.pairs) > 1 else "c", count, load, runs=runs, loads=transfers)


_Piece = tuple[int, int, Shape, Strides, Strides]


def _pieces(transposed: bool, channels: int, taps: int, columns: int, steps: tuple[int, int], row: int) -> list[_Piece]:
    """Transfers of computed kernels: (first element, byte in the kernel, shape, strides of both sides).

    Args: steps: elements from column to column, and from input to input. row: bytes of a kernel.

    Either the inputs of a column lie side by side, or the columns of an input do; transfers follow these runs.
    """
    column, step = steps
    depth = align_up(channels, QUAD)
    if transposed:
        return [(0, 0, (1, columns, channels, taps), (0, column, taps, 1), (0, row, 1, depth))]
    if taps <= channels:
        shape = (channels, columns, 1, 1)
        return [(t * step, t * depth, shape, (taps * step, 1, 0, 1), (1, row, 0, 1)) for t in range(taps)]
    shape = (taps, columns, 1, 1)
    return [(i * taps * step, i, shape, (step, 1, 0, 1), (depth, row, 0, 1)) for i in range(channels)]
