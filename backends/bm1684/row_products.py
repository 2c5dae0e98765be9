"""Products of fp32 as convolutions, which are of 64 rows by 16 columns at a time where those of matrices have one row.

Rows of the left operand lie as weights do, pairs of input channels one after the other (bm1684.md 4.4). Their sums are
made in four accumulators, those of matrices in two (bm1684.md 6.1, 6.3): which is taken follows from shapes alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.backends.bm1684.build import Build
from bmcompiler.backends.bm1684.cycles import PIXELS
from bmcompiler.backends.bm1684.instructions.products import convolution, map_at
from bmcompiler.backends.bm1684.instructions.words import bytes_of
from bmcompiler.backends.bm1684.machine import Bm1684Arithmetic, cycles_of
from bmcompiler.backends.lanes.arithmetic import Arithmetic
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import is_constant
from bmcompiler.backends.lanes.kernels.sums.float_matmul import chunks_of
from bmcompiler.backends.lanes.kernels.sums.product import product_of
from bmcompiler.backends.lanes.kernels.sums.row_products import Factors, SingleProductKernel, Span
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.codegen.tiling import Apart
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.target import rule

_PAIR = 2
_MANY = 16
"""Rows that do not wait for what they are multiplied by."""
_DEEP, _DEEPER = 384, 8192
"""From which depth few columns keep none waiting, and up to which not even a single row."""

_APART = 128
"""Cycles that a product of two computed matrices may take longer, for in sections each is loaded and stored apart."""


class RowMatmulKernel(SingleProductKernel):
    """matmul of fp32 with rows in lanes."""

    packs_tiles = True

    @rule("The right operand must not be transposed")
    def plain_right(self, op: Matmul) -> bool:
        return not op.transpose_right

    def is_taken(self, op: Matmul) -> bool:
        """Whether sums are made so. No table of cycles is asked: sums depend on it."""
        product, lanes = product_of(op), self.chip.lanes
        if op.transpose_left or op.transpose_right or not self.has_room(op):
            return False
        by_rows = -(-product.rows // lanes) * -(-product.columns // PIXELS)
        in_sections = product.rows * -(-product.columns // (lanes * PIXELS))
        later = by_rows // _PAIR - in_sections  # a step of a convolution takes a pair
        if not is_constant(op.right):
            return later * product.depth <= _APART
        if product.rows < _MANY and (product.columns > _PAIR * PIXELS or product.depth < _DEEP):
            return False  # as a single row is not, so that batches can be split
        if product.rows == 1 and product.depth > _DEEPER:
            return False
        return by_rows <= _PAIR * in_sections

    def order_of_sums(self, op: Matmul) -> str:
        return "four accumulators"

    def sums(self, arithmetic: Arithmetic, left: Array, right: Array, bias: Array | None) -> Array:
        assert isinstance(arithmetic, Bm1684Arithmetic), "the machine of this chip has it"
        total = bias
        for k0, k1 in chunks_of(left.shape[1]):
            total = arithmetic.row_product(left[:, k0:k1], right[k0:k1], total)
        assert total is not None, "a product has a depth"
        return total

    def multiply(self, op: Matmul, build: Build, factors: Sequence[Factors], scratch: list[int]) -> None:
        lefts = [left for _, left, _ in factors]
        if lefts[0].shape[3] % _PAIR:
            build.fill(self._pad(min(lefts), max(lefts)), 0)
        for target, left, right in factors:
            self._sums(op, build, target, left, right)

    def _pad(self, first: Words, last: Words) -> Words:
        """What completes the last pair of each row of these images; there is room, for rows are aligned."""
        _, rows, _, depth = first.shape
        strides = self.chip.aligned_strides(first.shape)
        count = (last.address - first.address) // (4 * strides[0]) + 1
        return Words(first.address + 4 * depth, (count, rows, 1, 1), strides)

    def _sums(self, op: Matmul, build: Build, target: Words, left: Words, right: Words) -> None:
        """Commands of one product, one for each chunk of the depth."""
        columns, lanes = right.shape[3], self.chip.lanes
        pitch, step = (self.chip.aligned_strides(words.shape)[1] for words in (left, right))
        made, geometry = (target.shape, map_at(target.address, target.shape)), Geometry((1, columns), (1, 1))
        reads = [bytes_of(words) for words in (right, self._whole(left))]
        for k0, k1 in chunks_of(left.shape[3]):
            add = k0 > 0 or op.bias is not None
            before = [made[1].range] if add else []
            source, kernel = right.address + 4 * (k0 // lanes) * step, (left.address + 4 * k0, k1 - k0)
            convolution(
                build, made, source, kernel, None, geometry, None, reads + before, pitch=pitch // _PAIR, add=add
            )

    @staticmethod
    def _whole(left: Words) -> Words:
        """Rows with what completes their last pair."""
        n, c, h, w = left.shape
        return left._replace(shape=(n, c, h, w + w % _PAIR))

    def apart(self, op: Matmul, result: Shape, depth: int, count: int) -> tuple[Apart, ...]:
        shared = self.machine.cycles.shared_bank
        cycles = count * sum(shared(result, 1, k1 - k0) for k0, k1 in chunks_of(depth))
        return (Apart(0, 1, cycles),) if cycles else ()

    def cycles(self, op: Matmul, result: Shape, depth: int, pairs: Sequence[Span]) -> int:
        first, *others = chunks_of(depth)
        added = ([first] if op.bias is not None else []) + others
        each = sum(cycles_of(self.machine).added_convolution(result, k1 - k0) for k0, k1 in added)
        if op.bias is None:
            each += self.machine.cycles.convolution(result, 1, first[1] - first[0])
        if depth % _PAIR == 0:
            return len(pairs) * each
        lefts = [left for left, _ in pairs]
        padded = max(lefts) - min(lefts) + 1, result[1], 1, 1
        return len(pairs) * each + self.machine.cycles.pass_cycles(padded)
