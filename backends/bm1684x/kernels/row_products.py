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

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Precision
from bmcompiler.backends.bm1684x.instructions import matrix, window
from bmcompiler.backends.bm1684x.lane_commands import float_of
from bmcompiler.backends.bm1684x.machine import cycles_of
from bmcompiler.backends.lanes.arithmetic import Arithmetic
from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import is_constant, item_bytes
from bmcompiler.backends.lanes.kernels.sums.float_matmul import chunks_of, in_lane_runs, section_width, summed_in_chunks
from bmcompiler.backends.lanes.kernels.sums.product import Product, product_of
from bmcompiler.backends.lanes.kernels.sums.row_products import Factors, RowProductKernel, SingleProductKernel, Span
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.matrices import matrix_shape
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.target import rule


class HalfMatmulKernel(RowProductKernel):
    """matmul of 16-bit floats: a command for each product."""

    transposes_constants = True

    @rule("Operands, bias and result must be of one type, {kernel.floats}")
    def known_types(self, op: Matmul) -> bool:
        return self.one_float(*op.operands, op.result)

    def end(self, build: LaneBuild, made: Words, bias: Words | None) -> None:
        if bias is not None:
            build.combine(Unit.ADD, made, made, bias)

    def multiply(self, op: Matmul, build: Build, factors: Sequence[Factors], scratch: list[int]) -> None:
        for target, left, right in factors:
            kinds = float_of(left), float_of(target)
            command = matrix.by_rows(target, left, right, *kinds, transposed=self.is_transposed(op))
            build.issue(command, *build.ranges(target, left, right))

    def cycles(self, op: Matmul, result: Shape, depth: int, pairs: Sequence[Span]) -> int:
        return len(pairs) * cycles_of(self.machine).row_matrix(result, depth, item_bytes(op.left))

    def bias_cycles(self, result: Shape, item: int) -> int:
        return self.machine.cycles.pass_cycles(result, item, pair=True, in_place=True)


class SingleMatmulKernel(SingleProductKernel):
    """matmul of fp32: convolutions; one command transposes a right operand that lies so."""

    transposes_constants = True

    def sums(self, arithmetic: Arithmetic, left: Array, right: Array, bias: Array | None) -> Array:
        return summed_in_chunks(arithmetic, left, right, bias)

    def multiply(self, op: Matmul, build: Build, factors: Sequence[Factors], scratch: list[int]) -> None:
        lies_transposed, transposed = self.is_transposed(op), None
        for target, left, right in factors:
            if lies_transposed:
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

    def scratch(self, transposed: bool, right: Shape) -> tuple[int, ...]:
        _, rows, _, columns = right
        return (self.chip.aligned_bytes((1, columns, 1, rows)),) if transposed else ()

    def transposing_cycles(self, depth: int, columns: int) -> int:
        return self.machine.cycles.pass_cycles((1, depth, 1, columns))

    def cycles(self, op: Matmul, result: Shape, depth: int, pairs: Sequence[Span]) -> int:
        rights = [right for _, right in pairs]
        turns = sum(a != b for a, b in zip(rights, (None, *rights))) if self.is_transposed(op) else 0
        turning = turns * self.transposing_cycles(depth, result[3])
        return len(rights) * self.machine.cycles.convolution(result, 1, depth) + turning

    def is_quicker(self, op: Matmul) -> bool:
        """Whether this takes less time than products in sections of columns, as far as their shapes tell."""
        product = product_of(op)
        if op.transpose_left or not self.has_room(op):
            return False
        constant = is_constant(op.right)
        width = section_width(self.machine, op) if constant else 0
        facts = op.bias is not None, self.is_transposed(op), constant, width, in_lane_runs(self.machine, op)
        return self.machine.decided(_rows_are_quicker, self.machine, product, *facts)


def _row_groups(rows: int, lanes: int, together: bool) -> Iterator[tuple[int, int]]:
    """(rows of lanes before it, rows) of what one command takes."""
    step = rows if together else lanes
    return ((first // lanes, min(step, rows - first)) for first in range(0, rows, step))


def _rows_are_quicker(
    machine: LaneMachine,
    product: Product,
    biased: bool,
    transposed: bool,
    constant: bool,
    width: int,
    in_runs: bool,
) -> bool:
    """Commands and transfers of rows in lanes and of sections of columns; nothing is known of what runs beside what."""
    rows, depth, columns, count = product.rows, product.depth, product.columns, len(product.pairs)
    lefts, rights = (len(set(each)) for each in zip(*product.pairs))
    timing, bus = machine.matrix_cycles, machine.cycles
    right = (columns, depth) if transposed else (depth, columns)
    by_rows = count * bus.convolution((1, rows, 1, columns), 1, depth)
    by_rows += bus.load(lefts * rows, 4 * depth) + bus.load(rights * right[0], 4 * right[1])
    by_rows += bus.store(count * rows, 4 * columns)
    left, below, made = (
        matrix_shape(machine.chip, *size)
        for size in ((rows, depth, 0), (depth, columns, width), (rows, columns, width))
    )
    in_sections = count * timing.matrix(made, depth, biased) + lefts * timing.load_matrix(left, (rows, depth), depth)
    in_sections += count * timing.load_matrix(made, (rows, columns), columns)
    if in_runs:  # a lane's rows lie one after the other
        loading = bus.load(below[1], 4 * depth * below[3])
    elif constant:
        loading = timing.load_sections(below, below[1] * below[3])
    else:
        loading = timing.load_matrix(below, (depth, columns), columns)
    return by_rows <= in_sections + rights * loading
