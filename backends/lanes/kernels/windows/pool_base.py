"""Tiles of pooling ops: one window per channel.

Windows that lie farther apart than a command can step are made one after the other: each is copied out of the tile's
input, so that the input is loaded once, or stays where another op left it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, ClassVar, TypeVar

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import dims4, item_bytes
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide, SlidingKernel, Windows
from bmcompiler.backends.lanes.operands import Words
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

    def spatial_axes(self, op: PoolT) -> tuple[Axis, Axis]:
        rows, columns = super().spatial_axes(op)
        if self._padded(op):
            return rows, columns
        most = [axis.most() for axis in self.windows(op)]
        return replace(rows, most=most[0]), replace(columns, most=most[1])

    def _padded(self, op: PoolT) -> bool:
        """Whether a window reaches beyond the input."""
        needs = [axis.need(0, out) for axis, out in zip(self.windows(op), op.type.shape[2:])]
        return any(need.before or need.after for need in needs)

    def steps(self, op: PoolT) -> tuple[int, int]:
        """The longest steps of commands along h and along w, where there are several windows."""
        return op.strides

    def work(self, op: PoolT, box: Box) -> TileWork:
        images, channels, *spatial = box
        near = [
            (lo, lo + 1) if step > self.chip.most_step else (lo, hi) for (lo, hi), step in zip(spatial, self.steps(op))
        ]
        part: Box = (images, channels, *near)
        return self.near_work(op, box) if part == box else self._far_work(op, box, part)

    def near_work(self, op: PoolT, box: Box) -> TileWork:
        """The tile `box`, whose windows lie as near to each other as commands can step."""
        slide = self.slide(op, box, box[1])
        inputs = (self.input_buffer(op, [slide]), *self.constants(op, box))

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            self.emit_window(op, build, slide, box, ins, outs[0])

        cycles = self.cycles(op, box, slide)
        out = self.machine.activation_out(op.result, dims4(op.result), box)
        return TileWork(inputs, (out,), (), compute, cycles)

    def _far_work(self, op: PoolT, box: Box, part: Box) -> TileWork:
        """The tile `box` in parts of the size of `part`, its first one."""
        whole, one, chip = self.near_work(op, box), self.near_work(op, part), self.chip
        source, target = self.slide(op, box, box[1]).shape, extents(box)
        window, results = self.slide(op, part, part[1]).shape, extents(part)
        read, written = self.sizes(op)
        counts = [size // near for size, near in zip(target[2:], results[2:])]

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            copied, made, *more = scratch
            for y, x in product(*map(range, counts)):
                at = y * op.strides[0], x * op.strides[1]
                build.copy(self._words(ins[0], source, read, at, window), self._words(copied, window, read))
                one.compute(build, [copied], [made], more)
                build.copy(self._words(made, results, written), self._words(outs[0], target, written, (y, x), results))

        copies, areas = 0, []
        for shape, item in ((window, read), (results, written)):
            copies += self.machine.cycles.pass_cycles(chip.words_of(shape, item), chip.word_item(item))
            areas.append(chip.aligned_bytes(shape, item))
        cycles = prod(counts) * (one.cycles + copies)
        return TileWork(whole.inputs, whole.outputs, (*areas, *one.scratch), compute, cycles)

    def sizes(self, op: PoolT) -> tuple[int, int]:
        """Bytes of the elements of a tile's input and of its result in local memory."""
        return item_bytes(op.input), item_bytes(op.result)

    def _words(
        self, address: int, shape: Shape, item: int, at: Sequence[int] = (0, 0), part: Shape | None = None
    ) -> Words:
        """The part that begins at row and column `at` of a tensor of `shape`; by default all of it."""
        chip, word = self.chip, self.chip.word_item(item)
        strides = chip.aligned_strides(chip.words_of(shape, item), item=word)
        first = address + word * (at[0] * strides[2] + at[1] * strides[3])
        return Words(
            first, chip.words_of(part or shape, item), strides, within=chip.plane(address, shape, item), item=word
        )

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
