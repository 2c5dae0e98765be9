"""Matrix products of bytes with a factor for each column, or one for all (bm1684x-cube.md 8, 9).

Constants on the right lie with a column in each lane, so that bias and factor are those of a channel; the result is
transposed within local memory. Products of two computed tensors have rows in lanes, and one factor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Ar, Precision, Rounding, Trans
from bmcompiler.backends.bm1684x.instructions import arithmetic, special
from bmcompiler.backends.bm1684x.instructions.matrix import by_rows
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.instructions.requantize import requantize
from bmcompiler.backends.bm1684x.instructions.window import Sums, integer_sums
from bmcompiler.backends.bm1684x.kernels.channel_end import KINDS, Block, emit_end, end_cycles, fits_sums
from bmcompiler.backends.bm1684x.machine import cycles_of
from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Range, Shape
from bmcompiler.backends.lanes.kernels.base import DeviceKernel, LocalKernel, contents_of, is_activation, is_constant
from bmcompiler.backends.lanes.kernels.sums.product import product_of
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.chip import align_up
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.groups.regions import four_axes, rows_of
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Contents, Runs, TileWork
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.target import Kernel, rule

_BYTES = (Precision.INT8, Precision.INT32)


class IntMatmulKernel(LocalKernel[Matmul]):
    """Base: rows and columns of the result are tiled, the depth is whole."""

    ops = (Matmul,)
    grid_of_result = False

    @rule('Integers must be in the mode "channel"', got="mode")
    def known_mode(self, op: Matmul) -> bool:
        return op.mode == CHANNEL

    @rule("The left operand must be an activation and not transposed, bias and factors must be constants of integers")
    def known_operands(self, op: Matmul) -> bool:
        if op.bias is None or op.bias.type.is_float or op.narrow:
            return False
        return is_activation(op.left) and not op.transpose_left and is_constant(op.bias) and is_constant(op.factors)

    @rule("The zero point of the right operand must be 0", got="zero_points")
    def symmetric_weights(self, op: Matmul) -> bool:
        return not op.zero_points or op.zero_points[1] == 0

    @rule("The sums must fit 32 bits: fewer columns of the left operand")
    def exact_sums(self, op: Matmul) -> bool:
        return fits_sums(op, product_of(op).depth)

    @rule("Operands must have at most {kernel.chip.most_size} columns")
    def known_sizes(self, op: Matmul) -> bool:
        return max(product_of(op).depth, op.right.shape[-2], op.right.shape[-1]) <= self.chip.most_size

    def evaluate(self, op: Matmul, *arrays: Array) -> Array:
        """The op itself: sums are exact and rounding is the op's."""
        return Kernel.evaluate(self, op, *arrays)

    def byte_rows(self, rows: int, columns: int, item: int = 1) -> tuple[Shape, int]:
        """(shape, bytes of a lane) of a matrix with its rows in lanes."""
        shape = (1, rows, 1, columns)
        return shape, self.chip.aligned_bytes(shape, item)

    def rows_of(self, value: Value, first: int, rows: Range, columns: Range, pitch: int, axes: str) -> Buffer:
        """Rows of an activation that is a matrix from element `first` on."""
        shape, size = self.byte_rows(rows[1] - rows[0], columns[1] - columns[0])

        def load(build: LaneBuild, address: int) -> None:
            start = build.source(value) + first + rows[0] * pitch + columns[0]
            build.load(start, shape, (0, pitch, 0, 1), 1, address)

        runs, kept = Runs(shape[1], shape[1]), _all_rows(value, shape)
        return Buffer(size, axes, shape[1] * shape[3], load, not is_activation(value), kept, runs)

    def result_rows(self, op: Matmul, first: int, rows: Range, columns: Range) -> Buffer:
        """Rows of the result, from element `first` of it on, to store."""
        item, pitch = op.type.numpy.itemsize, op.type.shape[-1]
        shape, size = self.byte_rows(rows[1] - rows[0], columns[1] - columns[0], item)

        def store(build: LaneBuild, address: int) -> None:
            start = build.neuron(op.result) + item * (first + rows[0] * pitch + columns[0])
            build.store(start, shape, (0, pitch, 0, 1), item, address)

        runs, kept = Runs(shape[1], shape[1]), _all_rows(op.result, shape)
        return Buffer(size, "nch", item * shape[1] * shape[3], store, contents=kept, runs=runs)


def _all_rows(value: Value, shape: Shape) -> Contents | None:
    """What rows hold that are all of an activation; None for some of them."""
    return contents_of(value, shape, shape) if value.type.size == shape[1] * shape[3] else None


def _turned(box: Box) -> Box:
    """Rows as columns."""
    n, c, h, w = box
    return n, w, h, c


class IntInnerKernel(IntMatmulKernel):
    """A constant right operand, with factors for each column."""

    def grid(self, op: Matmul) -> tuple[Axis, ...]:
        product, most = product_of(op), self.chip.most_size
        return (
            Axis(product.rows, 1, most),
            Axis(product.columns, self.chip.lanes, self.chip.most_channels),
            Axis(1),
            Axis(1),
        )

    def work(self, op: Matmul, box: Box) -> TileWork:
        rows, columns = box[:2]
        pixel = self.reads_pixel(op)
        depth = product_of(op).depth
        left = self._pixel(op) if pixel else self.rows_of(op.left, 0, rows, (0, depth), depth, "n")
        return self._multiplied(op, rows, columns, left, self.result_rows(op, 0, rows, columns))

    def boxed(self, op: Matmul, box: Box) -> TileWork | None:
        """Some rows and columns."""
        product, shape = product_of(op), four_axes(op.type.shape)
        found = rows_of(shape, box, parts=True)
        if product.rows != shape[2] or found is None or self.reads_pixel(op):
            return None
        (_, rows), columns = found, box[3]
        left: Box = ((0, 1), rows, (0, 1), (0, product.depth))
        made: Box = ((0, 1), rows, (0, 1), columns)
        if not all(self.chip.fits_fields(extents(each)) for each in (left, made, _turned(made))):
            return None
        read = self.machine.activation_in(op.left, (1, product.rows, 1, product.depth), left)
        out = self.machine.activation_out(op.result, (1, product.rows, 1, product.columns), made)
        work = self._multiplied(op, rows, columns, read, out)
        return work if self.fits(work) else None

    def _multiplied(self, op: Matmul, row: Range, column: Range, left: Buffer, out: Buffer) -> TileWork:
        """Rows by columns of the result, of these rows of the left operand."""
        (r0, r1), (c0, c1), pixel = row, column, self.reads_pixel(op)
        product, item, chip = product_of(op), op.type.numpy.itemsize, self.chip
        rows, columns, depth = r1 - r0, c1 - c0, product.depth
        dims = (1, columns, 1, rows)
        signs = KINDS[op.right.dtype][1], KINDS[op.left.dtype][1]
        block = Block(self.machine, op, (c0, c1), align_up(depth, self.chip.alignment), False, True)
        inputs = left, replace(self._weights(op, block), part=(c0, c1))

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            sums = Words(scratch[0], dims)
            place = ins[1] + block.weights
            below, beside = Words(place, (1, columns, 1, depth)), Words(ins[0], (1, rows, 1, depth))
            reads = [(place, place + buffer.lane_bytes) for place, buffer in zip(ins, inputs)]
            if pixel:
                summed = integer_sums(sums, ins[0], (place, depth), Geometry((1, 1), (1, 1)), Sums(signs[::-1]))
            else:
                summed = by_rows(sums, below, beside, *_BYTES, signs, transposed=True)
            build.issue(summed, reads, [chip.plane(sums.address, dims)])
            if block.spread_bytes:
                block.spread(build, ins[1], scratch[2])
            made = scratch[1]
            emit_end(op, build, dims, sums.address, scratch[2] if block.spread_bytes else ins[1] + block.first, made)
            shape, kind = (1, rows, 1, columns), KINDS[op.type.dtype][0]
            command = special.move(Trans.WC, shape, outs[0], made, kind, (columns, rows))
            build.issue(command, [chip.plane(made, dims, item)], [chip.plane(outs[0], shape, item)])

        scratch = (
            *(chip.aligned_bytes(dims), chip.aligned_bytes(dims, item)),
            *([block.spread_bytes] if block.spread_bytes else ()),
        )
        cycles = cycles_of(self.machine).row_matrix(dims, depth, 1) + end_cycles(op, self.machine.cycles, dims)
        cycles += self.machine.cycles.pass_cycles((1, rows, 1, columns), item)
        cycles += block.spread_cycles(self.machine.cycles) if block.spread_bytes else 0
        return TileWork(inputs, (out,), scratch, compute, cycles)

    @staticmethod
    def reads_pixel(op: Matmul) -> bool:
        """Whether the left operand is a map of one pixel, whose channels lie in lanes: a convolution reads it there."""
        return root_of(op.left).shape == (1, product_of(op).depth, 1, 1)

    def _pixel(self, op: Matmul) -> Buffer:
        view = (1, product_of(op).depth, 1, 1)
        whole = tuple((0, size) for size in view)
        return replace(self.machine.activation_in(op.left, view, whole), axes="")

    @staticmethod
    def _weights(op: Matmul, block: Block) -> Buffer:
        """A column in each lane, padded as aligned tensors are, and what its sums end with."""

        def packed(w: np.ndarray) -> np.ndarray:
            columns = w.reshape(w.shape[-2:])
            columns = columns if op.transpose_right else columns.T
            return np.pad(columns, [(0, 0), (0, block.row - product_of(op).depth)])

        def over_depth(w: np.ndarray) -> np.ndarray:
            return w.sum(-1 if op.transpose_right else -2)

        return block.buffer(packed, over_depth, f"columns of bytes{' transposed' * op.transpose_right}")


class IntProductKernel(IntMatmulKernel):
    """Two computed operands, or a batch of constants: one factor for all columns."""

    @rule("Products of two computed tensors must have one factor")
    def one_factor(self, op: Matmul) -> bool:
        return op.factors is not None and op.factors.shape[0] == 1

    def grid(self, op: Matmul) -> tuple[Axis, ...]:
        product, most = product_of(op), self.chip.most_size
        rows = Axis(product.rows, self.chip.lanes, self.chip.most_channels)
        return rows, Axis(product.columns, 1, most), Axis(len(product.pairs), 1, 1), Axis(1)

    def work(self, op: Matmul, box: Box) -> TileWork:
        (r0, r1), (c0, c1), (batch, _) = box[:3]
        product, chip = product_of(op), self.chip
        one, other = product.pairs[batch]
        depth, dims = product.depth, (1, r1 - r0, 1, c1 - c0)
        lefts, rights = (len(set(each)) for each in zip(*product.pairs))
        origin = other * depth * product.columns
        right, pitch = (
            (((c0, c1), (0, depth)), depth) if op.transpose_right else (((0, depth), (c0, c1)), product.columns)
        )
        left_rows = self.rows_of(
            op.left, one * product.rows * depth, (r0, r1), (0, depth), depth, "nh" if lefts > 1 else "n"
        )
        right_rows = self.rows_of(op.right, origin, *right, pitch, "ch" if rights > 1 else "c")
        bias = self._bias(op, dims, c0)
        inputs = (left_rows, right_rows, bias)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            sums, left = Words(scratch[0], dims), Words(ins[0], (1, dims[1], 1, depth))
            shape = (1, dims[3], 1, depth) if op.transpose_right else (1, depth, 1, dims[3])
            signs = KINDS[op.left.dtype][1], KINDS[op.right.dtype][1]
            reads = [(place, place + buffer.lane_bytes) for place, buffer in zip(ins, inputs)]
            second = Words(ins[1], shape)
            command = by_rows(sums, left, second, *_BYTES, signs, transposed=op.transpose_right)
            words = chip.plane(sums.address, dims)
            build.issue(command, reads[:2], [words])
            self._emit_end(op, build, dims, sums.address, ins[2], outs[0])

        out = self.result_rows(op, batch * product.rows * product.columns, (r0, r1), (c0, c1))
        cycles = cycles_of(self.machine).row_matrix(dims, depth, 1) + end_cycles(op, self.machine.cycles, dims)
        return TileWork(inputs, (out,), (chip.aligned_bytes(dims),), compute, cycles)

    def _emit_end(self, op: Matmul, build: Build, shape: Shape, sums: int, bias: int, result: int) -> None:
        """As `emit_end`, with the bias along the columns and one factor."""
        assert op.factors is not None, "the mode channel has factors"
        chip, words = self.chip, self.chip.plane(sums, shape)
        (multiplier, shift), *_ = build.coefficients.array(op.factors).tolist()
        zero = op.zero_points[2] if op.zero_points else 0
        total, added = Operand(sums, Precision.INT32), Operand(bias, Precision.INT32, True, (0, 0, 0, 1))
        reads = [words, (bias, bias + chip.aligned_bytes((1, 1, 1, shape[3])))]
        build.issue(arithmetic.integer(Ar.ADD, shape, total, total, added, saturation=True), reads, [words])
        kind, signed = KINDS[op.type.dtype]
        out, made = Operand(result, kind, signed), chip.plane(result, shape, op.type.numpy.itemsize)
        place = (multiplier, shift, zero)
        build.issue(requantize(shape, out, sums, place, Rounding.HALF_EVEN), [words], [made])
        if op.activation and signed:
            build.issue(arithmetic.binary(Ar.MAX, shape, out, out, constant(0, kind, signed)), [made], [made])

    def _bias(self, op: Matmul, dims: Shape, c0: int) -> Buffer:
        """The same row for every lane."""
        assert op.bias is not None, "the mode channel has a bias"
        value, shape = op.bias, (1, min(dims[1], self.chip.lanes), 1, dims[3])

        def load(build: LaneBuild, address: int) -> None:
            build.load(build.source(value) + 4 * c0, shape, (0, 0, 0, 1), 4, address)

        return Buffer(self.chip.aligned_bytes(shape), "c", 4 * dims[3], load, True)


def integer_kernel(op: Matmul, inner: DeviceKernel[Any], general: DeviceKernel[Any]) -> DeviceKernel[Any]:
    """The kernel for a product of bytes."""
    per_column = op.factors is not None and op.factors.shape[0] == op.type.shape[-1]
    return inner if is_constant(op.right) and per_column and len(product_of(op).pairs) == 1 else general
