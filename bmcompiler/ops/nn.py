"""Convolution family and matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler import arith
from bmcompiler.ir import TensorType
from bmcompiler.ops.base import Locality, Pair, Quad, TensorOp, attr, operand, tensorop


@tensorop("conv")
class Conv(TensorOp):
    """2-D convolution (cross-correlation), NCHW.

    out[n,o,y,x] = bias[o] + sum_{i,r,s} in[n, g*I + i, y*sh + r*dh - top, x*sw + s*dw - left] * weight[o,i,r,s]
    with I input channels per group and g the group of output channel o; positions outside the input count as 0.

    %y = "tensorop.conv"(%x, %w, %b) {pads = [1, 1, 1, 1], strides = [2, 2]} : (...) -> tensor<1x64x28x28xf32>

    input (N, C, H, W), weight (O, C/group, KH, KW), bias (O); pads = top, bottom, left, right.

    Integer form (bm1880.md 8.2): i8 or u8 input and weight, i16 or i32 bias, exact sum, then
    saturate(round_shift(sum, rshift)) to the element type of the result.
    """

    ins = (operand("input", 4), operand("weight", 4), operand("bias", 1, optional=True))
    attrs = (
        attr("strides", Pair, (1, 1)),
        attr("pads", Quad, (0, 0, 0, 0)),
        attr("dilations", Pair, (1, 1)),
        attr("group", int, 1),
        attr("rshift", int, 0),
    )
    locality = Locality.LOCAL
    free_dtype = True

    def infer(self) -> TensorType:
        n, c, h, w = self.input.shape
        o, i, kh, kw = self.weight.shape
        if self.group < 1 or c != i * self.group or o % self.group:
            raise self.shape_error(f"{c} input channels do not fit weight {[o, i, kh, kw]} with group {self.group}")
        if self.bias is not None and self.bias.shape != (o,):
            raise self.shape_error(f"bias must have shape [{o}], got {list(self.bias.shape)}")
        top, bottom, left, right = self.pads
        oh = window_count(self, h + top + bottom, kh, self.strides[0], self.dilations[0])
        ow = window_count(self, w + left + right, kw, self.strides[1], self.dilations[1])
        return TensorType((n, o, oh, ow), self.input.dtype)

    def evaluate(self, x: Any, weight: Any, bias: Any = None) -> Any:
        geometry = {"strides": self.strides, "pads": self.pads, "dilations": self.dilations, "groups": self.group}
        if self.input.type.is_float:
            out = conv2d_float(x, weight, **geometry)
            return out if bias is None else out + bias[:, None, None]
        total = arith.conv2d(x, weight, **geometry)
        if bias is not None:
            total = total + bias[:, None, None].astype(total.dtype)
        return arith.requantize(total, self.rshift, self.type.dtype)


def window_count(op: TensorOp, size: int, kernel: int, stride: int, dilation: int = 1, *, ceil: bool = False) -> int:
    """Positions of a window of `kernel` taps on a padded axis of `size` elements. Raises ShapeError when there is none."""
    span = size - (dilation * (kernel - 1) + 1)
    if min(kernel, stride, dilation) < 1 or span < 0:
        raise op.shape_error(
            f"a window of {kernel} (dilation {dilation}, stride {stride}) does not fit {size} padded elements"
        )
    return -(-span // stride) + 1 if ceil else span // stride + 1


def conv2d_float(
    x: Any, weight: Any, strides: Any = (1, 1), pads: Any = (0, 0, 0, 0), dilations: Any = (1, 1), groups: int = 1
) -> Any:
    """Float convolution without bias in the element type of `x`; shapes as `Conv`."""
    n, c = x.shape[:2]
    o, i, kh, kw = weight.shape
    padded = np.pad(x, ((0, 0), (0, 0), tuple(pads[:2]), tuple(pads[2:])))
    spans = (dilations[0] * (kh - 1) + 1, dilations[1] * (kw - 1) + 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=(2, 3))
    windows = windows[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    oh, ow = windows.shape[2:4]
    if i == 1 and groups == c:
        per_channel = weight.reshape(c, o // groups, kh, kw)
        return np.einsum("nchwrs,cmrs->ncmhw", windows, per_channel).reshape(n, o, oh, ow)
    columns = windows.reshape(n, groups, i, oh, ow, kh, kw).transpose(0, 1, 2, 5, 6, 3, 4)
    columns = columns.reshape(n, groups, i * kh * kw, oh * ow)
    kernels = weight.reshape(groups, o // groups, i * kh * kw)
    return np.matmul(kernels, columns).reshape(n, o, oh, ow)
