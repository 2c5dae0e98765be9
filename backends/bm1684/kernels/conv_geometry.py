"""Geometry of convolutions, transposed ones included: channels, groups, windows (bm1684.md 6.1, 6.2)."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684.chip import CHIP, align_up
from bmcompiler.backends.bm1684.kernels.base import MAX_CHANNELS, MAX_SIZE, is_constant, item_bytes
from bmcompiler.backends.bm1684.kernels.sliding import SlidingKernel, Windows
from bmcompiler.codegen.tiling import Axis
from bmcompiler.codegen.window import MAX_STEP, WindowAxis
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import rule


class ConvGeometry(SlidingKernel):
    """Channels of a group are tiled by 64 lanes, rows and columns with halo.

    Every tile sums over all input channels, so results do not depend on the tiling.
    """

    @rule("Weights and bias must be constants")
    def constant_weights(self, op: TensorOp) -> bool:
        return is_constant(op.weight) and is_constant(op.bias)

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


class DeconvGeometry(ConvGeometry):
    """A convolution with flipped kernels over the input with stride - 1 zeros inserted (bm1684.md 6.1)."""

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


def channel_groups(weight: np.ndarray, size: int) -> np.ndarray:
    """(O, I, KH, KW) -> (O, KH * KW, I rounded up to a multiple of `size`) (bm1684.md 4.4)."""
    o, i, kh, kw = weight.shape
    out = np.zeros((o, kh * kw, align_up(i, size)), weight.dtype)
    out[:, :, :i] = weight.reshape(o, i, -1).transpose(0, 2, 1)
    return out
