"""Products with keys and values that lie token by token: a load takes the rows of some heads into lanes.

Nothing is moved before: rows of a head lie apart in global memory, which a load takes as they are (bm1684x-llm.md 8).
"""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.instructions import matrix
from bmcompiler.backends.bm1684x.lane_commands import float_of
from bmcompiler.backends.bm1684x.machine import cycles_of
from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Range, Shape
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation, item_bytes
from bmcompiler.backends.lanes.kernels.sums.product import MOST_PRODUCTS
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.groups.regions import four_axes, rows_of
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Contents, Runs, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.packed_weights import TYPES
from bmcompiler.ops.layers.heads import HeadMatmul
from bmcompiler.target import rule

_LAYOUT = "heads in images, rows in lanes"


class HeadProductKernel(LocalKernel[HeadMatmul]):
    """head_matmul of 16-bit floats: a command for each matrix, whose rows lie in lanes."""

    ops = (HeadMatmul,)
    grid_of_result = False

    @rule("Operands and result must be of one type, f16 or bf16")
    def known_types(self, op: HeadMatmul) -> bool:
        return op.left.dtype in TYPES and self.one_float(*op.operands, op.result)

    @rule("Operands must be activations")
    def only_activations(self, op: HeadMatmul) -> bool:
        return all(map(is_activation, op.operands))

    @rule("Depth, columns and the elements of a token must be at most {kernel.chip.most_size}")
    def known_sizes(self, op: HeadMatmul) -> bool:
        return max(op.left.shape[-1], op.type.shape[-1], *op.right.shape) <= self.chip.most_size

    def evaluate(self, op: HeadMatmul, *arrays: Array) -> Array:
        left, right = op.matrices(*arrays)
        arithmetic = self.machine.arithmetic_of(op.left.dtype)
        products = [arithmetic.product(a, head, None) for some, (head,) in zip(left, right) for a in some]
        return np.stack(products).reshape(op.type.shape)

    def grid(self, op: HeadMatmul) -> tuple[Axis, ...]:
        lanes, (_, _, rows, columns) = self.chip.lanes, op.type.shape
        return (
            Axis(rows, lanes, self.chip.most_channels // lanes * lanes),
            Axis(columns, lanes, self.chip.most_size // lanes * lanes),
            Axis(_matrices(op), 1, MOST_PRODUCTS),
            Axis(1),
        )

    def work(self, op: HeadMatmul, box: Box) -> TileWork:
        rows, columns, matrices = box[:3]
        return self._products(op, matrices, rows, columns)

    def boxed(self, op: HeadMatmul, box: Box) -> TileWork | None:
        shape = four_axes(op.type.shape)
        found = rows_of(shape, box, parts=True)
        if found is None or found[0][1] - found[0][0] > MOST_PRODUCTS:
            return None
        work = self._products(op, *found, box[3])
        return work if self.fits(work) else None

    def whole(self, op: HeadMatmul) -> TileWork | None:
        return self.boxed(op, tuple((0, size) for size in op.type.shape))

    def _products(self, op: HeadMatmul, matrices: Range, rows: Range, columns: Range) -> TileWork:
        item, (_, _, all_rows, all_columns), depth = item_bytes(op.left), op.type.shape, op.left.shape[-1]
        made: Box = (matrices, rows, (0, 1), columns)
        read: Box = (matrices, rows, (0, 1), (0, depth))
        shared = _matrices(op) // op.right.shape[2]
        heads = matrices[0] // shared, (matrices[1] - 1) // shared + 1
        right = self._right(op, heads, columns)
        inputs = (
            self.machine.activation_in(op.left, (_matrices(op), all_rows, 1, depth), read, "nh"),
            right,
        )
        out = self.machine.activation_out(op.result, (_matrices(op), all_rows, 1, all_columns), made)
        views = extents(read), self._shape(op, heads, columns), extents(made)
        pairs = [(number - matrices[0], number // shared - heads[0]) for number in range(*matrices)]

        def image(address: int, view: Shape, number: int) -> Words:
            start = address + number * item * self.chip.aligned_strides(view, item=item)[0]
            return Words(start, (1, *view[1:]), item=item, dtype=op.left.dtype)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            for number, head in pairs:
                a, b = image(ins[0], views[0], number), image(ins[1], views[1], head)
                target = image(outs[0], views[2], number)
                kinds = float_of(a), float_of(target)
                command = matrix.by_rows(target, a, b, *kinds, transposed=op.transpose_right)
                build.issue(command, *build.ranges(target, a, b))

        one = (1, *views[2][1:])
        cycles = len(pairs) * cycles_of(self.machine).row_matrix(one, depth, item)
        return TileWork(inputs, (out,), (), compute, cycles)

    def _shape(self, op: HeadMatmul, heads: Range, columns: Range) -> Shape:
        """Some heads of the right operand in local memory."""
        count, (_, tokens, _, width) = heads[1] - heads[0], op.right.shape
        if op.transpose_right:
            return count, columns[1] - columns[0], 1, width
        return count, tokens, 1, columns[1] - columns[0]

    def _right(self, op: HeadMatmul, heads: Range, columns: Range) -> Buffer:
        item, (_, _, all_heads, width) = item_bytes(op.right), op.right.shape
        shape, token = self._shape(op, heads, columns), all_heads * width
        first = heads[0] * width + columns[0] * (token if op.transpose_right else 1)

        def load(build: LaneBuild, address: int) -> None:
            build.load(build.neuron(op.right) + item * first, shape, (width, token, 0, 1), item, address)

        contents = Contents(root_of(op.right), (_LAYOUT, op.right.shape, heads, columns, op.transpose_right))
        runs, moved = Runs(shape[0] * shape[1], shape[0] * shape[1]), item * shape[0] * shape[1] * shape[3]
        return Buffer(self.chip.aligned_bytes(shape, item), "ch", moved, load, contents=contents, runs=runs)


def _matrices(op: HeadMatmul) -> int:
    return op.left.shape[0] * op.left.shape[1]
