"""Steps of recurrent layers of 16-bit floats."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.half_arithmetic import HalfArithmetic
from bmcompiler.backends.bm1684x.instructions import matrix
from bmcompiler.backends.bm1684x.lane_commands import float_of
from bmcompiler.backends.bm1684x.machine import cycles_of
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.sums.recurrence import RecurrenceKernel
from bmcompiler.backends.lanes.kernels.sums.step_products import StepProduct
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.numeric.arrays import Array


class RowProduct(StepProduct):
    """16-bit floats by the product of rows in lanes (bm1684x-cube.md 8), summed in fp32 and left so.

    Value l * J + j is row j * 64 + l, where lanes from L on are zeros.
    """

    @property
    def depth(self) -> int:
        """Rows of the state, of whole lanes."""
        return self.size.run * self.chip.lanes

    @property
    def fed(self) -> tuple[Shape, Strides]:
        shape = (1, self.depth, 1, self.size.images)
        return shape, (0, 0, 1, self.chip.aligned_strides(shape, item=2)[1])

    @property
    def made(self) -> tuple[Shape, Strides]:
        shape = (1, self.gates * self.depth, 1, self.size.images)
        row = self.chip.aligned_strides(shape)[1]
        return shape, (self.size.run * row, 0, 1, row)

    @property
    def weights(self) -> Shape:
        return 1, self.gates * self.depth, 1, self.depth

    def packed(self, weight: Array) -> Array:
        size, lanes = self.size, self.chip.lanes
        parts = weight.reshape(self.gates, size.lanes, size.run, size.lanes, size.run).transpose(0, 2, 1, 4, 3)
        out = np.zeros((self.gates, size.run, lanes, size.run, lanes), weight.dtype)
        out[:, :, : size.lanes, :, : size.lanes] = parts
        return out.reshape(self.weights)

    def cycles(self) -> int:
        return cycles_of(self.machine).row_matrix(self.made[0], self.depth, 2)

    def emit(self, build: Build, made: int, weights: int, fed: int) -> None:
        target = Words(made, self.made[0])
        left, right = (
            Words(place, shape, item=2, dtype=self.dtype)
            for place, shape in ((weights, self.weights), (fed, self.fed[0]))
        )
        command = matrix.by_rows(target, left, right, float_of(left), float_of(target), transposed=False)
        build.issue(command, *build.ranges(target, left, right))

    def sums(self, packed: Array, state: Array) -> Array:
        size, lanes = self.size, self.chip.lanes
        fed = np.zeros((size.run, lanes, size.images), state.dtype)
        fed[:, : size.lanes] = state.transpose(2, 0, 1)
        rows = packed.reshape(-1, self.depth)
        out = _half(self.machine, self.dtype).single_product(rows, fed.reshape(self.depth, -1))
        return out.reshape(self.gates, size.run, lanes, size.images)[:, :, : size.lanes].transpose(0, 2, 3, 1)


class HalfRecurrenceKernel(RecurrenceKernel):
    """Steps of a recurrent layer of 16-bit floats."""

    products = RowProduct

    def narrowed(self, x: Array, dtype: str) -> Array:
        return _half(self.machine, dtype).cast_from(x)

    def widened(self, x: Array, dtype: str) -> Array:
        return _half(self.machine, dtype).cast(x)


def _half(machine: LaneMachine, dtype: str) -> HalfArithmetic:
    half = machine.arithmetic_of(dtype)
    assert isinstance(half, HalfArithmetic), "the type has 16 bits"
    return half
