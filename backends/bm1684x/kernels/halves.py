"""What only 16-bit floats have: casts, and matrix products whose rows lie in lanes, of both operands and of the result.

One command of a product (bm1684x-cube.md 8) sums the whole depth in groups of 32, so results do not depend on tiles; a
bias is added by the execution units. The right operand lies as it is in global memory: the command takes it transposed,
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.half_arithmetic import HalfArithmetic
from bmcompiler.backends.bm1684x.instructions import matrix
from bmcompiler.backends.bm1684x.lane_commands import float_of
from bmcompiler.backends.bm1684x.tile_cycles import CYCLES
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation, item_bytes
from bmcompiler.backends.lanes.kernels.fused_activation import activation_cycles, emit_activation
from bmcompiler.backends.lanes.kernels.product import MOST_PRODUCTS, FloatProductKernel, product_of
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.groups.regions import rows_of
from bmcompiler.codegen.groups.slices import RANK
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ir import Value
from bmcompiler.ops.integer import Cast
from bmcompiler.ops.nn import Matmul
from bmcompiler.target import rule

_GROUP = 32
Span = tuple[int, int]


class HalfMatmulKernel(FloatProductKernel):
    """matmul of 16-bit floats: rows and columns of the result are tiled, one pair of matrices at a time."""

    @rule("Operands, bias and result must be of one type, {kernel.floats}")
    def known_types(self, op: Matmul) -> bool:
        return self.one_float(*op.operands, op.result)

    @rule("The left operand must not be transposed")
    def plain_left(self, op: Matmul) -> bool:
        return not op.transpose_left

    @rule("The depth must be at most {kernel.chip.most_size}")
    def known_depth(self, op: Matmul) -> bool:
        return product_of(op).depth <= self.chip.most_size

    def grid(self, op: Matmul) -> tuple[Axis, ...]:
        product, most, lanes = product_of(op), self.chip.most_size, self.chip.lanes
        columns = lanes if op.transpose_right else _GROUP
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
        result = views[2]
        _, rows, _, columns = result
        if op.bias is not None:
            inputs.append(self._rows(op.bias, first, (1, min(rows, chip.lanes), 1, columns), 0, "nc"))

        def image(address: int, view: Shape, number: int) -> Words:
            start = address + number * item * chip.aligned_strides(view, item=item)[0]
            return Words(start, (1, *view[1:]), item=item, dtype=op.left.dtype)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            for number, pair in enumerate(pairs):
                a, b = (image(place, view, index) for place, view, index in zip(ins, views, pair))
                target = image(outs[0], result, number)
                kind = float_of(target)
                command = matrix.by_rows(target, a, b, kind, kind, transposed=op.transpose_right)
                build.issue(command, *build.ranges(target, a, b))
            made = Words(outs[0], result, item=item, dtype=op.left.dtype)
            if op.bias is not None:
                bias = Words(ins[2], result, (0, 0, 0, 1), item=item, dtype=op.left.dtype)
                build.combine(Unit.ADD, made, made, bias)
            emit_activation(build, op.activation, made)

        passes = (op.bias is not None) * timing.pass_cycles(result, item, pair=True, in_place=True)
        cycles = len(pairs) * CYCLES.row_matrix((1, rows, 1, columns), views[0][3], item) + passes
        cycles += activation_cycles(timing, op.activation, result, item)
        return TileWork(tuple(inputs), (out,), (), compute, cycles)

    def _rows(self, value: Value, start: int, shape: Shape, pitch: int, axes: str) -> Buffer:
        """Rows of a matrix, one after the other in lanes; they lie `pitch` elements apart, 0 repeats one."""
        item = item_bytes(value)

        def load(build: Build, address: int) -> None:
            build.load(build.source(value) + item * start, shape, (0, pitch, 0, 1), item, address)

        moved = item * shape[3] * (shape[1] if pitch else 1)
        return Buffer(self.chip.aligned_bytes(shape, item), axes, moved, load, not is_activation(value))


class FloatCastKernel(LocalKernel[Cast]):
    """cast between f32 and a 16-bit float type, rounded to nearest even: one command on a tile."""

    ops = (Cast,)

    @rule("One of the types must be f32, the other one f16 or bf16")
    def known_types(self, op: Cast) -> bool:
        types = {op.x.dtype, op.type.dtype}
        return "f32" in types and len(types) == 2 and types <= set(self.machine.float_types)

    def grid(self, op: Cast) -> tuple[Axis, ...]:
        return self.machine.elementwise_grid(self._view(op))

    def views_result(self, op: Cast) -> bool:
        return True

    def _view(self, op: Cast) -> Shape:
        return self.machine.flat_view(op.type.shape, made=self.is_made(op))

    def work(self, op: Cast, box: Box) -> TileWork:
        view, dims = self._view(op), extents(box)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            source, target = (
                Words(place, dims, item=item_bytes(value), dtype=value.dtype)
                for place, value in ((ins[0], op.x), (outs[0], op.result))
            )
            build.cast(target, source)

        inputs = (self.machine.activation_in(op.x, view, box),)
        outputs = (self.machine.activation_out(op.result, view, box),)
        return TileWork(inputs, outputs, (), compute, self.machine.cycles.pass_cycles(dims))

    def evaluate(self, op: Cast, *arrays: Any) -> Any:
        """The op in the chip's rounding."""
        wide = op.x.dtype == "f32"
        half = self.machine.arithmetic_of(op.type.dtype if wide else op.x.dtype)
        assert isinstance(half, HalfArithmetic)
        return half.cast_from(arrays[0]) if wide else half.cast(arrays[0])
