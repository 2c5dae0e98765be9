"""Convolution family and matrix product."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from bmcompiler.ir import TensorType
from bmcompiler.numeric import arith
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.blas import in_parallel
from bmcompiler.numeric.quant_modes import ASYMMETRIC
from bmcompiler.ops.base import Pair, Quad, TensorOp, attr, operand, optional_operand, tensorop
from bmcompiler.ops.modes import Products, Sums, check_quantized, requantize_products
from bmcompiler.ops.shared import activated, broadcast_shape, need_activation, widened

_COLUMN_VALUES = 1 << 20
"""Gathered input values per matrix product: 4 MB, large enough for BLAS and small enough for the caches."""
_PIECES = 4
"""Pieces that a convolution is cut into for several cores; the same on every machine, and so are the results."""
_PIECE_VALUES = 1 << 14
"""Results that make a piece worth a thread."""


class Convolution(Products):
    """Operands and attributes of convolutions, transposed or not."""

    input = operand(4)
    weight = operand(4)
    bias = optional_operand(1)
    factors = optional_operand(2)
    strides = attr(Pair, (1, 1))
    pads = attr(Quad, (0, 0, 0, 0))
    dilations = attr(Pair, (1, 1))
    group = attr(int, 1)


@tensorop("conv")
class Conv(Convolution):
    """2-D convolution (cross-correlation), NCHW.

    out[n,o,y,x] = bias[o] + sum_{i,r,s} in[n, g*I + i, y*sh + r*dh - top, x*sw + s*dw - left] * weight[o,i,r,s]
    with I input channels per group and g the group of output channel o; positions outside the input count as 0.

    %y = "tensorop.conv"(%x, %w, %b) {pads = [1, 1, 1, 1], strides = [2, 2]} : (...) -> tensor<1x64x28x28xf32>

    input (N, C, H, W), weight (O, C/group, KH, KW), bias (O), factors (O, 2); pads = top, bottom, left, right.
    `activation` acts on the result before it leaves: "relu" is max(0), on integers after saturation; "relu6", on floats
    only, is min(max(0), 6); "" is nothing.

    Integer form: i8 or u8 input and weight, exact sum with the bias, then by `mode` to the element type of the result.
    Without a mode saturate(round_shift(sum, rshift)), bias i16, u16 or i32 (bm1880.md 8.2). Modes "low", "high" and
    "asymmetric" with `scale`: see `bmcompiler.numeric.quant_modes` (bmlang.md 3.3). "asymmetric" has zero_points of
    input, weight and output: (input - zp) * (weight - zp), and positions outside the input hold its zero point. So may
    "channel", where each output channel has a multiplier, a shift or both of its own (`bmcompiler.ops.modes.Products`).

    %y = "tensorop.conv"(%x, %w, %b) {mode = "high", scale = 0.0017} : (tensor<1x3x8x8xi8>, tensor<4x3x1x1xi8>,
         tensor<4xi32>) -> tensor<1x4x8x8xui8>
    """

    free_dtype = True
    weight_operands = ("weight", "bias", "factors")
    affine = True

    def infer(self) -> TensorType:
        n, c, h, w = self.input.shape
        o, i, kh, kw = self.weight.shape
        if self.group < 1 or c != i * self.group or o % self.group:
            raise self.shape_error(f"{c} input channels do not fit weight {[o, i, kh, kw]} with group {self.group}")
        if self.bias is not None and self.bias.shape != (o,):
            raise self.shape_error(f"bias must have shape [{o}], got {list(self.bias.shape)}")
        top, bottom, left, right = self.pads
        if min(self.pads) < 0:
            raise self.shape_error(f"pads must not be negative, got {list(self.pads)}")
        oh = window_count(self, h + top + bottom, kh, self.strides[0], self.dilations[0])
        ow = window_count(self, w + left + right, kw, self.strides[1], self.dilations[1])
        return TensorType((n, o, oh, ow), self.input.dtype)

    def evaluate(
        self, x: Array, weight: Array, bias: np.ndarray | None = None, factors: np.ndarray | None = None
    ) -> Array:
        geometry: dict[str, Any] = {"strides": self.strides, "pads": self.pads}
        geometry |= {"dilations": self.dilations, "groups": self.group}
        if self.input.type.is_float:
            out = conv2d_float(x, weight, **geometry)
            return activated(self, out if bias is None else np.add(out, bias[:, None, None], out=out))

        def sums(x: Array, weight: Array, border: int) -> Array:
            if not border:
                return arith.conv2d(x, weight, **geometry, floats=True)
            inside = {**geometry, "pads": (0, 0, 0, 0)}
            return arith.conv2d(_padded(x, self.pads, border), weight, **inside, floats=True)

        shaped = None if bias is None else bias[:, None, None]
        over_depth: Any = lambda w: w.sum((1, 2, 3))[:, None, None]  # noqa: E731
        out = requantize_products(self, sums, x, weight, shaped, over_depth, factors)
        return activated(self, out)

    def check(self) -> None:
        check_quantized(self)
        need_activation(self)

    def products(self) -> int:
        return self.type.size * prod(self.weight.shape[1:])


@tensorop("deconv")
class Deconv(Convolution):
    """2-D transposed convolution, NCHW.

    out[n,o,y*sh + r*dh - top, x*sw + s*dw - left] += in[n, g*I + i, y, x] * weight[g*I + i, o - g*O/group, r, s] for
    every input position and tap that lands inside; plus bias[o]. I input channels and O/group outputs per group g.
    OH = (H - 1) * sh + dh * (KH - 1) + 1 + output_pads[0] - top - bottom, OW likewise.

    %y = "tensorop.deconv"(%x, %w) {strides = [2, 2]} : (tensor<1x8x4x4xf32>, tensor<8x4x2x2xf32>)
         -> tensor<1x4x8x8xf32>

    input (N, C, H, W), weight (C, O/group, KH, KW), bias (O); pads = top, bottom, left, right; `activation` as in conv.

    Integer form as in conv (bm1880.md 8.2, inserted zeros), `mode` "", "low", "high" or "channel". Zero points count
    only the products of input positions: what is inserted between them and around them adds nothing.
    """

    output_pads = attr(Pair, (0, 0))
    free_dtype = True
    weight_operands = ("weight", "bias", "factors")
    affine = True

    def infer(self) -> TensorType:
        n, c, _, _ = self.input.shape
        i, o = self.weight.shape[:2]
        if self.group < 1 or c != i or c % self.group:
            raise self.shape_error(
                f"{c} input channels do not fit weight {list(self.weight.shape)}, group {self.group}"
            )
        if self.bias is not None and self.bias.shape != (o * self.group,):
            raise self.shape_error(f"bias must have shape [{o * self.group}], got {list(self.bias.shape)}")
        sizes = []
        for axis in (0, 1):
            size, kernel, stride = self.input.shape[2 + axis], self.weight.shape[2 + axis], self.strides[axis]
            dilation, extra = self.dilations[axis], self.output_pads[axis]
            before, after = self.pads[2 * axis : 2 * axis + 2]
            out = (size - 1) * stride + dilation * (kernel - 1) + 1 + extra - before - after
            if min(size, kernel, stride, dilation, out) < 1 or min(before, after, extra) < 0:
                raise self.shape_error(
                    f"{size} elements with a window of {kernel} (stride {stride}, dilation {dilation}, "
                    f"pads {before}+{after}, output pad {extra}) give no output"
                )
            sizes.append(out)
        return TensorType((n, o * self.group, *sizes), self.input.dtype)

    def evaluate(
        self, x: Array, weight: Array, bias: np.ndarray | None = None, factors: np.ndarray | None = None
    ) -> Array:
        if not self.input.type.is_float:
            shaped = None if bias is None else bias[:, None, None]
            return activated(self, requantize_products(self, self.sums, x, weight, shaped, self.over_depth, factors))
        x_wide, weight_wide, bias_wide = widened(x, weight, bias)
        out = self.scatter(x_wide, weight_wide, np.matmul, x_wide.dtype)
        if bias is not None:
            out += bias_wide[:, None, None]
        return activated(self, out.astype(x.dtype, copy=False))

    def sums(self, x: Array, weight: Array, border: int) -> Array:
        """Exact sums of products before the requantization, i64, as if `border` stood between and around the inputs."""
        if not border:
            return self.scatter(x, weight, arith.matmul, np.int64)
        inside = self.scatter(x.astype(np.int16) - border, weight, arith.matmul, np.int64)
        return inside + border * self.over_depth(weight.astype(np.int64))

    def over_depth(self, weight: np.ndarray) -> np.ndarray:
        """Sums of the weights behind each output channel (O, 1, 1)."""
        c, o, kh, kw = weight.shape
        grouped = weight.reshape(self.group, c // self.group, o, kh, kw)
        return grouped.sum((1, 3, 4)).reshape(-1, 1, 1)

    def scatter(self, x: Array, weight: Array, product: Callable[[Array, Array], Array], dtype: DTypeLike) -> Array:
        """One matrix product per tap, added into a canvas with room for everything, which is then cut."""
        n, c, h, w = x.shape
        _, o, kh, kw = weight.shape
        (sh, sw), (dh, dw), group = self.strides, self.dilations, self.group
        top, bottom, left, right = self.pads
        _, _, oh, ow = self.infer().shape
        canvas = np.zeros((n, group, o, oh + top + bottom, ow + left + right), dtype)
        columns = x.reshape(n, group, c // group, h * w)
        matrices = weight.reshape(group, c // group, o, kh, kw).transpose(3, 4, 0, 2, 1)
        for r in range(kh):
            for s in range(kw):
                rows = slice(r * dh, r * dh + (h - 1) * sh + 1, sh)
                across = slice(s * dw, s * dw + (w - 1) * sw + 1, sw)
                part = product(np.ascontiguousarray(matrices[r, s]), columns)
                canvas[:, :, :, rows, across] += part.reshape(n, group, o, h, w)
        return canvas[:, :, :, top : top + oh, left : left + ow].reshape(n, group * o, oh, ow)

    def check(self) -> None:
        check_quantized(self)
        need_activation(self)
        if self.mode == ASYMMETRIC:
            raise self.invalid("mode asymmetric belongs to conv and matmul; a transposed one is low, high or channel")

    def products(self) -> int:
        return self.input.type.size * prod(self.weight.shape[1:])


@tensorop("matmul")
class Matmul(Products):
    """Matrix product over the last two axes, numpy broadcasting of the leading ones; ranks 2 and up.

    out[..., i, j] = sum_k left[..., i, k] * right[..., k, j] + bias[j]; transpose_left / transpose_right swap the last
    two axes of an operand first. An inner product layer has transpose_right and weight (N, K). `activation` as in conv.

    %y = "tensorop.matmul"(%x, %w) {transpose_right = true} : (tensor<1x8xf32>, tensor<4x8xf32>) -> tensor<1x4xf32>

    Integer form as in conv (bm1880.md 8.2 matrix_mac), with the same modes; the asymmetric one takes its shift from
    ceil(log2(1/scale)) where conv takes the floor (bmlang.md 3.2).
    """

    left = operand()
    right = operand()
    bias = optional_operand(1)
    factors = optional_operand(2)
    transpose_left = attr(bool, False)
    transpose_right = attr(bool, False)
    free_dtype = True
    weight_operands = ("right", "bias", "factors")
    affine = True

    def infer(self) -> TensorType:
        left, right = self.left.shape, self.right.shape
        if min(len(left), len(right)) < 2:
            raise self.shape_error(f"operands need 2 axes or more, got {list(left)} and {list(right)}")
        m, k = left[:-3:-1] if self.transpose_left else left[-2:]
        depth, n = right[:-3:-1] if self.transpose_right else right[-2:]
        if k != depth:
            raise self.shape_error(f"inner dimensions {k} and {depth} differ ({list(left)} and {list(right)})")
        if self.bias is not None and self.bias.shape != (n,):
            raise self.shape_error(f"bias must have shape [{n}], got {list(self.bias.shape)}")
        return TensorType((*broadcast_shape(self, left[:-2], right[:-2]), m, n), self.left.dtype)

    def evaluate(
        self, left: Array, right: Array, bias: np.ndarray | None = None, factors: np.ndarray | None = None
    ) -> Array:
        a = left.swapaxes(-1, -2) if self.transpose_left else left
        b = right.swapaxes(-1, -2) if self.transpose_right else right
        if not self.left.type.is_float:
            over_depth: Any = lambda w: w.sum(-2, keepdims=True)  # noqa: E731
            sums: Sums = lambda a, b, _: arith.matmul(a, b, floats=True)  # noqa: E731
            out = requantize_products(self, sums, a, b, bias, over_depth, factors)
            return activated(self, out)
        a_wide, b_wide, bias_wide = widened(a, b, bias)
        out = np.matmul(a_wide, b_wide)
        if bias is not None:
            out += bias_wide
        return activated(self, out.astype(left.dtype, copy=False))

    def check(self) -> None:
        check_quantized(self)
        need_activation(self)

    def products(self) -> int:
        return self.type.size * self.left.shape[-2 if self.transpose_left else -1]


def window_count(op: TensorOp, size: int, kernel: int, stride: int, dilation: int = 1, *, ceil: bool = False) -> int:
    """Positions of a window of `kernel` taps on a padded axis of `size` elements. Raises ShapeError without any."""
    span = size - (dilation * (kernel - 1) + 1)
    if min(kernel, stride, dilation) < 1 or span < 0:
        raise op.shape_error(
            f"a window of {kernel} (dilation {dilation}, stride {stride}) does not fit {size} padded elements"
        )
    return -(-span // stride) + 1 if ceil else span // stride + 1


def conv2d_float(
    x: Array,
    weight: Array,
    *,
    strides: tuple[int, ...] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilations: tuple[int, ...] = (1, 1),
    groups: int = 1,
) -> Array:
    """Float convolution without bias in the element type of `x` (float16 summed in float32); shapes as `Conv`."""
    dtype = x.dtype
    x, weight = widened(x, weight)
    n = x.shape[0]
    o, i, kh, kw = weight.shape
    x = _padded(x, pads)
    oh = (x.shape[2] - dilations[0] * (kh - 1) - 1) // strides[0] + 1
    ow = (x.shape[3] - dilations[1] * (kw - 1) - 1) // strides[1] + 1
    taps = [
        (r * dilations[0], slice(s * dilations[1], s * dilations[1] + (ow - 1) * strides[1] + 1, strides[1]))
        for r in range(kh)
        for s in range(kw)
    ]
    grouped = x.reshape(n, groups, i, *x.shape[2:])
    if i == 1 and groups > 1:
        out = _depthwise(grouped, weight.reshape(groups, o // groups, kh * kw), taps, strides[0], (oh, ow))
    elif kh == kw == 1:
        columns = grouped[..., :: strides[0], :: strides[1]].reshape(n, groups, i, oh * ow)
        out = _pointwise(weight.reshape(groups, o // groups, i), columns)
    else:
        out = _by_columns(grouped, weight, taps, strides[0], (oh, ow))
    return out.reshape(n, o, oh, ow).astype(dtype, copy=False)


def _padded(x: np.ndarray, pads: tuple[int, int, int, int], value: int = 0) -> np.ndarray:
    if not any(pads):
        return x
    top, bottom, left, right = pads
    n, c, h, w = x.shape
    padded = np.full((n, c, h + top + bottom, w + left + right), value, x.dtype)
    padded[:, :, top : top + h, left : left + w] = x
    return padded


def _pointwise(matrix: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """A 1x1 convolution is a matrix product; output channels are split over the cores."""
    n, groups, _, size = columns.shape
    o = matrix.shape[1]
    out = np.empty((n, groups, o, size), np.result_type(matrix, columns))

    def some(low: int, high: int) -> None:
        np.matmul(matrix[:, low:high], columns, out=out[:, :, low:high])

    in_parallel([partial(some, low, high) for low, high in _pieces(o, out.size)])
    return out


def _pieces(length: int, values: int) -> list[tuple[int, int]]:
    """(start, stop) of at most `_PIECES` nearly equal parts of an axis of a result with `values` elements."""
    count = max(1, min(_PIECES, length, values // _PIECE_VALUES))
    edges = [length * k // count for k in range(count + 1)]
    return list(pairwise(edges))


def _depthwise(
    x: np.ndarray, weight: np.ndarray, taps: list[tuple[int, slice]], stride: int, out_size: tuple[int, int]
) -> np.ndarray:
    """One input channel per group: multiply and add per tap, as a product of depth KH*KW would idle."""
    n, groups = x.shape[:2]
    oh, ow = out_size
    out = np.zeros((n, groups, weight.shape[1], oh, ow), x.dtype)
    term = np.empty((groups, weight.shape[1], oh, ow), x.dtype)
    for image, total in zip(x, out):
        for k, (top, columns) in enumerate(taps):
            part = image[:, :, top : top + (oh - 1) * stride + 1 : stride, columns]
            total += np.multiply(part, weight[:, :, k, None, None], out=term)
    return out


def _by_columns(
    x: np.ndarray, weight: np.ndarray, taps: list[tuple[int, slice]], stride: int, out_size: tuple[int, int]
) -> np.ndarray:
    """Matrix products over gathered windows, some output rows of one image at a time.

    So the gathered block stays small. Depth in the order (tap, channel) makes each gathered piece one contiguous copy.
    Blocks are used again: memory that is new to the process takes longer than what is gathered into it.
    """
    n, groups, i = x.shape[:3]
    oh, ow = out_size
    o = weight.shape[0] // groups
    matrix = weight.transpose(0, 2, 3, 1).reshape(groups, o, len(taps) * i)
    out = np.empty((n, groups, o, oh, ow), x.dtype)
    free: list[np.ndarray] = []

    def some(image: np.ndarray, result: np.ndarray, first: int, rows: int) -> None:
        try:
            area = free.pop()
        except IndexError:  # one for each thread that is at work
            area = np.empty(groups * len(taps) * i * step * ow, x.dtype)
        block = area[: groups * len(taps) * i * rows * ow].reshape(groups, len(taps), i, rows, ow)
        for k, (top, columns) in enumerate(taps):
            low = top + first * stride
            block[:, k] = image[:, :, low : low + (rows - 1) * stride + 1 : stride, columns]
        gathered = block.reshape(groups, len(taps) * i, rows * ow)
        if rows == oh:
            np.matmul(matrix, gathered, out=result.reshape(groups, o, rows * ow))
        else:
            result[:, :, first : first + rows] = np.matmul(matrix, gathered).reshape(groups, o, rows, ow)
        free.append(area)

    most = max(1, _COLUMN_VALUES // max(1, groups * i * len(taps) * ow))
    step = min(most, max(high - low for low, high in _pieces(oh, out[0].size)))
    starts = range(0, oh, step)
    in_parallel([partial(some, image, result, k, min(step, oh - k)) for image, result in zip(x, out) for k in starts])
    return out
