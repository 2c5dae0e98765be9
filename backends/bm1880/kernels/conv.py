"""Convolution and transposed convolution: dense, grouped and depthwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.bm1880.bmkernel import (
    FMT_I8,
    bmk1880_conv_param_t,
    bmk1880_depthwise_param_t,
    bmk1880_tpu_conv,
    bmk1880_tpu_depthwise,
    shape_t4,
    stride_t4,
    tensor_lmem,
)
from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM
from bmcompiler.backends.bm1880.build import FORMATS, Build, Dims, aligned, aligned_lane_bytes, extents
from bmcompiler.backends.bm1880.chip import CHIP, align_up
from bmcompiler.backends.bm1880.kernels.base import LocalKernel, dims4, is_activation, is_constant
from bmcompiler.backends.bm1880.machine import cycles_of
from bmcompiler.chip import MAX_STEP
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.codegen.window import Need, WindowAxis, slide, window_axes
from bmcompiler.ir import Value
from bmcompiler.ops.layers.nn import Conv, Convolution, Deconv
from bmcompiler.target import rule

_MOST_SHARES = 4
_SHARE = 131072
"""How many shares the weights of a whole convolution are loaded in, and the least bytes of one."""


class ConvKernel(LocalKernel[Convolution]):
    """conv: one instruction per tile; channels of a group are tiled by 32 lanes, rows and columns with halo."""

    ops: tuple[type[Convolution], ...] = (Conv,)
    only_in_commands = ("rshift",)

    @rule("Weights and bias must be constants, the input must not be one")
    def constant_weights(self, op: Convolution) -> bool:
        return is_activation(op.input) and is_constant(op.weight) and is_constant(op.bias)

    @rule("Input and weights must be int8 (the input may be uint8), bias int16, result int8")
    def integer_types(self, op: Convolution) -> bool:
        return (
            (op.input.dtype in ("i8", "u8") and op.weight.dtype == "i8")
            and op.type.dtype == "i8"
            and (op.bias is None or op.bias.dtype == "i16")
        )

    @rule("Strides must be between 1 and 15 on both axes", got="strides")
    def stride_range(self, op: Convolution) -> bool:
        return all(1 <= s <= MAX_STEP for s in op.strides)

    @rule("Dilations must be between 1 and 16 on both axes", got="dilations")
    def dilation_range(self, op: Convolution) -> bool:
        return all(1 <= d <= MAX_STEP + 1 for d in op.dilations)

    @rule("A group must have at most 4095 input channels, and windows at most 1024 taps per axis")
    def channel_range(self, op: Convolution) -> bool:
        window = max((k - 1) * d + 1 for k, d in zip(op.weight.shape[2:], op.dilations))
        return bool(op.input.shape[1] // op.group <= MAX_TPU_DIM and window <= 1024)

    @rule("Every window must reach into the input, with at most 15 zeros of padding on each side", got="pads")
    def padding_range(self, op: Convolution) -> bool:
        return all(axis.fits(out) for axis, out in zip(self.windows(op), op.type.shape[2:]))

    @rule("An activation inside the op is not possible, it must be an op of its own", got="activation")
    def no_activation(self, op: Convolution) -> bool:
        return not op.activation

    @rule("Only a plain right shift, no quantization mode", got="mode")
    def plain_shift(self, op: Convolution) -> bool:
        return not op.mode

    # -- geometry ------------------------------------------------------------------------------------------------------
    def windows(self, op: Convolution) -> tuple[WindowAxis, WindowAxis]:
        """The window along h and along w, in the engine's terms."""
        return window_axes(op)

    def pack(self, op: Convolution) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
        """Layout name and packer to (O, KH*KW, I/group) (bm1880.md 2.4)."""
        return "conv", lambda w: w.reshape(*w.shape[:2], -1).transpose(0, 2, 1)

    def pack_depthwise(self, op: Convolution) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
        """Layout name and packer to (C, KH, KW); a dilated kernel is stored with zeros, the call has no dilation."""
        dh, dw = op.dilations
        return f"depthwise {dh} {dw}", lambda w: dilated(w.reshape(-1, *w.shape[2:]), dh, dw)

    @staticmethod
    def is_depthwise(op: Convolution) -> bool:
        """Whether each output channel reads one input channel of its own."""
        return bool(op.group == op.input.shape[1] == op.type.shape[1] > 1)

    def grid(self, op: Convolution) -> tuple[Axis, ...]:
        n, c, h, w = op.type.shape
        rows, columns = self.windows(op)
        period = 0 if self.is_depthwise(op) else c // op.group
        return (
            Axis(n, 1, CHIP.most_images),
            Axis(c, CHIP.lanes, CHIP.most_channels, period=period),
            Axis(h, 1, rows.most()),
            Axis(w, 1, columns.most()),
        )

    def work(self, op: Convolution, box: Box) -> TileWork:
        return self._work(op, box, [box[1]])

    def whole_work(self, op: Convolution, box: Box) -> TileWork:
        return self._work(op, box, self._shares(op, box))

    def _shares(self, op: Convolution, box: Box) -> list[tuple[int, int]]:
        """Channels that are computed while the weights of the next ones arrive, where there are many weights."""
        (n, _, h, w), (c0, c1) = op.type.shape, box[1]
        row = op.weight.type.size // op.type.shape[1]
        whole = (box[0], *box[2:]) == ((0, 1), (0, h), (0, w)) and n == 1
        if not whole or self.is_depthwise(op):
            return [box[1]]
        count = max(1, min(_MOST_SHARES, (c1 - c0) * row // _SHARE))
        step = align_up(-(-(c1 - c0) // count), CHIP.lanes)
        return [(lo, min(lo + step, c1)) for lo in range(c0, c1, step)]

    def _work(self, op: Convolution, box: Box, shares: list[tuple[int, int]]) -> TileWork:
        rows, columns = reads = slide(self.windows(op), box)
        depthwise = self.is_depthwise(op)
        c0, c1 = box[1]
        per_group = op.input.shape[1] // op.group
        group = c0 // (op.type.shape[1] // op.group)
        channels = (c0, c1) if depthwise else (group * per_group, (group + 1) * per_group)
        source = reads.source(box, channels)
        axes = "nchw" if op.group > 1 else "nhw"
        weight = self._depthwise_weight(op, c0, c1) if depthwise else self._dense_weight(op, shares)
        biases = [] if op.bias is None else [bias_buffer(op.bias, shares)]
        inputs = [self.machine.activation_in(op.input, dims4(op.input), source, axes), *biases, weight]
        row = 0 if depthwise else op.weight.type.size // op.type.shape[1]

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            n, _, h, w = extents(box)
            step = aligned(outs[0], extents(box)).strides.c
            emit = self._emit_depthwise if depthwise else self._emit_dense
            for lo, hi in shares:
                group, part = (lo - c0) // CHIP.lanes, (n, hi - lo, h, w)
                bias = tensor_lmem(ins[1] + 2 * group, shape_t4(2, hi - lo, 1, 1), FMT_I8) if biases else None
                common = {
                    "ofmap": aligned(outs[0] + group * step, part),
                    "ifmap": aligned(ins[0], extents(source), FORMATS[op.input.dtype]),
                    "bias": bias,
                    **self._padding(op, rows, columns),
                }
                emit(op, build, ins[-1] + group * row, common)

        cycles = self._cycles(op, extents(box), shares)
        out = self.machine.activation_out(op.result, dims4(op.result), box)
        return TileWork(tuple(inputs), (out,), (), compute, cycles)

    def _cycles(self, op: Convolution, dims: Dims, shares: list[tuple[int, int]]) -> int:
        """Cycles of the command of each share; that of depthwise kernels has zeros where they are dilated."""
        (kh, kw), (dh, dw) = op.weight.shape[2:], op.dilations
        taps = kh * kw * op.input.shape[1] // op.group
        if self.is_depthwise(op):
            taps = ((kh - 1) * dh + 1) * ((kw - 1) * dw + 1)
        n, _, h, w = dims
        product = cycles_of(self.machine).product
        return sum(product((n, hi - lo, h, w), taps) for lo, hi in shares)

    def _padding(self, op: Convolution, rows: Need, columns: Need) -> dict[str, int]:
        high, wide = self.windows(op)
        return {
            "pad_top": rows.before,
            "pad_bottom": rows.after,
            "pad_left": columns.before,
            "pad_right": columns.after,
            "stride_h": high.stride,
            "stride_w": wide.stride,
            "ins_h": high.insert if rows.hi - rows.lo > 1 else 0,
            "ins_w": wide.insert if columns.hi - columns.lo > 1 else 0,
            "rshift_width": op.rshift,
        }

    @staticmethod
    def _emit_depthwise(op: Convolution, build: Build, weight: int, common: dict[str, Any]) -> None:
        (kh, kw), (dh, dw) = op.weight.shape[2:], op.dilations
        kernel = aligned(weight, (1, common["ofmap"].shape.c, (kh - 1) * dh + 1, (kw - 1) * dw + 1))
        build.tpu(bmk1880_tpu_depthwise, bmk1880_depthwise_param_t(weight=kernel, **common))

    @staticmethod
    def _emit_dense(op: Convolution, build: Build, weight: int, common: dict[str, Any]) -> None:
        (kh, kw), (dh, dw) = op.weight.shape[2:], op.dilations
        shape = shape_t4(op.input.shape[1] // op.group, common["ofmap"].shape.c, kh, kw)
        kernel = tensor_lmem(weight, shape, FMT_I8)
        param = bmk1880_conv_param_t(weight=kernel, dilation_h=dh, dilation_w=dw, **common)
        build.tpu(bmk1880_tpu_conv, param)

    def _dense_weight(self, op: Convolution, shares: list[tuple[int, int]]) -> Buffer:
        layout, pack = self.pack(op)
        taps = op.weight.shape[2] * op.weight.shape[3]
        depth = op.input.shape[1] // op.group
        row = taps * depth
        c0, c1 = shares[0][0], shares[-1][1]

        def load(build: Build, address: int) -> None:
            offset = build.coefficients.place(op.weight, layout, pack)
            for lo, hi in shares:
                place = address + (lo - c0) // CHIP.lanes * row
                build.load_weight(offset + lo * row, (1, hi - lo, taps, depth), place, align=False)

        return Buffer(-(-(c1 - c0) // CHIP.lanes) * row, "c", (c1 - c0) * row, load, True)

    def _depthwise_weight(self, op: Convolution, c0: int, c1: int) -> Buffer:
        layout, pack = self.pack_depthwise(op)
        (kh, kw), (dh, dw) = op.weight.shape[2:], op.dilations
        dims = (1, c1 - c0, (kh - 1) * dh + 1, (kw - 1) * dw + 1)

        def load(build: Build, address: int) -> None:
            offset = build.coefficients.place(op.weight, layout, pack)
            build.load_weight(offset + c0 * dims[2] * dims[3], dims, address, align=True)

        return Buffer(aligned_lane_bytes(dims), "c", dims[1] * dims[2] * dims[3], load, True)


class DeconvKernel(ConvKernel):
    """deconv: a convolution with flipped kernels over the input with stride - 1 zeros inserted (bm1880.md 8.2)."""

    ops = (Deconv,)

    @rule("Each pad must be below the (dilated) kernel size", got="pads")
    def crop_range(self, op: Convolution) -> bool:
        top, _, left, _ = op.pads
        (kh, kw), (dh, dw) = op.weight.shape[2:], op.dilations
        return bool(top <= dh * (kh - 1) and left <= dw * (kw - 1))

    def windows(self, op: Convolution) -> tuple[WindowAxis, WindowAxis]:
        (_, _, h, w), (kh, kw) = op.input.shape, op.weight.shape[2:]
        (sh, sw), (dh, dw), (top, _, left, _) = op.strides, op.dilations, op.pads
        return (
            WindowAxis(h, kh, 1, dh * (kh - 1) - top, dh, sh - 1),
            WindowAxis(w, kw, 1, dw * (kw - 1) - left, dw, sw - 1),
        )

    def pack(self, op: Convolution) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
        group = op.group

        def pack(w: np.ndarray) -> np.ndarray:
            i, o, kh, kw = w.shape
            flipped = w[:, :, ::-1, ::-1].reshape(group, i // group, o, kh * kw)
            return flipped.transpose(0, 2, 3, 1)

        return f"deconv {group}", pack

    def pack_depthwise(self, op: Convolution) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
        dh, dw = op.dilations
        return (
            f"depthwise deconv {dh} {dw}",
            lambda w: dilated(w.reshape(-1, *w.shape[2:])[:, ::-1, ::-1], dh, dw),
        )


def bias_buffer(bias: Value, shares: list[tuple[int, int]]) -> Buffer:
    """Channels of an int16 bias as (2, C, 1, 1), low bytes, then high bytes (bm1880.md 2.4), for each share of them."""
    total = bias.shape[0]
    c0, c1 = shares[0][0], shares[-1][1]

    def load(build: Build, address: int) -> None:
        offset = build.coefficients.place(bias, "planes", byte_planes)
        for lo, hi in shares:
            strides = None if hi - lo == total else stride_t4(total, 1, 1, 1)
            place = address + 2 * ((lo - c0) // CHIP.lanes)
            build.load_weight(offset + lo, (2, hi - lo, 1, 1), place, align=False, strides=strides)

    return Buffer(align_up(2 * -(-(c1 - c0) // CHIP.lanes), CHIP.alignment), "c", 2 * (c1 - c0), load, True)


def byte_planes(values: np.ndarray) -> np.ndarray:
    """int16 (C,) -> (2, C) bytes, low plane first."""
    return np.ascontiguousarray(values.astype("<i2")).view(np.uint8).reshape(-1, 2).T


def dilated(kernels: np.ndarray, dh: int, dw: int) -> np.ndarray:
    """(C, KH, KW) kernels with dh - 1 and dw - 1 zeros between taps."""
    c, kh, kw = kernels.shape
    out = np.zeros((c, (kh - 1) * dh + 1, (kw - 1) * dw + 1), kernels.dtype)
    out[:, ::dh, ::dw] = kernels
    return out
