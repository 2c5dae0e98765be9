"""Tiles of pooling ops: one window per channel (bm1684.md 6.2)."""

from __future__ import annotations

from bmcompiler.backends.bm1684.build import Build, extents
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.kernels.base import (
    MAX_CHANNELS,
    MAX_SIZE,
    PIXELS,
    activation_out,
    dims4,
    item_bytes,
    words_of,
)
from bmcompiler.backends.lanes.kernels.sliding import Slide, SlidingKernel, Windows
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.codegen.window import WindowAxis
from bmcompiler.ops.base import TensorOp


class PoolKernel(SlidingKernel):
    """Base: one window per channel, all channels of a tile in one instruction."""

    def windows(self, op: TensorOp) -> Windows:
        (_, _, h, w), (kh, kw) = op.input.shape, op.kernel
        (sh, sw), (top, _, left, _) = op.strides, op.pads
        return WindowAxis(h, kh, sh, top, limit=MAX_SIZE), WindowAxis(w, kw, sw, left, limit=MAX_SIZE)

    def grid(self, op: TensorOp) -> tuple[Axis, ...]:
        n, c = op.type.shape[:2]
        return (
            Axis(n, 4 // item_bytes(op.input), MAX_SIZE),
            Axis(c, CHIP.lanes, MAX_CHANNELS),
            *self.spatial_axes(op),
        )

    def work(self, op: TensorOp, box: Box) -> TileWork:
        slide = self.slide(op, box, box[1])
        inputs = (self.input_buffer(op, [slide]), *self.constants(op, box))

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            self.emit_window(op, build, slide, box, ins, outs[0])

        cycles = self.cycles(op, box)
        out = activation_out(op.result, dims4(op.result), box)
        return TileWork(inputs, (out,), (), compute, cycles)

    def constants(self, op: TensorOp, box: Box) -> tuple[Buffer, ...]:
        """What the commands read besides the input."""
        return ()

    def cycles(self, op: TensorOp, box: Box) -> int:
        """16 pixels of all lanes take a cycle per tap and some for the start (bm1684.md 12)."""
        n, c, h, w = words_of(extents(box), item_bytes(op.input))
        down, across = self.taps(op)
        return n * -(-c // CHIP.lanes) * -(-h * w // PIXELS) * (down * across + 6)

    def emit_window(self, op: TensorOp, build: Build, slide: Slide, box: Box, ins: list[int], result: int) -> None:
        """Emit the commands of a tile."""
        raise TypeError(f"{type(self).__name__} emits nothing")
