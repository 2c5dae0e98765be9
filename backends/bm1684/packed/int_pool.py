"""Average pooling of bytes: by a shift, by a factor in words, by stages of packed words (bm1684.md 6.2)."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.bm1684.build import Build, compact_bytes, extents, lane_bytes
from bmcompiler.backends.bm1684.chip import CHIP, aligned_strides, channel_rows, pixel_strides
from bmcompiler.backends.bm1684.instructions.packed import Number, Packed, emit_packed, pack_words, pixel_bytes
from bmcompiler.backends.bm1684.instructions.products import ONE, Integers, LocalPlace, depthwise, map_at
from bmcompiler.backends.bm1684.instructions.transfers import Side, convert, in_lane
from bmcompiler.backends.bm1684.isa import DataFormat, Eu
from bmcompiler.backends.bm1684.packed.int_steps import pack_words_cycles, packed_cycles
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.backends.lanes.kernels.functions.elementwise import result_buffer
from bmcompiler.backends.lanes.kernels.windows.pool_base import PoolKernel
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.recipes import Plane, Recorder, Register, Steps
from bmcompiler.backends.lanes.recipes.rounding import narrow_to_float, quantize
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.chip import MAX_STEP
from bmcompiler.codegen.build import dense_strides as global_strides
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.pool import AvgPool
from bmcompiler.target import rule

_BYTES = ("i8", "u8")
_EXACT = 1 << 24  # sums of whole numbers up to here are exact in fp32


class IntAvgPool(PoolKernel[AvgPool]):
    """Base: bytes in and out; evaluation is the op's own, which is exact."""

    ops = (AvgPool,)

    @rule("Operand and result must be i8 or u8")
    def known_types(self, op: AvgPool) -> bool:
        return op.input.dtype in _BYTES and op.type.dtype in _BYTES

    @staticmethod
    def largest_sum(op: AvgPool) -> int:
        """Largest magnitude of the sum of a window."""
        return prod(op.kernel) * (255 if op.input.dtype == "u8" else 128)


class ShiftedAvgPoolKernel(IntAvgPool):
    """A depthwise convolution whose weights are all the multiplier.

    The engine's own average takes its multiplier from the area of the window instead, whatever the command says.
    """

    @rule("The multiplier must be between -128 and 255", got="multiplier")
    def multiplier_range(self, op: AvgPool) -> bool:
        return bool(-128 <= op.multiplier <= 255)

    @rule("The sums must fit 32 bits: a smaller window")
    def exact_sums(self, op: AvgPool) -> bool:
        return self.largest_sum(op) * abs(op.multiplier) + (1 << op.rshift >> 1) < 1 << 31

    def near_work(self, op: AvgPool, box: Box) -> TileWork:
        """The weights of a tile are filled in where they are needed: less than what a load takes to begin."""
        work, (c0, c1) = super().near_work(op, box), box[1]
        weights = compact_bytes((1, c1 - c0, *op.kernel), 1)
        filled: Shape = (1, CHIP.lanes, 1, -(-weights // 4))

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            build.fill(Words(scratch[0], filled), (op.multiplier & 0xFF) * 0x0101_0101)
            work.compute(build, [*ins, scratch[0]], outs, [])

        cycles = work.cycles + self.machine.cycles.pass_cycles(filled)
        return replace(work, scratch=(lane_bytes(filled),), compute=compute, cycles=cycles)

    @staticmethod
    def _exceeds(op: AvgPool) -> bool:
        """Whether results are unsigned that must stay in the range of signed ones."""
        return op.type.dtype == "i8" and op.input.dtype == "u8" and op.multiplier > 127

    def cycles(self, op: AvgPool, box: Box, slide: Slide) -> int:
        return self.window_cycles(op, box, slide) + self._exceeds(op) * packed_cycles(
            self.machine.cycles, extents(box), 1, 1
        )

    def emit_window(self, op: AvgPool, build: Build, slide: Slide, box: Box, ins: list[int], result: int) -> None:
        dims, signed_result = extents(box), op.type.dtype == "i8"
        signs = op.input.dtype == "i8", op.multiplier < 0 or (signed_result and op.multiplier <= 127)
        numbers = Integers(1, *signs, shift=op.rshift, unsigned=not signed_result)
        source, weights = map_at(ins[0], slide.shape, 1), LocalPlace(ins[1], compact_bytes((1, dims[1], *op.kernel), 1))
        reads = [source.range, weights.range]
        target = dims, map_at(result, dims, 1)
        depthwise(build, target, ins[0], weights.address, None, slide.geometry, numbers, reads)
        if self._exceeds(op):
            tile = Packed(result, 1, False)
            emit_packed(build, Eu.MIN, dims, tile, tile, Number(127, 1, False))

    def evaluate(self, op: AvgPool, *arrays: Array) -> Array:
        """The op itself."""
        return op.evaluate(*arrays)


class WordAvgPoolKernel(IntAvgPool):
    """Sums in fp32, where they are exact, times the factor, rounded half away from zero: one element per word."""

    @rule("The window must have at most 65793 elements")
    def exact_sums(self, op: AvgPool) -> bool:
        return self.largest_sum(op) <= _EXACT

    def grid(self, op: AvgPool) -> tuple[Axis, ...]:
        n, *rest = super().grid(op)
        return (Axis(n.size, 1, n.most), *rest)

    def sizes(self, op: AvgPool) -> tuple[int, int]:
        return 4, 4

    def near_work(self, op: AvgPool, box: Box) -> TileWork:
        slide, dims, steps = self.slide(op, box, box[1]), extents(box), scaled_steps(self.machine, op)
        source = _words_in(op, slide)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            target, data = (dims, map_at(scratch[0], dims)), map_at(ins[0], slide.shape)
            depthwise(build, target, data.address, ONE, None, slide.geometry, None, [data.range])
            steps.emit(build, dims, [scratch[0]], outs[0], scratch[1:])

        out = result_buffer(self.chip, op.result, dims4(op.result), box)
        scratch = (lane_bytes(dims),) * (1 + steps.registers)
        return TileWork((source,), (out,), scratch, compute, self.window_cycles(op, box, slide, 4) + steps.cycles(dims))

    def evaluate(self, op: AvgPool, *arrays: Array) -> Array:
        """The op itself."""
        return op.evaluate(*arrays)


def scaled_steps(machine: LaneMachine, op: AvgPool) -> Steps:
    """From the sum of a window, as float, to the result, a word each."""
    limits = np.iinfo(op.type.numpy)
    return machine.recorded(_scaled, 1, float(np.float32(op.scale)), float(limits.min), float(limits.max))


def _scaled(m: Recorder, x: Register, factor: float, low: float, high: float) -> Register:
    return quantize(m, m.mul(x, factor), low, high)


def _words_in(op: AvgPool, slide: Slide) -> Buffer:
    """The input of a tile as floats; zeros around it where the engine does not pad."""
    strides = global_strides(dims4(op.input))
    dims, (top, _, left, _) = extents(slide.source), slide.frame
    start = sum(lo * stride for (lo, _), stride in zip(slide.source, strides))
    form = DataFormat.INT8 if op.input.dtype == "i8" else DataFormat.UINT8

    def load(build: Build, address: int) -> None:
        if any(slide.frame):
            build.fill_local(address, slide.shape, 4, 0)
        first = address + 4 * (top * slide.shape[3] + left)
        inner = in_lane(first, dims, aligned_strides(slide.shape), CHIP.plane(address, slide.shape))
        convert(build, Side(build.source(op.input) + start, dims, strides), inner, form)

    return Buffer(lane_bytes(slide.shape), "nchw", prod(dims), load)


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


def stages(machine: LaneMachine, op: AvgPool) -> Stages | None:
    """How the windows of an average are summed, None when 16 bits are too few.

    A window may be cut into equal parts where windows stand side by side and cover the input.
    """
    most, kernel, outputs = _LARGEST.get(op.input.dtype, 0), op.kernel, op.type.shape[2:]
    if not most:
        return None
    covering = all(k * out == size for k, out, size in zip(kernel, outputs, op.input.shape[2:]))
    if covering and not any(op.pads):
        return machine.decided(_fewest_cycles, machine, kernel, outputs, most)
    return Stages(kernel, (1, 1)) if prod(kernel) <= most else None


def _fewest_cycles(machine: LaneMachine, kernel: tuple[int, int], outputs: tuple[int, int], most: int) -> Stages:
    """Parts of all rows or all columns need no step along these where there is one window."""
    down, across = (_parts(length, count > 1) for length, count in zip(kernel, outputs))
    parts = [(a, b) for a in down for b in across if a * b <= most]
    if prod(kernel) <= most:
        parts.append(kernel)

    def cycles(found: Stages) -> int:
        wide = found.rest[1] * outputs[1] > 1, outputs[1] > 1
        steps = tuple(size if several else 1 for size, several in zip((found.part[1], found.rest[1]), wide))
        return _sum_cycles(machine, found, (1, 1, *outputs), steps, True)  # type: ignore[arg-type]

    return min((Stages(part, (kernel[0] // part[0], kernel[1] // part[1])) for part in parts), key=cycles)


def _parts(length: int, several: bool) -> list[int]:
    """Lengths of equal parts of a window; with several windows such that commands can step from each to the next."""
    sizes = [size for size in range(1, length + 1) if length % size == 0]
    if not several:
        return [size for size in sizes if size <= MAX_STEP or size == length]
    near = [size for size in sizes if size <= MAX_STEP]
    return [size for size in near if length // size <= MAX_STEP] or near


def _sum_cycles(machine: LaneMachine, found: Stages, dims: Shape, steps: tuple[int, int], signed: bool) -> int:
    """Cycles of the sums of windows as floats; steps: columns between the windows of each stage."""
    n, c, h, w = dims
    inner: Shape = (n, c, h * found.rest[0], w * found.rest[1])
    window = machine.cycles.window
    sums = window(inner, found.part, steps[0], sums=True, item=1) + _float_cycles(machine, inner, signed)
    return sums + found.two * window(dims, found.rest, steps[1], sums=True)


class PackedAvgPoolKernel(IntAvgPool):
    """Sums of four images at a time in 16 bits, added up in fp32 where windows are larger, and back to packed bytes."""

    def steps(self, op: AvgPool) -> tuple[int, int]:
        found = stages(self.machine, op)
        if found is None or not found.two:
            return op.strides
        return max(found.part[0], found.rest[0]), max(found.part[1], found.rest[1])

    def near_work(self, op: AvgPool, box: Box) -> TileWork:
        found = stages(self.machine, op)
        assert found is not None, "`AvgPoolKernel.form` found it"
        slide, dims = self.slide(op, box, box[1]), extents(box)
        n, c, h, w = dims
        inner: Shape = (n, c, h * found.rest[0], w * found.rest[1])
        first = _window(slide.shape, found.part, inner) if found.two else slide.geometry
        second = _window(inner, found.rest, dims)
        columns = first.steps[1], second.steps[1]
        steps = scaled_steps(self.machine, op)
        ones = prod(found.part) * channel_rows(0, c)
        filled: Shape = (1, CHIP.lanes, 1, -(-ones // 4))

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            weights, pixels, floats, sums, words, halves, *more = scratch
            self.machine.recorded(_fill, 0).emit(build, filled, [], weights)
            reads = [CHIP.plane(ins[0], slide.shape, 1), (weights, weights + ones)]
            signed, target = op.input.dtype == "i8", (inner, LocalPlace(pixels, pixel_bytes(inner)))
            # a depthwise convolution with ones, which must be a tensor (bm1684.md 6.2); their sign is that of the data,
            # since signed ones make signed sums (6.0.1), which end at 32767
            depthwise(build, target, ins[0], weights, None, first, Integers(2, signed, signed), reads)
            _floats_of_pixels(self.machine, build, inner, pixels, floats, signed)
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
            (self.machine.activation_out(op.result, dims4(op.result), box),),
            sizes_of_scratch + (lane_bytes(dims),) * steps.registers,
            compute,
            self.machine.recorded(_fill, 0).cycles(filled)
            + _sum_cycles(self.machine, found, dims, columns, op.input.dtype == "i8")
            + steps.cycles(dims)
            + pack_words_cycles(self.machine.cycles, dims),
        )


def _fill(m: Recorder) -> Register:
    return m.copy(_ONES)


def _window(source: Shape, kernel: tuple[int, int], result: Shape) -> Geometry:
    """Geometry of windows that stand side by side."""
    down, across = (size if results > 1 else 1 for size, results in zip(kernel, result[2:]))
    return Geometry((source[2], source[3]), kernel, steps=(down, across))


def _float_cycles(machine: LaneMachine, dims: Shape, signed: bool) -> int:
    n, c, h, w = dims
    parts = [(slot, (-(-(n - slot) // 4), c, h, w)) for slot in range(min(n, 4))]
    return sum(machine.recorded(narrow_to_float, 1, 16, signed, slot % 2).cycles(part) for slot, part in parts)


def _floats_of_pixels(machine: LaneMachine, build: Build, dims: Shape, pixels: int, words: int, signed: bool) -> None:
    """The halfwords of an int16 result as floats, one per word (bm1684.md 4.3.4a)."""
    n, c, h, w = dims
    by = tuple(step // 4 for step in pixel_strides((-(-n // 4), c, h, w)))
    to = aligned_strides(dims)
    for slot in range(min(n, 4)):
        source = Plane(pixels + 4 * (slot // 2), (by[0], by[1], 2 * w, 2))
        target = Plane(words + 4 * slot * to[0], (4 * to[0], *to[1:]))
        steps = machine.recorded(narrow_to_float, 1, 16, signed, slot % 2)
        steps.emit(build, (-(-(n - slot) // 4), c, h, w), [source], target)
