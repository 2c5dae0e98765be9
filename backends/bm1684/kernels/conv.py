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
    LocalKernel,
    activation_in,
    activation_out,
    dims4,
    is_activation,
    is_constant,
    plane,
    sizes,
    strides,
)
from bmcompiler.backends.bm1684.kernels.fused_activation import activate, emit_activation
from bmcompiler.backends.bm1684.windows import Window, depthwise_sums, float_convolution
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.codegen.window import MAX_STEP, Need, WindowAxis
from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.nn import Conv, Deconv
from bmcompiler.target import rule

PAIR = 2
"""Input channels of an fp32 kernel lie in pairs (bm1684.md 4.4)."""


class ConvKernel(LocalKernel):
    """conv: one instruction per tile; channels of a group are tiled by 64 lanes, rows and columns with halo.

    Every tile sums over all input channels, so results do not depend on the tiling.
    """

    ops: ClassVar[tuple[type[TensorOp], ...]] = (Conv,)

    @rule("Weights and bias must be constants, the input must not be one")
    def constant_weights(self, op: TensorOp) -> bool:
        return is_activation(op.input) and is_constant(op.weight) and is_constant(op.bias)

    @rule("Input, weights, bias and result must be f32")
    def float_types(self, op: TensorOp) -> bool:
        return all(v.dtype == "f32" for v in (*op.operands, op.result))

    @rule("Strides must be between 1 and 15 on both axes", got="strides")
    def stride_range(self, op: TensorOp) -> bool:
        return all(1 <= axis.stride <= MAX_STEP for axis in self.windows(op))

    @rule("Dilations must be between 1 and 16 on both axes", got="dilations")
    def dilation_range(self, op: TensorOp) -> bool:
        return all(1 <= d <= MAX_STEP + 1 for d in op.dilations)

    @rule("A group must have at most 4095 input channels")
    def channel_range(self, op: TensorOp) -> bool:
        return bool(op.input.shape[1] // op.group <= 4095)

    @rule("Every window must reach into the input, with at most 15 zeros of padding on each side", got="pads")
    def padding_range(self, op: TensorOp) -> bool:
        return all(axis.fits(out) for axis, out in zip(self.windows(op), op.type.shape[2:]))

    # -- geometry ------------------------------------------------------------------------------------------------------
    def windows(self, op: TensorOp) -> tuple[WindowAxis, WindowAxis]:
        """The window along h and along w, in the engine's terms."""
        (_, _, h, w), (kh, kw) = op.input.shape, op.weight.shape[2:]
        (sh, sw), (dh, dw), (top, _, left, _) = op.strides, op.dilations, op.pads
        return WindowAxis(h, kh, sh, top, dh, limit=MAX_SIZE), WindowAxis(w, kw, sw, left, dw, limit=MAX_SIZE)

    def oriented(self, op: TensorOp, weight: np.ndarray) -> np.ndarray:
        """The weights of `op` as (O, I/group, KH, KW) of an ordinary convolution."""
        return weight

    @staticmethod
    def is_depthwise(op: TensorOp) -> bool:
        return bool(op.group == op.input.shape[1] == op.type.shape[1] > 1)

    def grid(self, op: TensorOp) -> tuple[Axis, ...]:
        n, c, h, w = op.type.shape
        rows, columns = self.windows(op)
        period = 0 if self.is_depthwise(op) else c // op.group
        return (
            Axis(n, 1, MAX_SIZE),
            Axis(c, CHIP.lanes, MAX_CHANNELS, period=period),
            Axis(h, 1, rows.most()),
            Axis(w, 1, columns.most()),
        )

    # -- a tile --------------------------------------------------------------------------------------------------------
    def work(self, op: TensorOp, box: Box) -> TileWork:
        rows, columns = (axis.need(*interval) for axis, interval in zip(self.windows(op), box[2:]))
        depthwise = self.is_depthwise(op)
        c0, c1 = box[1]
        per_group = op.input.shape[1] // op.group
        group = c0 // (op.type.shape[1] // op.group)
        channels = (c0, c1) if depthwise else (group * per_group, (group + 1) * per_group)
        source: Box = (box[0], channels, (rows.lo, rows.hi), (columns.lo, columns.hi))
        weight = self._depthwise_weight(op, c0, c1) if depthwise else self._dense_weight(op, c0, c1)
        inputs = [activation_in(op.input, dims4(op.input), source, "nchw" if op.group > 1 else "nhw"), weight]
        if op.bias is not None:
            inputs.append(bias_buffer(op.bias, c0, c1))

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            reads = [plane(ins[0], extents(source)), (ins[1], ins[1] + weight.lane_bytes)]
            fields = {
                **sizes("res0", extents(box)),
                "res0_addr": local_address(outs[0]),
                "opd0_addr": local_address(ins[0]),
                "opd1_addr": local_address(ins[1]),
                "opd0_h": rows.hi - rows.lo,
                "opd0_w": columns.hi - columns.lo,
                "opd1_h": op.weight.shape[2],
                "opd1_w": op.weight.shape[3],
                **self._steps(op, rows, columns),
            }
            if op.bias is not None:
                fields |= {"tsk_opd_num": 3, "opd2_addr": local_address(ins[2])}
                reads.append((ins[2], ins[2] + inputs[2].lane_bytes))
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

    def _steps(self, op: TensorOp, rows: Need, columns: Need) -> dict[str, int]:
        high, wide = self.windows(op)
        return {
            "opd0_up_pad": rows.before,
            "opd0_dn_pad": rows.after,
            "opd0_lf_pad": columns.before,
            "opd0_rt_pad": columns.after,
            "res_op_y_str": high.stride,
            "res_op_x_str": wide.stride,
            "opd0_y_ins0": high.insert if rows.hi - rows.lo > 1 else 0,
            "opd0_x_ins0": wide.insert if columns.hi - columns.lo > 1 else 0,
            "opd1_y_ins0": op.dilations[0] - 1,
            "opd1_x_ins0": op.dilations[1] - 1,
        }

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
        window = self._window(op)
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

    def _window(self, op: TensorOp) -> Window:
        axes = self.windows(op)
        _, _, oh, ow = op.type.shape
        needs = axes[0].need(0, oh), axes[1].need(0, ow)
        return Window(
            op.weight.shape[2:],
            (axes[0].stride, axes[1].stride),
            op.dilations,
            (axes[0].insert + 1, axes[1].insert + 1),
            (axes[0].pad, axes[1].pad),
            (needs[0].after, needs[1].after),
            (oh, ow),
        )


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

    def windows(self, op: TensorOp) -> tuple[WindowAxis, WindowAxis]:
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
