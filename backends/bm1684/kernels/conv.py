"""Convolution and transposed convolution in fp32: dense, grouped and depthwise (bm1684.md 6.1, 6.2)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.build import Build, extents
from bmcompiler.backends.bm1684.channel_constants import channel_buffer
from bmcompiler.backends.bm1684.chip import align_up
from bmcompiler.backends.bm1684.instructions.window import convolution as emit_convolution
from bmcompiler.backends.bm1684.instructions.window import depthwise as emit_depthwise
from bmcompiler.backends.bm1684.instructions.window import map_at
from bmcompiler.backends.bm1684.machine import MACHINE
from bmcompiler.backends.bm1684.ordered import depthwise_sums, float_convolution
from bmcompiler.backends.bm1684.packed.conv_int import IntConvKernel, IntDeconvKernel
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.backends.lanes.kernels.conv_geometry import ConvGeometry, DeconvGeometry, channel_groups
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.backends.lanes.kernels.fused_activation import activate, activation_cycles, emit_activation
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.tiling import Box, Buffer, TileWork
from bmcompiler.ir import Value
from bmcompiler.numeric.fp32 import FloatArray, add, flush
from bmcompiler.ops.nn import Conv, Convolution, Deconv
from bmcompiler.target import rule

PAIR = 2
"""Input channels of an fp32 kernel lie in pairs (bm1684.md 4.4)."""


class FloatConvKernel(ConvGeometry):
    """conv in fp32: one instruction per tile."""

    ops: tuple[type[Convolution], ...] = (Conv,)

    @rule("Input, weights, bias and result must be f32")
    def known_types(self, op: Convolution) -> bool:
        return all(v.dtype == "f32" for v in (*op.operands, op.result))

    # -- a tile --------------------------------------------------------------------------------------------------------
    def work(self, op: Convolution, box: Box) -> TileWork:
        depthwise, dims = self.is_depthwise(op), extents(box)
        c0, c1 = box[1]
        slide = self.slide(op, box, self.channels(op, c0, c1))
        weight = self._depthwise_weight(op, c0, c1) if depthwise else self._dense_weight(op, c0, c1)
        inputs = [self.input_buffer(op, [slide], "nchw" if op.group > 1 else "nhw"), weight]
        if op.bias is not None:
            inputs.append(bias_buffer(op.bias, c0, c1))

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            reads = [(place, place + buffer.lane_bytes) for place, buffer in zip(ins, inputs)]
            target, bias = (dims, map_at(outs[0], dims)), ins[2] if op.bias is not None else None
            if depthwise:
                emit_depthwise(build, target, ins[0], ins[1], bias, slide.geometry, None, reads)
            else:
                kernel = ins[1], self.depth(op)
                emit_convolution(build, target, ins[0], kernel, bias, slide.geometry, None, reads)
            emit_activation(build, op.activation, Words(outs[0], dims))

        return TileWork(
            tuple(inputs),
            (MACHINE.activation_out(op.result, dims4(op.result), box),),
            (),
            compute,
            self.sum_cycles(op, dims, slide, 4) + activation_cycles(self.machine.cycles, op.activation, dims),
            self.apart(op, dims, 4),
        )

    # -- weights -------------------------------------------------------------------------------------------------------
    def _dense_weight(self, op: Convolution, c0: int, c1: int) -> Buffer:
        taps, depth = prod(self.taps(op)), align_up(self.depth(op), PAIR)
        layout = f"{op.opname} pairs {op.group} {taps}"

        def pack(build: Build) -> Callable[[np.ndarray], np.ndarray]:
            return lambda w: channel_groups(self.oriented(op, w), PAIR)

        return channel_buffer(op.weight, layout, pack, (taps, depth), 4, (c0, c1))

    def _depthwise_weight(self, op: Convolution, c0: int, c1: int) -> Buffer:
        kh, kw = op.weight.shape[2:]

        def pack(build: Build) -> Callable[[np.ndarray], np.ndarray]:
            return lambda w: self.oriented(op, w)

        return channel_buffer(op.weight, f"{op.opname} depthwise", pack, (kh, kw), 4, (c0, c1))

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def evaluate(self, op: Convolution, *arrays: Any) -> Any:
        """The op in the chip's arithmetic and order of sums."""
        x, weight, *bias = arrays
        x, window = self.oriented_input(op, x), self.window(op)
        kernels = self.oriented(op, weight)
        if self.is_depthwise(op):
            factors = flush(kernels.reshape(kernels.shape[0], -1))
            sums = depthwise_sums(window, flush(window.prepare(x)), factors)
        else:
            groups = zip(np.split(x, op.group, 1), np.split(kernels, op.group))
            parts = [float_convolution(window, part, columns_of(kernel)) for part, kernel in groups]
            sums = np.concatenate(parts, 1) if op.group > 1 else parts[0]
        if bias:
            sums = add(sums, bias[0][:, None, None])
        return activate(self.machine.arithmetic, op.activation, sums)


class FloatDeconvKernel(DeconvGeometry, FloatConvKernel):
    """deconv in fp32."""

    ops = (Deconv,)


class ConvKernel(FormsKernel[Conv]):
    """conv of floats and of bytes."""

    ops = (Conv,)
    kinds = (FloatConvKernel, IntConvKernel)


class DeconvKernel(FormsKernel[Deconv]):
    """deconv of floats and of bytes."""

    ops = (Deconv,)
    kinds = (FloatDeconvKernel, IntDeconvKernel)


def columns_of(weight: FloatArray) -> FloatArray:
    """(O, I, KH, KW) -> (KH, KW, I rounded up to even, O): what `float_convolution` takes."""
    o, i, kh, kw = weight.shape
    out = np.zeros((kh, kw, align_up(i, PAIR), o), np.float32)
    out[:, :, :i] = weight.transpose(2, 3, 1, 0)
    return out


def bias_buffer(bias: Value, c0: int, c1: int) -> Buffer:
    """The channels [c0, c1) of a bias as a compact vector."""
    item = bias.type.numpy.itemsize
    return channel_buffer(bias, "plain", lambda build: np.asarray, (1, 1), item, (c0, c1))
