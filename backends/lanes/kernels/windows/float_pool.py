"""Max and average pooling: maxima of floats and bytes, averages of floats."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.lanes.build import ONE, LaneBuild
from bmcompiler.backends.lanes.kernels.base import item_bytes
from bmcompiler.backends.lanes.kernels.windows.pool_base import PoolKernel
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Box, Buffer
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.ops.layers.pool import AvgPool, MaxPool
from bmcompiler.target import rule

_ONE = np.float32(1)
MOST_ROUNDED = 16


class MaxPoolKernel(PoolKernel[MaxPool]):
    """max_pool of f32, i8 and u8: padding is the lowest number, and never wins."""

    ops = (MaxPool,)
    sums = False

    @rule("Input and result must be {kernel.floats}, i8 or u8")
    def known_types(self, op: MaxPool) -> bool:
        return op.input.dtype in (*self.machine.float_types, "i8", "u8")

    @rule("Dilated pooling windows are not in the instruction", got="dilations")
    def no_dilation(self, op: MaxPool) -> bool:
        return all(d == 1 or k == 1 for d, k in zip(op.dilations, op.kernel))

    def border(self, op: MaxPool) -> int:
        if op.input.type.is_float:
            lowest = self.lowest(op)
            return int(lowest.view(f"u{lowest.itemsize}"))
        return int(np.iinfo(op.input.type.numpy).min)

    @staticmethod
    def lowest(op: MaxPool) -> Any:
        """The lowest finite number of the type of a float input."""
        return np.nextafter(op.input.type.numpy.type(-np.inf), op.input.type.numpy.type(0))

    def emit_window(self, op: MaxPool, build: LaneBuild, slide: Slide, box: Box, ins: list[int], result: int) -> None:
        item, dtype = self.chip.word_item(item_bytes(op.input)), op.input.dtype
        target, source = (
            Words(at, shape, item=item, dtype=dtype) for at, shape in ((result, extents(box)), (ins[0], slide.shape))
        )
        build.largest(target, source, slide.geometry, op.input.dtype, self.border(op))

    def evaluate(self, op: MaxPool, *arrays: Array) -> Array:
        """The op; of floats, padding is the lowest finite one."""
        if not op.input.type.is_float:
            return op.evaluate(*arrays)
        arithmetic = self.machine.arithmetic_of(op.input.dtype)
        return arithmetic.window_largest(self.window(op), arrays[0], float(self.lowest(op)))


class FloatAvgPoolKernel(PoolKernel[AvgPool]):
    """avg_pool of floats: the sum of x * (1 / count) where all windows count alike, else sum * (1 / count)."""

    ops = (AvgPool,)

    @rule("Input and result must be of one type, {kernel.floats}")
    def known_types(self, op: AvgPool) -> bool:
        return self.one_float(op.input, op.result)

    @rule("Windows of 16-bit floats must count equally many positions everywhere")
    def equal_counts(self, op: AvgPool) -> bool:
        return bool(op.input.dtype == "f32") or self.common_factor(op) is not None

    @rule(f"Means of 16-bit floats, whose sums are rounded one by one, must be of at most {MOST_ROUNDED} elements")
    def few_elements(self, op: AvgPool) -> bool:
        return bool(op.input.dtype == "f32") or prod(op.kernel) <= MOST_ROUNDED

    @staticmethod
    def factors(op: AvgPool) -> Floats:
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
        dims = (1, min(c1 - c0, self.chip.lanes), y1 - y0, x1 - x0)
        width = op.type.shape[3]

        def load(build: LaneBuild, address: int) -> None:
            offset = build.coefficients.constant(self.factors(op).tobytes())
            build.load(build.coefficient(offset + 4 * (y0 * width + x0)), dims, (0, 0, width, 1), 4, address)

        return (Buffer(self.chip.aligned_bytes(dims), "hw", 4 * dims[2] * dims[3], load, True),)

    def cycles(self, op: AvgPool, box: Box, slide: Slide) -> int:
        scaled, passes = self.common_factor(op) is None, self.machine.cycles.pass_cycles
        return self.window_cycles(op, box, slide) + scaled * passes(extents(box), pair=True, in_place=True)

    def emit_window(self, op: AvgPool, build: LaneBuild, slide: Slide, box: Box, ins: list[int], result: int) -> None:
        common, item, dtype = self.common_factor(op), item_bytes(op.input), op.input.dtype
        factor = ONE if common is None else int(common.view(np.uint32))
        target = Words(result, extents(box), item=item, dtype=dtype)
        source = Words(ins[0], slide.shape, item=item, dtype=dtype)
        build.reduce(Unit.WINDOW_SUM, target, source, slide.geometry, factor)
        if common is None:  # a plane that all lanes have
            build.combine(Unit.MUL, target, target, Words(ins[1], target.shape, (0, 0, target.shape[3], 1)))

    def evaluate(self, op: AvgPool, *arrays: Array) -> Array:
        arithmetic, common = self.machine.arithmetic_of(op.input.dtype), self.common_factor(op)
        weight = np.full((op.input.shape[1], op.kernel[0] * op.kernel[1]), _ONE if common is None else common)
        sums = arithmetic.window_sums(self.window(op), arrays[0], weight)
        return sums if common is not None else arithmetic.multiply(sums, self.factors(op))
