"""Tiles of pooling ops: one window per channel."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.kernels.base import dims4, item_bytes
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide, SlidingKernel, Windows
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.codegen.window import WindowAxis
from bmcompiler.ops.layers.pool import Pool

PoolT = TypeVar("PoolT", bound=Pool)


class PoolKernel(SlidingKernel[PoolT]):
    """Base: one window per channel, all channels of a tile in one command."""

    sums: ClassVar[bool] = True
    """Whether windows are added up; else their largest element is taken."""

    def windows(self, op: PoolT) -> Windows:
        (_, _, h, w), (kh, kw) = op.input.shape, op.kernel
        (sh, sw), (top, _, left, _) = op.strides, op.pads
        return WindowAxis(h, kh, sh, top, limit=self.chip.most_size), WindowAxis(
            w, kw, sw, left, limit=self.chip.most_size
        )

    def taps(self, op: PoolT) -> tuple[int, int]:
        return op.kernel

    def grid(self, op: PoolT) -> tuple[Axis, ...]:
        images, channels, *_ = self.machine.elementwise_grid(dims4(op.result), item_bytes(op.input))
        return images, channels, *self.spatial_axes(op)

    def work(self, op: PoolT, box: Box) -> TileWork:
        slide = self.slide(op, box, box[1])
        inputs = (self.input_buffer(op, [slide]), *self.constants(op, box))

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            self.emit_window(op, build, slide, box, ins, outs[0])

        cycles = self.cycles(op, box, slide)
        out = self.machine.activation_out(op.result, dims4(op.result), box)
        return TileWork(inputs, (out,), (), compute, cycles)

    def constants(self, op: PoolT, box: Box) -> tuple[Buffer, ...]:
        """What the commands read besides the input."""
        return ()

    def cycles(self, op: PoolT, box: Box, slide: Slide) -> int:
        """Cycles of the commands of `emit_window`."""
        return self.window_cycles(op, box, slide)

    def window_cycles(self, op: PoolT, box: Box, slide: Slide, item: int = 0) -> int:
        """Cycles of the window command on elements of `item` bytes, by default those of the input."""
        taps, stride = self.taps(op), slide.geometry.steps[1]
        return self.machine.cycles.window(extents(box), taps, stride, self.sums, item or item_bytes(op.input))

    def emit_window(self, op: PoolT, build: Any, slide: Slide, box: Box, ins: list[int], result: int) -> None:
        """Emit the commands of a tile by the build of the chip."""
        raise TypeError(f"{type(self).__name__} has no command")
