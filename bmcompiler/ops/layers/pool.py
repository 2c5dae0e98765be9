"""Pooling over windows of (N, C, H, W)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.numeric import arith, quant_modes
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import Pair, Quad, TensorOp, attr, operand, tensorop
from bmcompiler.ops.layers.nn import window_count
from bmcompiler.ops.shared import BYTES, holding, largest, need_dtype, need_same_dtype, need_shift, widened


class Pool(TensorOp):
    """Operand, window attributes and shape rule of both poolings."""

    input = operand(4)
    kernel = attr(Pair)
    strides = attr(Pair, (1, 1))
    pads = attr(Quad, (0, 0, 0, 0))
    ceil_mode = attr(bool, False)

    def taps(self) -> tuple[int, int]:
        """Dilations (vertical, horizontal)."""
        return (1, 1)

    def infer_shape(self) -> tuple[int, ...]:
        """Shape of the result: a count per axis of windows, without a last one that would see no element."""
        shape = list(self.input.shape)
        for i, dilation in enumerate(self.taps()):
            before, after = self.pads[2 * i : 2 * i + 2]
            kernel, stride, size = self.kernel[i], self.strides[i], shape[2 + i]
            if not 0 <= before < dilation * (kernel - 1) + 1 or not 0 <= after < dilation * (kernel - 1) + 1:
                raise self.shape_error(f"pads {list(self.pads)} must be smaller than the window of {kernel} taps")
            count = window_count(self, size + before + after, kernel, stride, dilation, ceil=self.ceil_mode)
            # a last window that would begin in the trailing padding sees no element: dropped
            shape[2 + i] = count - 1 if self.ceil_mode and (count - 1) * stride >= size + before else count
        return tuple(shape)

    def padded(self, x: np.ndarray, value: float) -> np.ndarray:
        """`x` with its borders set to `value`, exactly as long as the windows reach (longer in ceil mode)."""
        _, _, h, w = x.shape
        top, _, left, _ = self.pads
        reach = self.reach()
        if (top, left) == (0, 0) and reach[0] <= h and reach[1] <= w:
            return x
        out = np.full((*x.shape[:2], max(reach[0], top + h), max(reach[1], left + w)), value, x.dtype)
        out[:, :, top : top + h, left : left + w] = x
        return out

    def reach(self) -> tuple[int, int]:
        """Padded rows and columns that the windows cover."""
        down, across = (
            (count - 1) * stride + dilation * (kernel - 1) + 1
            for count, stride, dilation, kernel in zip(self.infer_shape()[2:], self.strides, self.taps(), self.kernel)
        )
        return down, across

    def windows(self, x: Array, combine: np.ufunc) -> Array:
        """`combine` over the windows of a padded array: columns first, then rows, one slice per tap."""
        for axis, i in ((3, 1), (2, 0)):
            count, stride, dilation = self.infer_shape()[axis], self.strides[i], self.taps()[i]
            span = (count - 1) * stride + 1
            index = [slice(None)] * 4
            total: Any = None
            for k in range(self.kernel[i]):
                index[axis] = slice(k * dilation, k * dilation + span, stride)
                part = x[tuple(index)]
                total = part.copy() if total is None else combine(total, part, out=total)
            x = total
        return x

    def is_identity(self) -> bool:
        return self.kernel == self.strides == (1, 1) and not any(self.pads)


class MaxWindows(Pool):
    """Base of ops on the largest value of each window."""

    dilations = attr(Pair, (1, 1))

    def taps(self) -> tuple[int, int]:
        return self.dilations


@tensorop("max_pool")
class MaxPool(MaxWindows):
    """Largest value of each window; padding never wins. Every element type; type and quantization stay.

    out[n,c,y,x] = max over r < KH, s < KW inside the input of in[n, c, y*sh + r*dh - top, x*sw + s*dw - left]

    %y = "tensorop.max_pool"(%x) {kernel = [2, 2], strides = [2, 2]} : (tensor<1x8x4x4xf32>) -> tensor<1x8x2x2xf32>

    kernel, strides, dilations: (height, width); pads: top, bottom, left, right, each smaller than the window.
    ceil_mode rounds the number of windows up, except for a window that would begin in the trailing padding.
    Integer form: bm1880.md 8.2 max_pooling.
    """

    homogeneous = True
    selects = True

    def infer(self) -> TensorType:
        return self.operands[0].type.with_shape(self.infer_shape())

    def evaluate(self, x: Array) -> Array:
        kind = x.dtype.kind
        lowest = -np.inf if kind == "f" else False if kind == "b" else np.iinfo(x.dtype).min
        return self.windows(self.padded(x, lowest), np.maximum)


@tensorop("avg_pool")
class AvgPool(Pool):
    """Mean of each window.

    out[n,c,y,x] = (sum of the window) / count, where count is the number of its positions inside the input, with
    count_include_pad inside the padded input (what ceil_mode adds beyond that never counts).

    %y = "tensorop.avg_pool"(%x) {kernel = [4, 4]} : (tensor<1x8x4x4xf32>) -> tensor<1x8x1x1xf32>

    kernel, strides: (height, width); pads: top, bottom, left, right, each smaller than the window; ceil_mode as in
    max_pool. Global pooling has kernel = (H, W).

    Integer forms, i8 or u8, zero padding counted, so count_include_pad must be true or all pads 0:
    saturate(round_shift(window sum * multiplier, rshift)) (bm1880.md 8.2 avg_pooling), or with a `scale` above 0
    saturate(round half away from zero(fl(float32(window sum) * float32(scale)))) (bm1684.md 6.2).
    """

    homogeneous = True
    count_include_pad = attr(bool, False)
    multiplier = attr(int, 1)
    rshift = attr(int, 0)
    scale = attr(float, 0.0)
    free_dtype = True
    saturates = True

    def infer(self) -> TensorType:
        return TensorType(self.infer_shape(), self.input.dtype)

    def evaluate(self, x: Array) -> Array:
        if x.dtype.kind != "f":
            total = arith.pool_sum(self.padded(x, 0), self.kernel, self.strides)
            magnitude = largest(x) * self.kernel[0] * self.kernel[1] * abs(self.multiplier)
            _, _, rows, columns = self.infer_shape()
            total = total.astype(holding(magnitude), copy=False)[:, :, :rows, :columns]
            if self.scale:
                return quant_modes.from_real(total.astype(np.float32) * np.float32(self.scale), self.type.dtype)
            return arith.requantize(total * self.multiplier, self.rshift, self.type.dtype)
        (wide,) = widened(x)
        counts = np.multiply.outer(self.counts(0), self.counts(1)).astype(wide.dtype)
        return (self.windows(self.padded(wide, 0), np.add) / counts).astype(x.dtype, copy=False)

    def counts(self, i: int) -> np.ndarray:
        """Positions that count for each window along axis 2 + i."""
        before, after = self.pads[2 * i : 2 * i + 2]
        end = before + self.input.shape[2 + i]
        low, high = (0, end + after) if self.count_include_pad else (before, end)
        starts = np.arange(self.infer_shape()[2 + i]) * self.strides[i]
        return np.minimum(starts + self.kernel[i], high) - np.maximum(starts, low)

    def check(self) -> None:
        if self.input.type.is_float:
            need_same_dtype(self, [self.input, self.result])
            if (self.multiplier, self.rshift, self.scale) != (1, 0, 0.0):
                raise self.invalid("multiplier, rshift and scale belong to the integer form, the operand is float")
            return
        need_dtype(self, "the operand", self.input, BYTES)
        need_dtype(self, "the result", self.result, BYTES)
        need_shift(self, self.rshift)
        if self.scale and ((self.multiplier, self.rshift) != (1, 0) or not 0 < self.scale < float("inf")):
            raise self.invalid(f"scale must be positive and stand without multiplier and rshift, got {self.scale}")
        if any(self.pads) and not self.count_include_pad:
            raise self.invalid("the integer form counts its zero padding: count_include_pad must be true, or pads 0")

    def keeps_sign(self) -> bool:
        return True

    def is_identity(self) -> bool:
        return super().is_identity() and (self.multiplier, self.rshift) == (1, 0)
