"""Convolution and transposed convolution of floats: dense, grouped and depthwise (bm1684x-cube.md 5, 6)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.half_arithmetic import HalfArithmetic
from bmcompiler.backends.bm1684x.instructions import window as commands
from bmcompiler.backends.bm1684x.lane_commands import PRECISIONS
from bmcompiler.backends.bm1684x.ordered import convolution, depthwise
from bmcompiler.backends.bm1684x.timing_profile import GROUP
from bmcompiler.backends.lanes.kernels.base import item_bytes
from bmcompiler.backends.lanes.kernels.windows import float_conv
from bmcompiler.backends.lanes.kernels.windows.conv_geometry import DeconvGeometry, channel_groups, runs_of
from bmcompiler.backends.lanes.kernels.windows.fold_rows import fold_inside
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.codegen.hazards import Range
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.numeric.arrays import Floats
from bmcompiler.numeric.fused import GROUP as HALF_GROUP
from bmcompiler.ops.layers.nn import Convolution, Deconv
from bmcompiler.target import rule


class ConvKernel(float_conv.FloatConvKernel):
    """conv: weights lie in groups of input channels, of fp32 each channel by itself; the bias is added first."""

    def dense_row(self, op: Convolution) -> tuple[int, int]:
        group = GROUP[PRECISIONS[op.weight.dtype][0]]
        return -(-self.depth(op) // group) * prod(self.taps(op)), group

    def runs(self, op: Convolution) -> tuple[int, int]:
        group, item = GROUP[PRECISIONS[op.weight.dtype][0]], item_bytes(op.weight)
        run, distance = (0, 0) if self.is_depthwise(op) else runs_of(self.depth(op), prod(self.taps(op)), group)
        return run * item, distance * item

    def pack(self, weight: np.ndarray) -> np.ndarray:
        if weight.dtype == np.float32:
            return weight
        rows = channel_groups(weight, HALF_GROUP)  # (O, taps, whole groups of channels)
        return rows.reshape(*rows.shape[:2], -1, HALF_GROUP).swapaxes(1, 2)

    def whole_work(self, op: Convolution, box: Box) -> TileWork:
        """Rows of windows become channels inside local memory, where the input lies as it is."""
        return fold_inside(self, op, box, self.work(op, box, whole=True))

    @rule("Input, weights and result must be of one type, {kernel.floats}; a bias too if depthwise, else f32")
    def known_types(self, op: Convolution) -> bool:
        bias = op.input.dtype if self.is_depthwise(op) else "f32"
        return self.one_float(op.input, op.weight, op.result) and (op.bias is None or op.bias.dtype == bias)

    def emit_sums(
        self,
        op: Convolution,
        build: Build,
        slide: Slide,
        places: Sequence[int],
        target: Words,
        reads: Sequence[Range],
    ) -> None:
        data, *bias, weights = places
        kind, place = PRECISIONS[op.input.dtype][0], bias[0] if bias else None
        if self.is_depthwise(op):
            command = commands.depthwise(target, data, weights, place, slide.geometry, kind)
        else:
            kernel, result = (weights, self.depth(op)), PRECISIONS[op.result.dtype][0]
            command = commands.convolution(target, data, kernel, place, slide.geometry, kind, result)
        build.issue(command, reads, [self.chip.plane(target.address, target.shape, target.item)])

    def sums(self, op: Convolution, window: Window, x: Floats, kernels: Floats, bias: Floats | None) -> Floats:
        if op.input.dtype == "f32":
            return convolution(window, x, kernels, bias)
        return self._half(op).convolution(window, x, kernels, bias)

    def depthwise_sums(
        self, op: Convolution, window: Window, x: Floats, kernels: Floats, bias: Floats | None
    ) -> Floats:
        if op.input.dtype == "f32":
            return depthwise(window, x, kernels, bias)
        return self._half(op).depthwise(window, x, kernels, bias)

    def _half(self, op: Convolution) -> HalfArithmetic:
        found = self.machine.arithmetic_of(op.input.dtype)
        assert isinstance(found, HalfArithmetic), "asked of 16-bit floats"
        return found


class DeconvKernel(DeconvGeometry, ConvKernel):
    """deconv of floats."""

    ops = (Deconv,)
