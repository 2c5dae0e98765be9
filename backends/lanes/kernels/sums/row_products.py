"""Matrix products whose rows lie in lanes, of both operands and of the result.

Rows and columns of the result are tiled, the depth is not. Products of fp32 are convolutions with windows of one pixel:
rows of the left operand are the weights of as many output channels, rows of the right one input channels, and columns
pixels. Kernels of chips say which commands that takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import is_activation, is_constant, item_bytes
from bmcompiler.backends.lanes.kernels.functions.fused_activation import activation_cycles, emit_activation
from bmcompiler.backends.lanes.kernels.sums.product import (
    MOST_PRODUCTS,
    FloatProductKernel,
    Product,
    product_of,
    product_of_images,
)
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.groups.regions import four_axes, rows_of
from bmcompiler.codegen.tiling import Apart, Axis, Box, Buffer, Runs, TileWork
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.target import rule

_COLUMNS = 32
Span = tuple[int, int]
Factors = tuple[Words, Words, Words]
"""Result, left and right operand of a product."""


class RowProductKernel(FloatProductKernel):
    """Base: rows and columns of the result are tiled, one pair of matrices at a time.

    Constant right operands are stored as they load fastest: transposed, so that a column is a run of a lane, where rows
    of few columns take longer, or the columns of each tile one row after the other (`packs_tiles`).
    """

    transposes_constants = False
    """Whether commands take right operands transposed."""
    packs_tiles = False
    """Whether a run of global memory takes longer than a run of a lane."""

    @rule("The left operand must not be transposed")
    def plain_left(self, op: Matmul) -> bool:
        return not op.transpose_left

    @rule("The depth must be at most {kernel.chip.most_size}")
    def known_depth(self, op: Matmul) -> bool:
        return product_of(op).depth <= self.chip.most_size

    def grid(self, op: Matmul) -> tuple[Axis, ...]:
        product, most, lanes = product_of(op), self.chip.most_size, self.chip.lanes
        columns = lanes if self.is_transposed(op) else _COLUMNS  # few, so that the right operand of a deep product fits
        return (
            Axis(product.rows, lanes, self.chip.most_channels // lanes * lanes),
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
        transposed = self.is_transposed(op)
        right_shape: Shape = (1, columns, 1, depth) if transposed else (1, depth, 1, columns)
        inner = product.columns if not transposed else depth
        right_start = right * depth * product.columns + (c0 * depth if transposed else c0)

        inputs = [
            self._rows(
                op.left,
                left * product.rows * depth + r0 * depth,
                (1, rows, 1, depth),
                depth,
                "nh" if lefts > 1 else "n",
            ),
            self._constant(op, (c0, c1), right_shape, right, "ch" if rights > 1 else "c")
            if is_constant(op.right)
            else self._rows(op.right, right_start, right_shape, inner, "ch" if rights > 1 else "c"),
        ]

        def store(build: LaneBuild, address: int) -> None:
            first = (batch * product.rows + r0) * product.columns + c0
            strides = (0, product.columns, 0, 1)
            build.store(build.neuron(op.result) + item * first, result, strides, item, address)

        moved = Runs(1 if columns == product.columns else rows, rows)
        out = Buffer(chip.aligned_bytes(result, item), "nch", item * rows * columns, store, runs=moved)
        views = (1, rows, 1, depth), right_shape, result
        return self._multiplied(op, inputs, out, views, ((0, 0),), c0)

    def whole(self, op: Matmul) -> TileWork | None:
        """All products in one tile, each matrix an image whose rows are channels, so that other ops read them."""
        product = product_of_images(op)
        return self._rows_of_products(op, product, (0, len(product.pairs)), (0, product.rows), (0, product.columns))

    def boxed(self, op: Matmul, box: Box) -> TileWork | None:
        """Rows of some products, or some of their columns where the right operand is a constant."""
        product = product_of(op)
        shape = four_axes(op.type.shape)
        if product.rows != shape[2]:
            return None
        found = rows_of(shape, box, parts=is_constant(op.right))
        return None if found is None else self._rows_of_products(op, product, *found, box[3])

    def _rows_of_products(
        self, op: Matmul, product: Product, images: Span, rows: Span, columns: Span
    ) -> TileWork | None:
        lefts, rights = (max(each) + 1 for each in zip(*product.pairs))
        transposed = self.is_transposed(op)
        right = (product.columns, product.depth) if transposed else (product.depth, product.columns)
        views: tuple[Shape, ...] = (
            (lefts, product.rows, 1, product.depth),
            (rights, right[0], 1, right[1]),
            (len(product.pairs), product.rows, 1, product.columns),
        )
        pairs = product.pairs[slice(*images)]
        (first, end), (below, last) = ((min(each), max(each) + 1) for each in zip(*pairs))
        boxes: tuple[Box, ...] = (
            ((first, end), rows, (0, 1), (0, product.depth)),
            ((below, last), *((columns, (0, 1), (0, right[1])) if transposed else ((0, right[0]), (0, 1), columns))),
            (images, rows, (0, 1), columns),
        )
        if len(pairs) > MOST_PRODUCTS or not all(self.chip.fits_fields(extents(box)) for box in boxes):
            return None
        inputs = [self.machine.activation_in(op.left, views[0], boxes[0])]
        if is_constant(op.right):
            weights = self._constant(op, columns, extents(boxes[1]), below)
            inputs.append(replace(weights, part=((below, last), columns)))
        else:
            inputs.append(self.machine.activation_in(op.right, views[1], boxes[1]))
        out, made = (
            self.machine.activation_out(op.result, views[2], boxes[2]),
            [(a - first, b - below) for a, b in pairs],
        )
        work = self._multiplied(op, inputs, out, tuple(map(extents, boxes)), made, columns[0])
        return work if self.fits(work) else None

    def _multiplied(
        self,
        op: Matmul,
        inputs: list[Buffer],
        out: Buffer,
        views: tuple[Shape, ...],
        pairs: Sequence[Span],
        first: int,
    ) -> TileWork:
        """Products of `pairs` of images of the operands, which lie as `views`; first: column of the bias."""
        item, chip, timing = item_bytes(op.left), self.chip, self.machine.cycles
        result, biased = views[2], op.bias is not None
        _, rows, _, columns = result
        if biased:
            assert op.bias is not None, "the caller asked for the bias"
            lanes = min(rows, chip.lanes)
            bias = self._rows(op.bias, first, (1, lanes, 1, columns), 0, "ncw")
            inputs.append(replace(bias, part=(lanes, first, columns)))

        def image(address: int, view: Shape, number: int) -> Words:
            start = address + number * item * chip.aligned_strides(view, item=item)[0]
            return Words(start, (1, *view[1:]), item=item, dtype=op.left.dtype)

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
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
        cycles = self.cycles(op, one, views[0][3], pairs) + biased * self.bias_cycles(result, item)
        cycles += activation_cycles(timing, op.activation, result, item)
        apart = self.apart(op, one, views[0][3], len(pairs))
        return TileWork(tuple(inputs), (out,), self.scratch(self.is_transposed(op), views[1]), compute, cycles, apart)

    # -- right operands ------------------------------------------------------------------------------------------------
    def is_transposed(self, op: Matmul) -> bool:
        """Whether lanes hold columns of the right operand: it lies so, or is stored so to load faster."""
        if op.transpose_right or not (self.transposes_constants and is_constant(op.right)):
            return op.transpose_right
        return self.machine.decided(self._loads_faster_transposed, product_of(op), item_bytes(op.left))

    def _loads_faster_transposed(self, product: Product, item: int) -> bool:
        depth, columns, load = product.depth, product.columns, self.machine.cycles.load
        if not self._has_room(product, item, True):
            return False
        return load(columns, item * depth) + self.transposing_cycles(depth, columns) < load(depth, item * columns)

    def transposing_cycles(self, depth: int, columns: int) -> int:
        """Of a right operand that lies transposed."""
        return 0

    def has_room(self, op: Matmul) -> bool:
        """Whether the smallest tile fits local memory, and the depth a command."""
        return self._has_room(product_of(op), item_bytes(op.left), self.is_transposed(op))

    def _has_room(self, product: Product, item: int, transposed: bool) -> bool:
        chip, depth, rows = self.chip, product.depth, min(product.rows, self.chip.lanes)
        columns = min(product.columns, chip.lanes if transposed else _COLUMNS)
        right = (1, columns, 1, depth) if transposed else (1, depth, 1, columns)
        areas = (1, rows, 1, depth), right, (1, rows, 1, columns), (1, rows, 1, columns)
        needed = sum(chip.aligned_bytes(area, item) for area in areas) + sum(self.scratch(transposed, right))
        return depth <= chip.most_size and needed <= chip.tile_bytes

    def _constant(self, op: Matmul, columns: Span, shape: Shape, first: int, axes: str = "") -> Buffer:
        """Columns of matrices of the constant right operand from the first one on, loaded as `shape`."""
        (c0, c1), product, item = columns, product_of(op), item_bytes(op.right)
        images, rows, _, width = shape
        matrix, pitch = product.depth * product.columns, product.depth if self.is_transposed(op) else product.columns
        start, layout, pack = c0 * (pitch if self.is_transposed(op) else 1), "", _as_it_is
        if self.is_transposed(op) and not op.transpose_right:
            layout, pack = "transposed", _transposed
        elif self.packs_tiles and width != pitch:
            layout, pack = f"columns {c0} to {c1}", partial(_columns, c0, c1)
            start, pitch, matrix = 0, width, rows * width
        start += first * matrix

        def load(build: LaneBuild, address: int) -> None:
            if layout:
                origin = build.coefficient(build.coefficients.place(op.right, f"{layout}, rows in lanes", pack))
            else:
                origin = build.source(op.right)
            build.load(origin + item * start, shape, (matrix, pitch, 0, 1), item, address)

        several = images * rows if width != pitch else images if rows * width != matrix else 1
        runs = Runs(several, images * rows)
        size = item * images * rows * width
        return Buffer(self.chip.aligned_bytes(shape, item), axes, size, load, True, runs=runs)

    # -- what element types have of their own --------------------------------------------------------------------------
    def begin(self, build: LaneBuild, made: Words, bias: Words | None) -> None:
        """Before the products."""

    def end(self, build: LaneBuild, made: Words, bias: Words | None) -> None:
        """Behind the products."""

    def multiply(self, op: Matmul, build: Any, factors: Sequence[Factors], scratch: list[int]) -> None:
        """Commands that make each result of its left and right matrix."""
        raise TypeError(f"{type(self).__name__} has no products")

    def scratch(self, transposed: bool, right: Shape) -> tuple[int, ...]:
        """Bytes of a lane that `multiply` needs; right: as which the right operand lies, `transposed` or not."""
        return ()

    def cycles(self, op: Matmul, result: Shape, depth: int, pairs: Sequence[Span]) -> int:
        """Of all products; result: of one, pairs: numbers of the matrices of each."""
        raise TypeError(f"{type(self).__name__} has no products")

    def apart(self, op: Matmul, result: Shape, depth: int, count: int) -> tuple[Apart, ...]:
        """Operands that should lie in different banks; result: of one product, count: of products."""
        return ()

    def bias_cycles(self, result: Shape, item: int) -> int:
        """What a bias adds; result: of all products."""
        raise TypeError(f"{type(self).__name__} has no bias")

    def _rows(self, value: Value, start: int, shape: Shape, pitch: int, axes: str) -> Buffer:
        """Rows of a matrix, one after the other in lanes; they lie `pitch` elements apart, 0 repeats one."""
        item = item_bytes(value)

        def load(build: LaneBuild, address: int) -> None:
            build.load(build.source(value) + item * start, shape, (0, pitch, 0, 1), item, address)

        moved = item * shape[3] * (shape[1] if pitch else 1)
        runs = Runs(1 if pitch in (0, shape[3]) else shape[1], shape[1] if pitch else 1)  # a row for all is one
        return Buffer(self.chip.aligned_bytes(shape, item), axes, moved, load, not is_activation(value), runs=runs)


class SingleProductKernel(RowProductKernel):
    """Base: of fp32, by convolutions that add to what the result holds, a bias before the first."""

    @rule("Operands, bias and result must be f32")
    def float_types(self, op: Matmul) -> bool:
        return all(v.dtype == "f32" for v in (*op.operands, op.result))

    def begin(self, build: LaneBuild, made: Words, bias: Words | None) -> None:
        if bias is not None:
            build.assign(made, bias)

    def bias_cycles(self, result: Shape, item: int) -> int:
        return self.machine.cycles.pass_cycles(result, item)


def _as_it_is(right: Array) -> Array:
    return right


def _transposed(right: Array) -> Array:
    return right.swapaxes(-1, -2)


def _columns(first: int, end: int, right: Array) -> Array:
    return right[..., first:end]
