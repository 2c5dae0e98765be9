"""Average pooling of bytes: by a multiplier and a shift, or by a real factor (bm1684.md 6.2)."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.build import Build, compact_bytes, extents, lane_bytes
from bmcompiler.backends.bm1684.chip import CHIP, aligned_strides
from bmcompiler.backends.bm1684.instructions.packed import Number, Packed, emit_packed
from bmcompiler.backends.bm1684.instructions.transfers import Side, convert, in_lane
from bmcompiler.backends.bm1684.instructions.window import ONE, Integers, LocalPlace, depthwise, map_at
from bmcompiler.backends.bm1684.isa import DataFormat, Eu
from bmcompiler.backends.bm1684.machine import MACHINE
from bmcompiler.backends.bm1684.packed.int_cycles import packed_cycles
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.backends.lanes.kernels.elementwise import result_buffer
from bmcompiler.backends.lanes.kernels.pool_base import PoolKernel
from bmcompiler.backends.lanes.kernels.sliding import Slide
from bmcompiler.backends.lanes.recipes import Recorder, Register, Steps
from bmcompiler.backends.lanes.recipes.rounding import quantize
from bmcompiler.codegen.build import dense_strides as global_strides
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ops.pool import AvgPool
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

    def constants(self, op: AvgPool, box: Box) -> tuple[Buffer, ...]:
        c0, c1 = box[1]
        down, across = op.kernel
        dims = (1, c1 - c0, down, across)

        def load(build: Build, address: int) -> None:
            offset = build.coefficients.constant(bytes([op.multiplier & 0xFF]) * (down * across))
            build.load_compact(build.coefficient(offset), dims, 1, address, (0, 0, across, 1))

        return (Buffer(compact_bytes(dims, 1), "c", prod(dims), load, True),)

    @staticmethod
    def _exceeds(op: AvgPool) -> bool:
        """Whether results are unsigned that must stay in the range of signed ones."""
        return op.type.dtype == "i8" and op.input.dtype == "u8" and op.multiplier > 127

    def cycles(self, op: AvgPool, box: Box, slide: Slide) -> int:
        return self.window_cycles(op, box, slide) + self._exceeds(op) * packed_cycles(extents(box), 1, 1)

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

    def evaluate(self, op: AvgPool, *arrays: Any) -> Any:
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

    def work(self, op: AvgPool, box: Box) -> TileWork:
        slide, dims, steps = self.slide(op, box, box[1]), extents(box), scaled_steps(op)
        source = _words_in(op, slide)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            target, data = (dims, map_at(scratch[0], dims)), map_at(ins[0], slide.shape)
            depthwise(build, target, data.address, ONE, None, slide.geometry, None, [data.range])
            steps.emit(build, dims, [scratch[0]], outs[0], scratch[1:])

        out = result_buffer(self.chip, op.result, dims4(op.result), box)
        scratch = (lane_bytes(dims),) * (1 + steps.registers)
        return TileWork((source,), (out,), scratch, compute, self.window_cycles(op, box, slide, 4) + steps.cycles(dims))

    def evaluate(self, op: AvgPool, *arrays: Any) -> Any:
        """The op itself."""
        return op.evaluate(*arrays)


def scaled_steps(op: AvgPool) -> Steps:
    """From the sum of a window, as float, to the result, a word each."""
    limits = np.iinfo(op.type.numpy)
    return MACHINE.recorded(_scaled, 1, float(np.float32(op.scale)), float(limits.min), float(limits.max))


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
