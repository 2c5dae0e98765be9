"""Max and average pooling of floats and bytes (bm1684.md 6.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.build import Build, extents, lane_bytes
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.cycles import CYCLES
from bmcompiler.backends.bm1684.instructions.window import depthwise, map_at
from bmcompiler.backends.bm1684.instructions.window import largest as largest_of
from bmcompiler.backends.bm1684.instructions.words import arithmetic
from bmcompiler.backends.bm1684.isa import Eu
from bmcompiler.backends.bm1684.ordered import depthwise_sums, largest
from bmcompiler.backends.bm1684.packed.int_avg_pool import PackedAvgPoolKernel, stages
from bmcompiler.backends.bm1684.packed.int_pool import ShiftedAvgPoolKernel, WordAvgPoolKernel
from bmcompiler.backends.lanes.kernels.base import DeviceKernel, item_bytes
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.backends.lanes.kernels.pool_base import PoolKernel
from bmcompiler.backends.lanes.kernels.sliding import Slide
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.codegen.tiling import Box, Buffer
from bmcompiler.numeric.fp32 import FloatArray, flush, multiply
from bmcompiler.ops.pool import AvgPool, MaxPool
from bmcompiler.target import rule

_LOWEST = np.finfo(np.float32).min
"""What the engine pads with."""
_ONE = np.float32(1)


class MaxPoolKernel(PoolKernel[MaxPool]):
    """max_pool of f32, i8 and u8: padding is the lowest number, and never wins."""

    ops = (MaxPool,)
    sums = False

    @rule("Input and result must be f32, i8 or u8")
    def known_types(self, op: MaxPool) -> bool:
        return op.input.dtype in ("f32", "i8", "u8")

    @rule("Dilated pooling windows are not in the instruction", got="dilations")
    def no_dilation(self, op: MaxPool) -> bool:
        return all(d == 1 or k == 1 for d, k in zip(op.dilations, op.kernel))

    def border(self, op: MaxPool) -> int:
        if op.input.dtype == "f32":
            return int(_LOWEST.view(np.uint32))
        return int(np.iinfo(op.input.type.numpy).min)

    def emit_window(self, op: MaxPool, build: Build, slide: Slide, box: Box, ins: list[int], result: int) -> None:
        dims, item = extents(box), item_bytes(op.input)
        signed = None if op.input.dtype == "f32" else op.input.dtype == "i8"
        target, source = (dims, map_at(result, dims, item)), map_at(ins[0], slide.shape, item)
        largest_of(build, target, source, slide.geometry, signed)

    def evaluate(self, op: MaxPool, *arrays: Any) -> Any:
        """The op; of floats, padding is the lowest finite one."""
        if op.input.dtype != "f32":
            return op.evaluate(*arrays)
        return largest(self.window(op), arrays[0], float(_LOWEST))


class FloatAvgPoolKernel(PoolKernel[AvgPool]):
    """avg_pool of f32: the sum of x * (1 / count) where all windows count as many positions, else sum * (1 / count)."""

    ops = (AvgPool,)

    @rule("Input and result must be f32")
    def known_types(self, op: AvgPool) -> bool:
        return bool(op.input.dtype == "f32")

    @staticmethod
    def factors(op: AvgPool) -> FloatArray:
        """1 / count for every position (OH, OW)."""
        return _ONE / np.multiply.outer(op.counts(0), op.counts(1)).astype(np.float32)

    def common_factor(self, op: AvgPool) -> np.float32 | None:
        """1 / count where it is the same everywhere."""
        counts = [op.counts(0), op.counts(1)]
        return self.factors(op)[0, 0] if all((c == c[0]).all() for c in counts) else None

    def constants(self, op: AvgPool, box: Box) -> tuple[Buffer, ...]:
        if self.common_factor(op) is not None:
            return ()
        _, (c0, c1), (y0, y1), (x0, x1) = box
        dims = (1, min(c1 - c0, CHIP.lanes), y1 - y0, x1 - x0)
        width = op.type.shape[3]

        def load(build: Build, address: int) -> None:
            offset = build.coefficients.constant(self.factors(op).tobytes())
            build.load(build.coefficient(offset + 4 * (y0 * width + x0)), dims, (0, 0, width, 1), 4, address)

        return (Buffer(lane_bytes(dims), "hw", 4 * dims[2] * dims[3], load, True),)

    def cycles(self, op: AvgPool, box: Box, slide: Slide) -> int:
        scaling = 0 if self.common_factor(op) is not None else CYCLES.pass_cycles(extents(box), pair=True)
        return self.window_cycles(op, box, slide) + scaling

    def emit_window(self, op: AvgPool, build: Build, slide: Slide, box: Box, ins: list[int], result: int) -> None:
        common = self.common_factor(op)
        factor = Immediate(int((_ONE if common is None else common).view(np.uint32)))
        target, source = (extents(box), map_at(result, extents(box))), map_at(ins[0], slide.shape)
        depthwise(build, target, source.address, factor, None, slide.geometry, None, [source.range])
        if common is None:
            _emit_scaling(build, box, result, ins[1])

    def evaluate(self, op: AvgPool, *arrays: Any) -> Any:
        """The op in the chip's arithmetic and order of sums."""
        window, common = self.window(op), self.common_factor(op)
        weight = np.full((op.input.shape[1], op.kernel[0] * op.kernel[1]), _ONE if common is None else common)
        sums = depthwise_sums(window, flush(window.prepare(arrays[0])), weight)
        return sums if common is not None else multiply(sums, self.factors(op))


class AvgPoolKernel(FormsKernel[AvgPool]):
    """avg_pool of floats, and of bytes by a shift or by a factor."""

    ops = (AvgPool,)
    kinds = (FloatAvgPoolKernel, ShiftedAvgPoolKernel, WordAvgPoolKernel, PackedAvgPoolKernel)

    def form(self, op: AvgPool) -> DeviceKernel[Any]:
        if op.input.type.is_float:
            return self.forms[0]
        if not op.scale:
            return self.forms[1]
        return self.forms[2 if stages(op) is None else 3]


def _emit_scaling(build: Build, box: Box, result: int, factors: int) -> None:
    """Multiply every image and channel by the plane `factors`, which all lanes have."""
    tile = Words(result, extents(box))
    plane = Words(factors, tile.shape, (0, 0, tile.shape[3], 1))
    arithmetic(build, Eu.MUL, tile, tile, plane, relu=True)
