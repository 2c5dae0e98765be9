"""Average pooling of bytes: the sum of a window times a multiplier of 8 bits (bm1684x-cube.md 6)."""

from __future__ import annotations

from math import prod

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.instructions.window import integer_average
from bmcompiler.backends.lanes.kernels.windows.pool_base import PoolKernel
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Box
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.pool import AvgPool
from bmcompiler.target import rule


class IntAvgPoolKernel(PoolKernel[AvgPool]):
    """avg_pool of i8 and u8 by a multiplier and a shift: the engine's own average."""

    ops = (AvgPool,)

    @rule("Operand and result must be of one type, i8 or u8")
    def known_types(self, op: AvgPool) -> bool:
        return op.input.dtype == op.type.dtype in ("i8", "u8")

    @rule("The multiplier must be between 0 and 255, and there must be no real factor", got="multiplier")
    def multiplier_range(self, op: AvgPool) -> bool:
        return bool(0 <= op.multiplier <= 255 and not op.scale)

    @rule("The sums must fit 32 bits: a smaller window")
    def exact_sums(self, op: AvgPool) -> bool:
        return prod(op.kernel) * 255 * 255 < 1 << 31

    def emit_window(self, op: AvgPool, build: Build, slide: Slide, box: Box, ins: list[int], result: int) -> None:
        target, signed = Words(result, extents(box), item=1), op.input.dtype == "i8"
        command = integer_average(target, ins[0], slide.geometry, signed, (op.multiplier, op.rshift))
        chip = self.chip
        build.issue(command, [chip.plane(ins[0], slide.shape, 1)], [chip.plane(result, extents(box), 1)])

    def evaluate(self, op: AvgPool, *arrays: Array) -> Array:
        """The op itself."""
        return op.evaluate(*arrays)
