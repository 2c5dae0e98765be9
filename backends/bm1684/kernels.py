"""Kernels of this chip alone, convolution, matrix products, pooling, and the list of all that it runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.build import Build
from bmcompiler.backends.bm1684.chip import CHIP, align_up
from bmcompiler.backends.bm1684.cycles import LINEAR_STEPS
from bmcompiler.backends.bm1684.instructions.products import LocalPlace
from bmcompiler.backends.bm1684.instructions.products import convolution as emit_convolution
from bmcompiler.backends.bm1684.instructions.products import depthwise as emit_depthwise
from bmcompiler.backends.bm1684.instructions.words import linear
from bmcompiler.backends.bm1684.machine import depthwise_sums, float_convolution
from bmcompiler.backends.bm1684.packed.bands import FromBandsKernel, RegroupBandsKernel, ToBandsKernel
from bmcompiler.backends.bm1684.packed.conv_int import IntConvKernel, IntDeconvKernel
from bmcompiler.backends.bm1684.packed.int_elementwise import (
    BinaryForms,
    BitForms,
    CastForms,
    CompareForms,
    FunctionForms,
    IntegerKernel,
    LutKernel,
    WhereForms,
)
from bmcompiler.backends.bm1684.packed.int_matmul import IntMatmulKernel
from bmcompiler.backends.bm1684.packed.int_matrix import IntMatrixKernel
from bmcompiler.backends.bm1684.packed.int_pool import (
    PackedAvgPoolKernel,
    ShiftedAvgPoolKernel,
    WordAvgPoolKernel,
    stages,
)
from bmcompiler.backends.bm1684.packed.lut_softmax import LutSoftmaxKernel
from bmcompiler.backends.bm1684.packed.quantize_bands import QuantizeBandsKernel
from bmcompiler.backends.bm1684.row_products import RowMatmulKernel
from bmcompiler.backends.lanes.kernels.base import DeviceKernel, LocalKernel, dims4, is_constant
from bmcompiler.backends.lanes.kernels.channel_constants import joined_buffer
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.backends.lanes.kernels.functions.activation import ChannelKernel
from bmcompiler.backends.lanes.kernels.sums.float_matmul import FloatMatmulKernel
from bmcompiler.backends.lanes.kernels.sums.recurrence import RecurrenceKernel
from bmcompiler.backends.lanes.kernels.table import SHARED
from bmcompiler.backends.lanes.kernels.windows import float_conv
from bmcompiler.backends.lanes.kernels.windows.conv_geometry import DeconvGeometry, channel_groups
from bmcompiler.backends.lanes.kernels.windows.float_pool import FloatAvgPoolKernel
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, TileWork
from bmcompiler.numeric.arrays import Floats
from bmcompiler.numeric.fp32 import add, flush
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Prelu
from bmcompiler.ops.layers.nn import Conv, Convolution, Deconv, Matmul
from bmcompiler.ops.layers.norm import Scale
from bmcompiler.ops.layers.pool import AvgPool

PAIR = 2
"""Input channels of an fp32 kernel lie in pairs (bm1684.md 4.4)."""


class FloatConvKernel(float_conv.FloatConvKernel):
    """conv in fp32; the bias is added last."""

    def dense_row(self, op: Convolution) -> tuple[int, int]:
        return prod(self.taps(op)), align_up(self.depth(op), PAIR)

    def pack(self, weight: np.ndarray) -> np.ndarray:
        return channel_groups(weight, PAIR)

    def emit_sums(
        self,
        op: Convolution,
        build: Build,
        slide: Slide,
        places: Sequence[int],
        target: Words,
        reads: Sequence[tuple[int, int]],
    ) -> None:
        data, *bias, weights = places
        result = target.shape, LocalPlace(target.address, CHIP.aligned_bytes(target.shape))
        place = bias[0] if bias else None
        if self.is_depthwise(op):
            emit_depthwise(build, result, data, weights, place, slide.geometry, None, reads)
        else:
            kernel = weights, self.depth(op)
            emit_convolution(build, result, data, kernel, place, slide.geometry, None, reads)

    def sums(self, op: Convolution, window: Window, x: Floats, kernels: Floats, bias: Floats | None) -> Floats:
        return _biased(float_convolution(window, x, columns_of(kernels)), bias)

    def depthwise_sums(
        self, op: Convolution, window: Window, x: Floats, kernels: Floats, bias: Floats | None
    ) -> Floats:
        return _biased(depthwise_sums(window, flush(window.prepare(x)), flush(kernels)), bias)


class FloatDeconvKernel(DeconvGeometry, FloatConvKernel):
    """deconv in fp32."""

    ops = (Deconv,)


def is_linear(op: TensorOp) -> bool:
    """Whether an op is a scale of float channels that lie in lanes, by constants."""
    if not isinstance(op, Scale) or not op.type.is_float or op.bias is None:
        return False
    if op.type.rank != 4 or op.axis % 4 != 1:
        return False
    return is_constant(op.weight) and is_constant(op.bias) and CHIP.fits_fields(op.type.shape)


class LinearScaleKernel(ChannelKernel):
    """scale by constants along channels, rounded as product and sum are; both vectors are loaded together."""

    def grid(self, op: Scale) -> tuple[Axis, ...]:  # type: ignore[override]
        return self.machine.elementwise_grid(dims4(op.result))

    def work(self, op: Scale, box: Box) -> TileWork:  # type: ignore[override]
        dims, shape = extents(box), dims4(op.result)
        assert op.bias is not None, "`is_linear` asks for a bias"
        joined = joined_buffer(CHIP, op.weight, op.bias, "scale", np.asarray, CHIP.word, box[1])

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            factor, added = (Words(ins[1] + at, dims, (0, 1, 0, 0)) for at in (0, joined.bias))
            linear(build, Words(outs[0], dims), Words(ins[0], dims), factor, added)

        return TileWork(
            (self.machine.activation_in(op.input, shape, box), joined.buffer),
            (self.machine.activation_out(op.result, shape, box),),
            (),
            compute,
            self.machine.cycles.pass_cycles(dims, steps=LINEAR_STEPS),
        )


class ChannelForms(FormsKernel[TensorOp]):
    """prelu, scale and batch_norm of floats, prelu also of bytes."""

    ops = ChannelKernel.ops
    kinds = (ChannelKernel, IntegerKernel, LinearScaleKernel)

    def form(self, op: TensorOp) -> DeviceKernel[Any]:
        if is_linear(op):
            return self.forms[2]
        return self.forms[not op.type.is_float and isinstance(op, Prelu)]


class ConvKernel(FormsKernel[Conv]):
    """conv of floats and of bytes."""

    ops = (Conv,)
    kinds = (FloatConvKernel, IntConvKernel)


class DeconvKernel(FormsKernel[Deconv]):
    """deconv of floats and of bytes."""

    ops = (Deconv,)
    kinds = (FloatDeconvKernel, IntDeconvKernel)


def columns_of(weight: Floats) -> Floats:
    """(O, I, KH, KW) -> (KH, KW, I rounded up to even, O): what `float_convolution` takes."""
    o, i, kh, kw = weight.shape
    out = np.zeros((kh, kw, align_up(i, PAIR), o), np.float32)
    out[:, :, :i] = weight.transpose(2, 3, 1, 0)
    return out


def _biased(sums: Floats, bias: Floats | None) -> Floats:
    return sums if bias is None else add(sums, bias[:, None, None])


class MatmulKernel(FormsKernel[Matmul]):
    """matmul of floats (in sections of columns, or rows in lanes) and of bytes."""

    ops = (Matmul,)
    kinds = (FloatMatmulKernel, RowMatmulKernel, IntMatmulKernel, IntMatrixKernel)

    def form(self, op: Matmul) -> DeviceKernel[Any]:
        """Of integers the one that is done sooner, transfers included."""
        floats, in_lanes, rows, matrices = self.forms
        if op.left.type.is_float:
            assert isinstance(in_lanes, RowMatmulKernel), "the second form has rows in lanes"
            return in_lanes if in_lanes.is_taken(op) else floats
        if matrices.unsupported_reason(op) is not None:
            return rows
        return min((rows, matrices), key=lambda kernel: self._cycles(kernel, op))

    def _cycles(self, kernel: DeviceKernel[Any], op: Matmul) -> float:
        """Of all as one tile, whether it fits or not; no more than a comparison is wanted."""
        assert isinstance(kernel, LocalKernel), "both forms have tiles"
        work, cycles = kernel.work(op, tuple((0, axis.size) for axis in kernel.grid(op))), self.machine.cycles
        moved = sum(map(cycles.bus.load, work.inputs)) + sum(map(cycles.bus.store, work.outputs))
        return work.cycles + moved / cycles.bytes_per_cycle


class AvgPoolKernel(FormsKernel[AvgPool]):
    """avg_pool of floats, and of bytes by a shift or by a factor."""

    ops = (AvgPool,)
    kinds = (FloatAvgPoolKernel, ShiftedAvgPoolKernel, WordAvgPoolKernel, PackedAvgPoolKernel)

    def form(self, op: AvgPool) -> DeviceKernel[Any]:
        if op.input.type.is_float:
            return self.forms[0]
        if not op.scale:
            return self.forms[1]
        return self.forms[2 if stages(self.machine, op) is None else 3]


KINDS: tuple[type[DeviceKernel[Any]], ...] = (
    ConvKernel,
    DeconvKernel,
    BinaryForms,
    FunctionForms,
    ChannelForms,
    IntegerKernel,
    LutKernel,
    LutSoftmaxKernel,
    MatmulKernel,
    AvgPoolKernel,
    CastForms,
    CompareForms,
    WhereForms,
    BitForms,
    ToBandsKernel,
    RegroupBandsKernel,
    FromBandsKernel,
    QuantizeBandsKernel,
    RecurrenceKernel,
    *SHARED,
)
"""All of them, constructed with the machine of a compilation."""
