"""Convolution and transposed convolution in fp32: dense, grouped and depthwise (bm1684.md 6.1, 6.2)."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

import numpy as np

from bmcompiler.backends.bm1684.build import Build, compact_bytes, extents
from bmcompiler.backends.bm1684.chip import CHIP, align_up, local_address
from bmcompiler.backends.bm1684.fp32 import FloatArray, add, flush
from bmcompiler.backends.bm1684.isa import Eu, StrideCode, Task
from bmcompiler.backends.bm1684.kernels.base import (
    MAX_CHANNELS,
    MAX_SIZE,
    PIXELS,
    activation_out,
    dims4,
    is_constant,
    item_bytes,
    plane,
    sizes,
    strides,
)
from bmcompiler.backends.bm1684.kernels.fused_activation import activate, emit_activation
from bmcompiler.backends.bm1684.kernels.sliding import SlidingKernel, Windows
from bmcompiler.backends.bm1684.windows import depthwise_sums, float_convolution
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.codegen.window import MAX_STEP, WindowAxis
from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.nn import Conv, Deconv
from bmcompiler.target import rule

PAIR = 2
"""Input channels of an fp32 kernel lie in pairs (bm1684.md 4.4)."""


class ConvKernel(SlidingKernel):
    """conv: one instruction per tile; channels of a group are tiled by 64 lanes, rows and columns with halo.

    Every tile sums over all input channels, so results do not depend on the tiling.
    """

    ops: ClassVar[tuple[type[TensorOp], ...]] = (Conv,)

    @rule("Weights and bias must be constants")
    def constant_weights(self, op: TensorOp) -> bool:
        return is_constant(op.weight) and is_constant(op.bias)

    @rule("Input, weights, bias and result must be f32")
    def known_types(self, op: TensorOp) -> bool:
        return all(v.dtype == "f32" for v in (*op.operands, op.result))

    @rule("A group must have at most 4095 input channels")
    def channel_range(self, op: TensorOp) -> bool:
        return bool(op.input.shape[1] // op.group <= 4095)

    # -- geometry ------------------------------------------------------------------------------------------------------
    def windows(self, op: TensorOp) -> Windows:
        (_, _, h, w), (kh, kw) = op.input.shape, op.weight.shape[2:]
        (sh, sw), (dh, dw), (top, _, left, _) = op.strides, op.dilations, op.pads
        return WindowAxis(h, kh, sh, top, dh, limit=MAX_SIZE), WindowAxis(w, kw, sw, left, dw, limit=MAX_SIZE)

    def taps(self, op: TensorOp) -> tuple[int, int]:
        _, _, down, across = op.weight.shape
        return down, across

    def dilations(self, op: TensorOp) -> tuple[int, int]:
        down, across = op.dilations
        return down, across

    def oriented(self, op: TensorOp, weight: np.ndarray) -> np.ndarray:
        """The weights of `op` as (O, I/group, KH, KW) of an ordinary convolution."""
        return weight

    @staticmethod
    def is_depthwise(op: TensorOp) -> bool:
        return bool(op.group == op.input.shape[1] == op.type.shape[1] > 1)

    def grid(self, op: TensorOp) -> tuple[Axis, ...]:
        n, c = op.type.shape[:2]
        period = 0 if self.is_depthwise(op) else c // op.group
        images = 4 // item_bytes(op.input)
        return (Axis(n, images, MAX_SIZE), Axis(c, CHIP.lanes, MAX_CHANNELS, period=period), *self.spatial_axes(op))

    def channels(self, op: TensorOp, c0: int, c1: int) -> tuple[int, int]:
        """Input channels of the output channels [c0, c1) of one group."""
        if self.is_depthwise(op):
            return c0, c1
        per_group = op.input.shape[1] // op.group
        group = c0 // (op.type.shape[1] // op.group)
        return group * per_group, (group + 1) * per_group

    # -- a tile --------------------------------------------------------------------------------------------------------
    def work(self, op: TensorOp, box: Box) -> TileWork:
        depthwise = self.is_depthwise(op)
        c0, c1 = box[1]
        per_group = op.input.shape[1] // op.group
        slide = self.slide(op, box, self.channels(op, c0, c1))
        weight = self._depthwise_weight(op, c0, c1) if depthwise else self._dense_weight(op, c0, c1)
        inputs = [self.input_buffer(op, slide, "nchw" if op.group > 1 else "nhw"), weight]
        if op.bias is not None:
            inputs.append(bias_buffer(op.bias, c0, c1))

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            reads = [(place, place + buffer.lane_bytes) for place, buffer in zip(ins, inputs)]
            fields = {
                **sizes("res0", extents(box)),
                "res0_addr": local_address(outs[0]),
                "opd0_addr": local_address(ins[0]),
                "opd1_addr": local_address(ins[1]),
                **slide.fields,
            }
            if op.bias is not None:
                fields |= {"tsk_opd_num": 3, "opd2_addr": local_address(ins[2])}
            fields |= _depthwise_fields() if depthwise else _dense_fields(op, per_group)
            build.tiu(reads, [plane(outs[0], extents(box))], opt_relu=1, **fields)
            emit_activation(build, op.activation, extents(box), outs[0])

        return TileWork(
            tuple(inputs),
            (activation_out(op.result, dims4(op.result), box),),
            (),
            compute,
            self._cycles(op, extents(box), per_group),
        )

    def _cycles(self, op: TensorOp, shape: tuple[int, int, int, int], per_group: int) -> int:
        """The vendor's estimate (bm1684.md 12)."""
        n, c, h, w = shape
        taps = op.weight.shape[2] * op.weight.shape[3]
        depth = 1 if self.is_depthwise(op) else -(-per_group // PAIR)
        return n * -(-c // CHIP.lanes) * -(-h * w // PIXELS) * (taps * depth + 5)

    # -- weights -------------------------------------------------------------------------------------------------------
    def _dense_weight(self, op: TensorOp, c0: int, c1: int) -> Buffer:
        taps = op.weight.shape[2] * op.weight.shape[3]
        depth = align_up(op.input.shape[1] // op.group, PAIR)
        dims = (1, c1 - c0, taps, depth)

        def load(build: Build, address: int) -> None:
            offset = build.coefficients.place(
                op.weight, f"{op.opname} pairs {op.group}", lambda w: channel_pairs(self.oriented(op, w))
            )
            build.load_compact(build.coefficient(offset + 4 * c0 * taps * depth), dims, 4, address)

        return Buffer(compact_bytes(dims), "c", 4 * prod(dims), load, True)

    def _depthwise_weight(self, op: TensorOp, c0: int, c1: int) -> Buffer:
        kh, kw = op.weight.shape[2:]
        dims = (1, c1 - c0, kh, kw)

        def load(build: Build, address: int) -> None:
            offset = build.coefficients.place(op.weight, f"{op.opname} depthwise", lambda w: self.oriented(op, w))
            build.load_compact(build.coefficient(offset + 4 * c0 * kh * kw), dims, 4, address)

        return Buffer(compact_bytes(dims), "c", 4 * prod(dims), load, True)

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def evaluate(self, op: TensorOp, *arrays: Any) -> Any:
        """The op in the chip's arithmetic and order of sums."""
        x, weight, *bias = arrays
        window = self.window(op)
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
        return activate(op.activation, sums)


class DeconvKernel(ConvKernel):
    """deconv: a convolution with flipped kernels over the input with stride - 1 zeros inserted (bm1684.md 6.1)."""

    ops = (Deconv,)

    @rule("Strides must be between 1 and 16 on both axes", got="strides")
    def stride_range(self, op: TensorOp) -> bool:
        return all(1 <= s <= MAX_STEP + 1 for s in op.strides)

    @rule("Each pad must be below the (dilated) kernel size", got="pads")
    def crop_range(self, op: TensorOp) -> bool:
        top, _, left, _ = op.pads
        (kh, kw), (dh, dw) = op.weight.shape[2:], op.dilations
        return bool(top <= dh * (kh - 1) and left <= dw * (kw - 1))

    def windows(self, op: TensorOp) -> Windows:
        (_, _, h, w), (kh, kw) = op.input.shape, op.weight.shape[2:]
        (sh, sw), (dh, dw), (top, _, left, _) = op.strides, op.dilations, op.pads
        return (
            WindowAxis(h, kh, 1, dh * (kh - 1) - top, dh, sh - 1, MAX_SIZE),
            WindowAxis(w, kw, 1, dw * (kw - 1) - left, dw, sw - 1, MAX_SIZE),
        )

    def oriented(self, op: TensorOp, weight: np.ndarray) -> np.ndarray:
        i, o, kh, kw = weight.shape
        grouped = weight.reshape(op.group, i // op.group, o, kh, kw).swapaxes(1, 2)
        return grouped.reshape(op.group * o, i // op.group, kh, kw)[:, :, ::-1, ::-1]


def _dense_fields(op: TensorOp, channels: int) -> dict[str, int]:
    kh, kw = op.weight.shape[2:]
    pairs = -(-channels // PAIR)
    return {
        "tsk_typ": Task.CONV,
        "opd0_c": channels,
        "short_opd1_str": StrideCode.EXPLICIT,
        **strides("opd1", (1, kh * kw * pairs, kw * pairs, pairs)),
    }


def _depthwise_fields() -> dict[str, int]:
    return {"tsk_typ": Task.POOL_OR_DEPTHWISE, "tsk_eu_typ": Eu.MAC}


def channel_pairs(weight: np.ndarray) -> np.ndarray:
    """(O, I, KH, KW) -> (O, KH * KW, I rounded up to even) (bm1684.md 4.4)."""
    o, i, kh, kw = weight.shape
    out = np.zeros((o, kh * kw, align_up(i, PAIR)), weight.dtype)
    out[:, :, :i] = weight.reshape(o, i, -1).transpose(0, 2, 1)
    return out


def columns_of(weight: FloatArray) -> FloatArray:
    """(O, I, KH, KW) -> (KH, KW, I rounded up to even, O): what `float_convolution` takes."""
    o, i, kh, kw = weight.shape
    out = np.zeros((kh, kw, align_up(i, PAIR), o), np.float32)
    out[:, :, :i] = weight.transpose(2, 3, 1, 0)
    return out


def bias_buffer(bias: Value, c0: int, c1: int) -> Buffer:
    """The channels [c0, c1) of a bias as a compact vector."""
    item = bias.type.numpy.itemsize

    def load(build: Build, address: int) -> None:
        build.load_compact(build.source(bias) + item * c0, (1, c1 - c0, 1, 1), item, address)

    return Buffer(compact_bytes((1, c1 - c0, 1, 1), item), "c", item * (c1 - c0), load, True)
