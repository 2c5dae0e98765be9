"""Matrix products whose rows lie in lanes, of both operands and of the result.

16-bit floats have a command for them (bm1684x-cube.md 8): it sums the whole depth in groups of 32, so that results do
not depend on tiles, and takes the right operand transposed, too; a bias is added by the execution units.

Products of fp32 are convolutions with windows of one pixel: rows of the left operand are the weights of as many output
channels, rows of the right one input channels, and columns pixels. A convolution fills the multipliers with 64 rows by
16 columns, a product in sections of columns with 1024 columns. Its sums are the same bits (bm1684x-cube.md 5.3, 7):
bias and products go to two accumulators in turn, where the bias is what the result held before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Precision
from bmcompiler.backends.bm1684x.instructions import matrix, window
from bmcompiler.backends.bm1684x.lane_commands import float_of
from bmcompiler.backends.bm1684x.tile_cycles import CYCLES
from bmcompiler.backends.lanes.arithmetic import Arithmetic
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import is_activation, is_constant, item_bytes
from bmcompiler.backends.lanes.kernels.float_matmul import chunks_of, summed_in_chunks
from bmcompiler.backends.lanes.kernels.fused_activation import activation_cycles, emit_activation
from bmcompiler.backends.lanes.kernels.product import MOST_PRODUCTS, FloatProductKernel, Product, product_of
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.matrices import matrix_shape
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.groups.regions import rows_of
from bmcompiler.codegen.groups.slices import RANK
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ir import Value
from bmcompiler.ops.nn import Matmul
from bmcompiler.target import rule

_GROUP = 32
_DEEPEST = 1 << 13
"""Rows of the right operand of which the smallest tiles fit local memory."""
Span = tuple[int, int]
Factors = tuple[Words, Words, Words]
"""Result, left and right operand of a product."""


class RowProductKernel(FloatProductKernel):
    """Base: rows and columns of the result are tiled, one pair of matrices at a time."""

    @rule("The left operand must not be transposed")
    def plain_left(self, op: Matmul) -> bool:
        return not op.transpose_left

    @rule("The depth must be at most {kernel.chip.most_size}")
    def known_depth(self, op: Matmul) -> bool:
        return product_of(op).depth <= self.chip.most_size

    def grid(self, op: Matmul) -> tuple[Axis, ...]:
        product, most, lanes = product_of(op), self.chip.most_size, self.chip.lanes
        columns = lanes if op.transpose_right else _GROUP  # few enough that the right operand of a deep product fits
        return (
            Axis(product.rows, lanes, most // lanes * lanes),
            Axis(product.columns, columns, most // columns * columns),
            Axis(len(product.pairs), 1, 1),
            Axis(1),
        )

    def work(self, op: Matmul, box: Box) -> TileWork:
        product, item, chip = product_of(op), item_bytes(op.left), self.chip
        (r0, r1), (c0, c1), (batch, _) = box[:3]
        rows, columns, depth = r1 - r0, c1 - c0, product.depth
        left, right = product.pairs[batch]
        lefts, rights = len({a for a, _ in product.pairs}), len({b for _, b in product.pairs})
        result: Shape = (1, rows, 1, columns)
        right_shape: Shape = (1, columns, 1, depth) if op.transpose_right else (1, depth, 1, columns)
        inner = product.columns if not op.transpose_right else depth
        right_start = right * depth * product.columns + (c0 * depth if op.transpose_right else c0)

        inputs = [
            self._rows(
                op.left,
                left * product.rows * depth + r0 * depth,
                (1, rows, 1, depth),
                depth,
                "nh" if lefts > 1 else "n",
            ),
            self._rows(op.right, right_start, right_shape, inner, "ch" if rights > 1 else "c"),
        ]

        def store(build: Build, address: int) -> None:
            first = (batch * product.rows + r0) * product.columns + c0
            strides = (0, product.columns, 0, 1)
            build.store(build.neuron(op.result) + item * first, result, strides, item, address)

        out = Buffer(chip.aligned_bytes(result, item), "nch", item * rows * columns, store)
        views = (1, rows, 1, depth), right_shape, result
        return self._multiplied(op, inputs, out, views, ((0, 0),), c0)

    def whole(self, op: Matmul) -> TileWork | None:
        """All products in one tile, each matrix an image whose rows are channels, so that other ops read them."""
        product = product_of(op)
        return self._rows_of_products(op, (0, len(product.pairs)), (0, product.rows))

    def boxed(self, op: Matmul, box: Box) -> TileWork | None:
        """Rows of some products, with all that they are multiplied by."""
        product = product_of(op)
        if op.type.rank != RANK or product.rows != op.type.shape[2]:
            return None
        found = rows_of(op.type.shape, box)
        return None if found is None else self._rows_of_products(op, *found)

    def _rows_of_products(self, op: Matmul, images: Span, rows: Span) -> TileWork | None:
        product = product_of(op)
        lefts, rights = (max(each) + 1 for each in zip(*product.pairs))
        right = (product.columns, product.depth) if op.transpose_right else (product.depth, product.columns)
        views: tuple[Shape, ...] = (
            (lefts, product.rows, 1, product.depth),
            (rights, right[0], 1, right[1]),
            (len(product.pairs), product.rows, 1, product.columns),
        )
        pairs = product.pairs[slice(*images)]
        (first, end), (below, last) = ((min(each), max(each) + 1) for each in zip(*pairs))
        boxes: tuple[Box, ...] = (
            ((first, end), rows, (0, 1), (0, product.depth)),
            ((below, last), *((0, size) for size in views[1][1:])),
            (images, rows, (0, 1), (0, product.columns)),
        )
        if len(pairs) > MOST_PRODUCTS or not all(self.chip.fits_fields(extents(box)) for box in boxes):
            return None
        inputs = [self.machine.activation_in(op.left, views[0], boxes[0])]
        inputs.append(self.machine.activation_in(op.right, views[1], boxes[1]))
        out, made = (
            self.machine.activation_out(op.result, views[2], boxes[2]),
            [(a - first, b - below) for a, b in pairs],
        )
        work = self._multiplied(op, inputs, out, tuple(map(extents, boxes)), made, 0)
        return work if self.fits(work) else None

    def _multiplied(
        self,
        op: Matmul,
        inputs: list[Buffer],
        out: Buffer,
        views: tuple[Shape, ...],
        pairs: Sequence[tuple[int, int]],
        first: int,
    ) -> TileWork:
        """Products of `pairs` of images of the operands, which lie as `views`; first: column of the bias."""
        item, chip, timing = item_bytes(op.left), self.chip, self.machine.cycles
        result, biased = views[2], op.bias is not None
        _, rows, _, columns = result
        if biased:
            assert op.bias is not None
            inputs.append(self._rows(op.bias, first, (1, min(rows, chip.lanes), 1, columns), 0, "nc"))

        def image(address: int, view: Shape, number: int) -> Words:
            start = address + number * item * chip.aligned_strides(view, item=item)[0]
            return Words(start, (1, *view[1:]), item=item, dtype=op.left.dtype)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            made = Words(outs[0], result, item=item, dtype=op.left.dtype)
            bias = Words(ins[2], result, (0, 0, 0, 1), item=item, dtype=op.left.dtype) if biased else None
            self.begin(build, made, bias)
            factors = [
                (image(outs[0], result, n), image(ins[0], views[0], a), image(ins[1], views[1], b))
                for n, (a, b) in enumerate(pairs)
            ]
            self.multiply(op, build, factors, scratch)
            self.end(build, made, bias)
            emit_activation(build, op.activation, made)

        one = (1, rows, 1, columns)
        cycles = self.cycles(op, one, views[0][3], [b for _, b in pairs]) + biased * self.bias_cycles(result, item)
        cycles += activation_cycles(timing, op.activation, result, item)
        return TileWork(tuple(inputs), (out,), self.scratch(op, views[1]), compute, cycles)

    # -- what element types have of their own --------------------------------------------------------------------------
    def begin(self, build: Build, made: Words, bias: Words | None) -> None:
        """Before the products."""

    def end(self, build: Build, made: Words, bias: Words | None) -> None:
        """Behind the products."""

    def multiply(self, op: Matmul, build: Build, factors: Sequence[Factors], scratch: list[int]) -> None:
        """Commands that make each result of its left and right matrix."""
        raise TypeError(f"{type(self).__name__} has no products")

    def scratch(self, op: Matmul, right: Shape) -> tuple[int, ...]:
        """Bytes of a lane that `multiply` needs; right: as which the right operand lies."""
        return ()

    def cycles(self, op: Matmul, result: Shape, depth: int, rights: Sequence[int]) -> int:
        """Of all products; result: of one, rights: number of the right matrix of each."""
        raise TypeError(f"{type(self).__name__} has no products")

    def bias_cycles(self, result: Shape, item: int) -> int:
        """What a bias adds; result: of all products."""
        raise TypeError(f"{type(self).__name__} has no bias")

    def _rows(self, value: Value, start: int, shape: Shape, pitch: int, axes: str) -> Buffer:
        """Rows of a matrix, one after the other in lanes; they lie `pitch` elements apart, 0 repeats one."""
        item = item_bytes(value)

        def load(build: Build, address: int) -> None:
            build.load(build.source(value) + item * start, shape, (0, pitch, 0, 1), item, address)

        moved = item * shape[3] * (shape[1] if pitch else 1)
        return Buffer(self.chip.aligned_bytes(shape, item), axes, moved, load, not is_activation(value))


class HalfMatmulKernel(RowProductKernel):
    """matmul of 16-bit floats: a command for each product."""

    @rule("Operands, bias and result must be of one type, {kernel.floats}")
    def known_types(self, op: Matmul) -> bool:
        return self.one_float(*op.operands, op.result)

    def end(self, build: Build, made: Words, bias: Words | None) -> None:
        if bias is not None:
            build.combine(Unit.ADD, made, made, bias)

    def multiply(self, op: Matmul, build: Build, factors: Sequence[Factors], scratch: list[int]) -> None:
        for target, left, right in factors:
            kind = float_of(target)
            command = matrix.by_rows(target, left, right, kind, kind, transposed=op.transpose_right)
            build.issue(command, *build.ranges(target, left, right))

    def cycles(self, op: Matmul, result: Shape, depth: int, rights: Sequence[int]) -> int:
        return len(rights) * CYCLES.row_matrix(result, depth, item_bytes(op.left))

    def bias_cycles(self, result: Shape, item: int) -> int:
        return self.machine.cycles.pass_cycles(result, item, pair=True, in_place=True)


class SingleMatmulKernel(RowProductKernel):
    """matmul of fp32: convolutions; one command transposes a right operand that lies so."""

    @rule("Operands, bias and result must be f32")
    def float_types(self, op: Matmul) -> bool:
        return all(v.dtype == "f32" for v in (*op.operands, op.result))

    def sums(self, arithmetic: Arithmetic, left: Any, right: Any, bias: Any | None) -> Any:
        return summed_in_chunks(arithmetic, left, right, bias)

    def begin(self, build: Build, made: Words, bias: Words | None) -> None:
        if bias is not None:
            build.assign(made, bias)

    def multiply(self, op: Matmul, build: Build, factors: Sequence[Factors], scratch: list[int]) -> None:
        transposed: Words | None = None
        for target, left, right in factors:
            if op.transpose_right:
                if right != transposed:
                    n, columns, h, depth = right.shape
                    build.transpose(Words(scratch[0], (n, depth, h, columns)), right)
                    transposed = right
                right = Words(scratch[0], (n, depth, h, columns))
            self._sums(op, build, target, left, right)

    def _sums(self, op: Matmul, build: Build, target: Words, left: Words, right: Words) -> None:
        """Commands of one product: chunks of the depth, each for as many rows as have their weights without gaps."""
        _, depth, _, columns = right.shape
        row = self.chip.aligned_strides(left.shape)[1]
        for down, count in _row_groups(left.shape[1], self.chip.lanes, row == depth == chunks_of(depth)[0][1]):
            place = target.address + 4 * down * self.chip.aligned_strides(target.shape)[1]
            made = Words(place, (1, count, 1, columns))
            for k0, k1 in chunks_of(depth):
                weights = left.address + 4 * (down * row + k0), k1 - k0
                source = right.address + 4 * (k0 // self.chip.lanes) * self.chip.aligned_strides(right.shape)[1]
                geometry, add = Geometry((1, columns), (1, 1)), k0 > 0 or op.bias is not None
                kind = Precision.FP32
                command = window.convolution(made, source, weights, None, geometry, kind, kind, add=add)
                build.issue(command, *build.ranges(target, left, right))

    def scratch(self, op: Matmul, right: Shape) -> tuple[int, ...]:
        _, rows, _, columns = right
        return (self.chip.aligned_bytes((1, columns, 1, rows)),) if op.transpose_right else ()

    def cycles(self, op: Matmul, result: Shape, depth: int, rights: Sequence[int]) -> int:
        turns = sum(a != b for a, b in zip(rights, (None, *rights))) if op.transpose_right else 0
        turning = turns * self.machine.cycles.pass_cycles((1, depth, 1, result[3]))
        return len(rights) * CYCLES.convolution(result, 1, depth) + turning

    def bias_cycles(self, result: Shape, item: int) -> int:
        return self.machine.cycles.pass_cycles(result, item)

    def is_quicker(self, op: Matmul) -> bool:
        """Whether this takes less time than products in sections of columns, as far as their shapes tell."""
        product = product_of(op)
        if op.transpose_left or product.depth > _DEEPEST:
            return False
        facts = op.bias is not None, op.transpose_right, is_constant(op.right)
        return self.machine.decided(_rows_are_quicker, self.machine, product, *facts)


def _row_groups(rows: int, lanes: int, together: bool) -> Iterator[tuple[int, int]]:
    """(rows of lanes before it, rows) of what one command takes."""
    step = rows if together else lanes
    return ((first // lanes, min(step, rows - first)) for first in range(0, rows, step))


def _rows_are_quicker(machine: LaneMachine, product: Product, biased: bool, transposed: bool, constant: bool) -> bool:
    """Commands and transfers of rows in lanes and of sections of columns; nothing is known of what runs beside what."""
    rows, depth, columns, count = product.rows, product.depth, product.columns, len(product.pairs)
    lefts, rights = (len(set(each)) for each in zip(*product.pairs))
    timing, bus = machine.matrix_cycles, machine.cycles
    right = (columns, depth) if transposed else (depth, columns)
    by_rows = count * CYCLES.convolution((1, rows, 1, columns), 1, depth)
    by_rows += bus.load(lefts * rows, 4 * depth) + bus.load(rights * right[0], 4 * right[1])
    by_rows += bus.store(count * rows, 4 * columns)
    left, below, made = (
        matrix_shape(machine.chip, *size) for size in ((rows, depth), (depth, columns), (rows, columns))
    )
    in_sections = count * timing.matrix(made, depth, biased) + lefts * timing.load_matrix(left, (rows, depth), depth)
    in_sections += count * timing.load_matrix(made, (rows, columns), columns)
    if constant and len(chunks_of(depth)) > 1:  # a lane's rows lie one after the other
        loading = bus.load(below[1], 4 * depth * below[3])
    elif constant:
        loading = timing.load_sections(below, below[1] * below[3])
    else:
        loading = timing.load_matrix(below, (depth, columns), columns)
    return by_rows <= in_sections + rights * loading
