"""Kernels whose tile is: load the boxes of the operands, compute the box of the result, store it."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from bmcompiler.chip import Dims, LaneChip
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.hazards import Range
from bmcompiler.codegen.kernels import LocalKernel, activation_in, activation_out
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.codegen.window import AxisSlide, WindowAxis, slide, window_axes
from bmcompiler.ir import Value
from bmcompiler.ops.layers.nn import Convolution
from bmcompiler.ops.layers.pool import Pool
from bmcompiler.target import OpT


class TileKernel(LocalKernel[OpT]):
    """Element by element; subclasses give the computation."""

    chip: LaneChip
    most: ClassVar[tuple[int, int]] = (0, 0)
    """Largest tile along n and c; 0 = no limit."""

    def command(self, op: OpT, box: Box, build: Any, ins: list[Range], out: Range) -> None:
        """Emit what computes `box` of the result; operands and result are bytes within a lane."""
        raise TypeError(f"{type(self).__name__} has no command")

    def cycles(self, op: OpT, dims: Dims) -> int:
        """Of a tile of the result: one per value in the fullest lane, times `taps`."""
        return dims[0] * -(-dims[1] // self.chip.lanes) * dims[2] * dims[3] * self.taps(op)

    def taps(self, op: OpT) -> int:
        """Values that one result is made of."""
        return 1

    def view(self, value: Value) -> Dims:
        """(N, C, H, W); a tensor of another rank is rows of its last axis, each an image of one pixel."""
        *rows, last = value.shape or (1,)
        n, c, h, w = value.shape if len(rows) == 3 else (prod(rows), last, 1, 1)
        return n, c, h, w

    def tile(self, value: Value, box: Box, axes: str = "nchw") -> Buffer:
        """The box of an operand, loaded again when one of `axes` moves."""
        return activation_in(value, self.view(value), box, axes, lane_bytes=self._lane_bytes(value, box))

    def sources(self, op: OpT, box: Box) -> list[Buffer]:
        """What `box` of the result is made of."""
        return [self.tile(value, box) for value in op.operands]

    def grid(self, op: OpT) -> tuple[Axis, ...]:
        n, c, h, w = self.view(op.result)
        return Axis(n, most=self.most[0]), Axis(c, self.chip.lanes, self.most[1]), Axis(h), Axis(w)

    def work(self, op: OpT, box: Box) -> TileWork:
        inputs = self.sources(op, box)
        out = activation_out(op.result, self.view(op.result), box, lane_bytes=self._lane_bytes(op.result, box))

        def compute(build: Any, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            ranges = [(start, start + buffer.lane_bytes) for start, buffer in zip(ins, inputs)]
            self.command(op, box, build, ranges, (outs[0], outs[0] + out.lane_bytes))

        return TileWork(tuple(inputs), (out,), (), compute, self.cycles(op, extents(box)))

    def _lane_bytes(self, value: Value, box: Box) -> int:
        return self.chip.lane_bytes(extents(box), value.type.numpy.itemsize)


class SlidingKernel(TileKernel[OpT]):
    """Windows that slide over the first operand: pooling, convolution."""

    def windows(self, op: OpT) -> tuple[WindowAxis, WindowAxis]:
        """The window along h and along w."""
        if not isinstance(op, (Convolution, Pool)):
            raise TypeError(f"{type(self).__name__} does not say what windows {op.opname} has")
        return window_axes(op)

    def channels(self, op: OpT, box: Box) -> tuple[int, int]:
        """Channels of the input that `box` reads: its own."""
        return box[1]

    def slide(self, op: OpT, box: Box) -> AxisSlide:
        """Rows and columns that `box` reads."""
        return slide(self.windows(op), box)

    def source(self, op: OpT, box: Box) -> Box:
        """The box of the input."""
        return self.slide(op, box).source(box, self.channels(op, box))

    def sources(self, op: OpT, box: Box) -> list[Buffer]:
        return [self.tile(op.operands[0], self.source(op, box))]

    def taps(self, op: OpT) -> int:
        return prod(axis.kernel for axis in self.windows(op))

    def grid(self, op: OpT) -> tuple[Axis, ...]:
        n, c, *sizes = super().grid(op)
        rows, columns = (Axis(axis.size, 1, window.most()) for axis, window in zip(sizes, self.windows(op)))
        return n, c, rows, columns
