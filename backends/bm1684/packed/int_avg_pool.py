"""Average pooling of packed bytes by a real factor: sums of 16 bits, then of floats (bm1684.md 6.2)."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.bm1684.build import Build, extents, lane_bytes
from bmcompiler.backends.bm1684.chip import CHIP, aligned_strides, channel_rows, pixel_strides
from bmcompiler.backends.bm1684.cycles import CYCLES
from bmcompiler.backends.bm1684.instructions.packed import pack_words, pixel_bytes
from bmcompiler.backends.bm1684.instructions.window import ONE, Integers, LocalPlace, depthwise, map_at
from bmcompiler.backends.bm1684.machine import MACHINE
from bmcompiler.backends.bm1684.packed.int_cycles import pack_words_cycles
from bmcompiler.backends.bm1684.packed.int_pool import IntAvgPool, scaled_steps
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.backends.lanes.recipes import Plane, Recorder, Register
from bmcompiler.backends.lanes.recipes.rounding import narrow_to_float
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.codegen.window import MAX_STEP
from bmcompiler.ops.pool import AvgPool

_LARGEST = {"i8": 32767 // 128, "u8": 65535 // 255}
"""Elements whose sum fits 16 bits, by type."""
_ONES = float(np.uint32(0x0101_0101).view(np.float32))
"""The number whose bits are four ones of a byte."""


class Stages(NamedTuple):
    """part: the window that is summed in 16 bits; rest: how many of these, down and across, make up the whole one."""

    part: tuple[int, int]
    rest: tuple[int, int]

    @property
    def two(self) -> bool:
        """Whether sums of parts have to be added up."""
        return self.rest != (1, 1)


def stages(op: AvgPool) -> Stages | None:
    """How the windows of an average are summed, None when 16 bits are too few.

    A window may be cut into equal parts where windows stand side by side and cover the input.
    """
    most, kernel, outputs = _LARGEST.get(op.input.dtype, 0), op.kernel, op.type.shape[2:]
    if not most:
        return None
    covering = all(k * out == size for k, out, size in zip(kernel, outputs, op.input.shape[2:]))
    if covering and not any(op.pads):
        return _fewest_cycles(kernel, prod(outputs), most)
    return Stages(kernel, (1, 1)) if prod(kernel) <= most else None


@lru_cache(maxsize=256)
def _fewest_cycles(kernel: tuple[int, int], outputs: int, most: int) -> Stages:
    down, across = ([size for size in range(1, kernel[axis] + 1) if kernel[axis] % size == 0] for axis in (0, 1))
    parts = [(a, b) for a in down for b in across if a * b <= most and ((a, b) == kernel or max(a, b) <= MAX_STEP)]
    return min(
        (Stages(part, (kernel[0] // part[0], kernel[1] // part[1])) for part in parts),
        key=lambda found: _sum_cycles(found, (1, 1, 1, outputs), (found.part[1], found.rest[1]), True),
    )


def _sum_cycles(found: Stages, dims: Shape, steps: tuple[int, int], signed: bool) -> int:
    """Cycles of the sums of windows as floats; steps: columns between the windows of each stage."""
    n, c, h, w = dims
    inner: Shape = (n, c, h * found.rest[0], w * found.rest[1])
    sums = CYCLES.window(inner, found.part, steps[0], sums=True, item=1) + _float_cycles(inner, signed)
    return sums + found.two * CYCLES.window(dims, found.rest, steps[1], sums=True)


class PackedAvgPoolKernel(IntAvgPool):
    """Sums of four images at a time in 16 bits, added up in fp32 where windows are larger, and back to packed bytes."""

    def work(self, op: AvgPool, box: Box) -> TileWork:
        found = stages(op)
        assert found is not None  # `AvgPoolKernel.form`
        slide, dims = self.slide(op, box, box[1]), extents(box)
        n, c, h, w = dims
        inner: Shape = (n, c, h * found.rest[0], w * found.rest[1])
        first = _window(slide.shape, found.part, inner) if found.two else slide.geometry
        second = _window(inner, found.rest, dims)
        columns = first.steps[1], second.steps[1]
        steps = scaled_steps(op)
        ones = prod(found.part) * channel_rows(0, c)
        filled: Shape = (1, CHIP.lanes, 1, -(-ones // 4))

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            weights, pixels, floats, sums, words, halves, *more = scratch
            MACHINE.recorded(_fill, 0).emit(build, filled, [], weights)
            reads = [CHIP.plane(ins[0], slide.shape, 1), (weights, weights + ones)]
            signed, target = op.input.dtype == "i8", (inner, LocalPlace(pixels, pixel_bytes(inner)))
            # a depthwise convolution with ones, which must be a tensor (bm1684.md 6.2)
            depthwise(build, target, ins[0], weights, None, first, Integers(2, signed), reads)
            _floats_of_pixels(build, inner, pixels, floats, signed)
            if found.two:
                parts = map_at(floats, inner)
                depthwise(build, (dims, map_at(sums, dims)), floats, ONE, None, second, None, [parts.range])
            steps.emit(build, dims, [sums if found.two else floats], words, more)
            pack_words(build, dims, words, halves, outs[0], op.type.dtype == "i8")

        sizes_of_scratch = (
            lane_bytes(filled),
            pixel_bytes(inner),
            lane_bytes(inner),
            lane_bytes(dims),
            lane_bytes(dims),
            lane_bytes((2 * n, c, h, w), 1),
        )
        return TileWork(
            (self.input_buffer(op, [slide]),),
            (MACHINE.activation_out(op.result, dims4(op.result), box),),
            sizes_of_scratch + (lane_bytes(dims),) * steps.registers,
            compute,
            MACHINE.recorded(_fill, 0).cycles(filled)
            + _sum_cycles(found, dims, columns, op.input.dtype == "i8")
            + steps.cycles(dims)
            + pack_words_cycles(dims),
        )


def _fill(m: Recorder) -> Register:
    return m.copy(_ONES)


def _window(source: Shape, kernel: tuple[int, int], result: Shape) -> Geometry:
    """Geometry of windows that stand side by side."""
    down, across = (size if results > 1 else 1 for size, results in zip(kernel, result[2:]))
    return Geometry((source[2], source[3]), kernel, steps=(down, across))


def _float_cycles(dims: Shape, signed: bool) -> int:
    """Cycles of the commands of `_floats_of_pixels`."""
    n, c, h, w = dims
    parts = [(slot, (-(-(n - slot) // 4), c, h, w)) for slot in range(min(n, 4))]
    return sum(MACHINE.recorded(narrow_to_float, 1, 16, signed, slot % 2).cycles(part) for slot, part in parts)


def _floats_of_pixels(build: Build, dims: Shape, pixels: int, words: int, signed: bool) -> None:
    """The halfwords of an int16 result as floats, one per word (bm1684.md 4.3.4a)."""
    n, c, h, w = dims
    by = tuple(step // 4 for step in pixel_strides((-(-n // 4), c, h, w)))
    to = aligned_strides(dims)
    for slot in range(min(n, 4)):
        source = Plane(pixels + 4 * (slot // 2), (by[0], by[1], 2 * w, 2))
        target = Plane(words + 4 * slot * to[0], (4 * to[0], *to[1:]))
        steps = MACHINE.recorded(narrow_to_float, 1, 16, signed, slot % 2)
        steps.emit(build, (-(-(n - slot) // 4), c, h, w), [source], target)
