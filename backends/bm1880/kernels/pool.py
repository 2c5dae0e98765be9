"""Max and average pooling."""

from __future__ import annotations

from typing import TypeVar

from bmcompiler.backends.bm1880.bmkernel import (
    bmk1880_avg_pooling_param_t,
    bmk1880_max_pooling_param_t,
    bmk1880_tpu_avg_pooling,
    bmk1880_tpu_max_pooling,
)
from bmcompiler.backends.bm1880.build import Build, Dims, aligned, extents
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.kernels.base import LocalKernel, is_activation
from bmcompiler.backends.bm1880.machine import cycles_of
from bmcompiler.backends.lanes.facts import LaneFacts
from bmcompiler.chip import MAX_STEP
from bmcompiler.codegen.hazards import Range
from bmcompiler.codegen.tile_kernels import SlidingKernel
from bmcompiler.codegen.tiling import Box
from bmcompiler.ops.layers.pool import AvgPool, MaxPool, Pool
from bmcompiler.target import rule

PoolT = TypeVar("PoolT", bound=Pool)


class PoolKernel(SlidingKernel[PoolT], LocalKernel[PoolT]):
    """Base: one window per channel."""

    chip: LaneFacts
    most = (CHIP.most_images, CHIP.most_channels)

    @rule("Input and result must be int8, the input no constant")
    def integer_types(self, op: PoolT) -> bool:
        return (op.input.dtype, op.type.dtype) == ("i8", "i8") and is_activation(op.input)

    @rule("Strides must be between 1 and 15 on both axes", got="strides")
    def stride_range(self, op: PoolT) -> bool:
        return all(1 <= s <= MAX_STEP for s in op.strides)

    @rule("The window must have more than one element, and at most 255 per axis", got="kernel")
    def window_size(self, op: PoolT) -> bool:
        kh, kw = op.kernel
        return bool(kh * kw > 1 and max(kh, kw) <= 255)

    @rule("Dilated pooling windows are not in the instruction")
    def no_dilation(self, op: PoolT) -> bool:
        return op.taps() == (1, 1)

    @rule("Every window must reach into the input, with at most 15 elements of padding on each side", got="pads")
    def padding_range(self, op: PoolT) -> bool:
        return all(axis.fits(out) for axis, out in zip(self.windows(op), op.type.shape[2:]))

    def cycles(self, op: PoolT, dims: Dims) -> int:
        return cycles_of(self.machine).product(dims, self.taps(op))

    def command(self, op: PoolT, box: Box, build: Build, ins: list[Range], out: Range) -> None:
        self._emit_tile(
            op,
            build,
            {
                "ofmap": aligned(out[0], extents(box)),
                "ifmap": aligned(ins[0][0], extents(self.source(op, box))),
                "kh": op.kernel[0],
                "kw": op.kernel[1],
                **dict(zip(("pad_top", "pad_bottom", "pad_left", "pad_right"), self.slide(op, box).pads)),
                "stride_h": op.strides[0],
                "stride_w": op.strides[1],
            },
        )

    def _emit_tile(self, op: PoolT, build: Build, fields: dict[str, object]) -> None:
        raise TypeError(f"{type(self).__name__} has no command")


class MaxPoolKernel(PoolKernel[MaxPool]):
    """max_pool: padding counts as -128, which never wins (bm1880.md 8.2)."""

    ops = (MaxPool,)

    def _emit_tile(self, op: MaxPool, build: Build, fields: dict[str, object]) -> None:
        build.tpu(bmk1880_tpu_max_pooling, bmk1880_max_pooling_param_t(**fields))  # type: ignore[arg-type]


class AvgPoolKernel(PoolKernel[AvgPool]):
    """avg_pool: window sum (padding counts as 0) times an unsigned constant, shifted."""

    ops = (AvgPool,)

    @rule("Averages are scaled by a multiplier and a shift, not by a real number", got="scale")
    def integer_scale(self, op: AvgPool) -> bool:
        return not op.scale

    @rule("The multiplier must be between 0 and 255", got="multiplier")
    def multiplier_range(self, op: AvgPool) -> bool:
        return bool(0 <= op.multiplier <= 255)

    def _emit_tile(self, op: AvgPool, build: Build, fields: dict[str, object]) -> None:
        param = bmk1880_avg_pooling_param_t(
            **fields,  # type: ignore[arg-type]
            avg_pooling_const=op.multiplier,
            rshift_width=op.rshift,
        )
        build.tpu(bmk1880_tpu_avg_pooling, param)
