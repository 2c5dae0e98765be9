"""Convolution, Winograd convolution, depthwise convolution and pooling (TIU tasks 0 and 1; bm1880.md 8.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmcompiler.backends.bm1880.isa import StrideCode, WindowOp
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arith import conv2d, matmul, pool_max, pool_sum
from bmcompiler.numeric.arrays import IntArray
from bmcompiler.runtime.simulator.bm1880.memory import MAX_ELEMENTS, Shape, Tensor
from bmcompiler.runtime.simulator.bm1880.operands import Operands, Reader, check_work
from bmcompiler.runtime.simulator.plan import Step

# F(2x2, 3x3): V = B^T d B, Y = A^T M A (bm1880.md 8.2).
_WINOGRAD_B = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], np.int16)
_WINOGRAD_A = np.array([[1, 1, 1, 0], [0, 1, -1, -1]], np.int64)


@dataclass(frozen=True)
class Geometry:
    """How windows meet the input: inserted values, padding (top, bottom, left, right), strides and dilations (h, w)."""

    insert: tuple[int, int]
    insert_last: tuple[int, int]
    pads: tuple[int, int, int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    fill: int

    @property
    def plain(self) -> bool:
        """Whether the border and gaps are zeros that only surround the input."""
        return not (any(self.insert) or any(self.insert_last) or self.fill)

    def padded(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Height and width after insertion and padding."""
        height = (shape[2] - 1) * (self.insert[0] + 1) + 1 + self.insert_last[0] + self.pads[0] + self.pads[1]
        width = (shape[3] - 1) * (self.insert[1] + 1) + 1 + self.insert_last[1] + self.pads[2] + self.pads[3]
        return height, width

    def expand(self, x: IntArray) -> IntArray:
        """The input with inserted values and padding, all of the fill byte."""
        height, width = self.padded(x.shape)
        out = np.full((*x.shape[:2], height, width), np.uint8(self.fill).astype(x.dtype), x.dtype)
        step_h, step_w = self.insert[0] + 1, self.insert[1] + 1
        top, left = self.pads[0], self.pads[2]
        end_h, end_w = top + (x.shape[2] - 1) * step_h + 1, left + (x.shape[3] - 1) * step_w + 1
        out[:, :, top:end_h:step_h, left:end_w:step_w] = x
        return out


def _geometry(ops: Operands) -> Geometry:
    f = ops.fields
    strides = (f["conv_op_y_str"], f["conv_op_x_str"])
    if min(strides) < 1:
        raise SimulatorError("window stride is 0")
    return Geometry(
        insert=(f["conv_opd0_y_ins0"], f["conv_opd0_x_ins0"]),
        insert_last=(f["conv_opd0_y_ins0_last"], f["conv_opd0_x_ins0_last"]),
        pads=(f["conv_opd0_up_pad"], f["conv_opd0_dn_pad"], f["conv_opd0_lf_pad"], f["conv_opd0_rt_pad"]),
        strides=strides,
        dilations=(f["conv_opd1_y_ins0"] + 1, f["conv_opd1_x_ins0"] + 1),
        fill=f["opd0_ins_val"],
    )


def _check_windows(x: Tensor, out: Shape, kernel: tuple[int, int], geometry: Geometry) -> None:
    """Refuse results that do not belong to the input; a result may leave out the last rows or columns."""
    if out[0] != x.shape[0]:
        raise SimulatorError(f"batch of the result is {out[0]}, of the input {x.shape[0]}")
    if min(kernel) < 1:
        raise SimulatorError(f"kernel {kernel} is empty")
    padded = geometry.padded(x.shape)
    if x.shape[0] * x.shape[1] * padded[0] * padded[1] > MAX_ELEMENTS:
        raise SimulatorError(f"input {x.shape} grows to {padded} by insertion, more than any real command")
    for axis in (0, 1):
        span = padded[axis] - ((kernel[axis] - 1) * geometry.dilations[axis] + 1)
        count = span // geometry.strides[axis] + 1 if span >= 0 else 0
        if out[2 + axis] > count:
            raise SimulatorError(f"result shape {out} does not fit: input {padded} with padding has {count} windows")


def convolution_step(ops: Operands) -> Step:
    """Step of a task-0 command: convolution, or Winograd convolution by its flag."""
    if ops.fields["opt_winograd"]:
        return _winograd(ops)
    x, out = ops.tensor("opd0"), ops.result()
    weight_in, weight_out, kh, kw = ops.shape("opd1")
    geometry = _geometry(ops)
    _check_windows(x, out.shape, (kh, kw), geometry)
    if (weight_in, weight_out) != (x.shape[1], out.shape[1]):
        raise SimulatorError(f"weight channels {(weight_in, weight_out)} do not fit {(x.shape[1], out.shape[1])}")
    check_work(out.shape[0] * out.shape[1] * out.shape[2] * out.shape[3] * weight_in * kh * kw)
    read_weight = _weight_reader(ops)

    def sums(image: IntArray, pads: tuple[int, int, int, int]) -> IntArray:
        return conv2d(image, read_weight(), strides=geometry.strides, pads=pads, dilations=geometry.dilations)

    return _window_step(ops, x, geometry, sums)


def _weight_reader(ops: Operands) -> Reader:
    """Reads the weight as (OC, IC, KH, KW)."""
    channels, count, kh, kw = ops.shape("opd1")
    if ops.fields["short_opd1_str"] != StrideCode.SPECIAL:
        plain = ops.tensor("opd1").read
        return lambda: plain().transpose(1, 0, 2, 3)
    # Weight order: lane of the output channel, then (kernel element, input channel) packed (bm1880.md 2.4).
    shape = (1, count, kh * kw, channels)
    size = kh * kw * channels
    packed = ops.tensor("opd1", shape, (size * count, size, channels, 1)).read
    return lambda: packed().reshape(count, kh, kw, channels).transpose(0, 3, 1, 2)


def _window_step(
    ops: Operands, x: Tensor, geometry: Geometry, sums: Callable[[IntArray, tuple[int, int, int, int]], IntArray]
) -> Step:
    """Input -> window sums -> bias, ReLU, shift, saturation -> result."""
    out, requantize = ops.result(), ops.requantizer()
    bias = ops.bias((1, out.shape[1], 1, 1))
    height, width = out.shape[2:]

    def run() -> None:
        image = x.read()
        total = sums(image, geometry.pads) if geometry.plain else sums(geometry.expand(image), (0, 0, 0, 0))
        total = total[:, :, :height, :width]
        if bias is not None:
            total = np.add(total, bias(), out=total)
        out.write(requantize(total))

    return run


def window_step(ops: Operands) -> Step:
    """Step of a task-1 command: max pooling, average pooling or depthwise convolution."""
    x, out = ops.tensor("opd0"), ops.result()
    operation = ops.fields["tsk_eu_typ"]
    kernel = (ops.fields["opd1_h"], ops.fields["opd1_w"])
    geometry = _geometry(ops)
    if out.shape[1] != x.shape[1]:
        raise SimulatorError(f"result has {out.shape[1]} channels, the input {x.shape[1]}")
    check_work(out.shape[0] * out.shape[1] * out.shape[2] * out.shape[3] * kernel[0] * kernel[1])
    if operation == WindowOp.DEPTHWISE:
        _check_windows(x, out.shape, kernel, geometry)
        return _depthwise(ops, x, geometry)
    flat = Geometry(geometry.insert, geometry.insert_last, geometry.pads, geometry.strides, (1, 1), geometry.fill)
    _check_windows(x, out.shape, kernel, flat)
    if operation == WindowOp.MAX_POOLING:
        return _max_pooling(ops, x, flat)
    if operation == WindowOp.AVG_POOLING:
        return _average_pooling(ops, x, flat)
    raise SimulatorError(f"window operation {operation} does not exist")


def _depthwise(ops: Operands, x: Tensor, geometry: Geometry) -> Step:
    channels = x.shape[1]
    kh, kw = ops.fields["opd1_h"], ops.fields["opd1_w"]
    weight = ops.tensor("opd1", (1, channels, kh, kw))

    def sums(image: IntArray, pads: tuple[int, int, int, int]) -> IntArray:
        kernel = weight.read().reshape(channels, 1, kh, kw)
        options: dict[str, Any] = {"strides": geometry.strides, "dilations": geometry.dilations, "groups": channels}
        return conv2d(image, kernel, pads=pads, **options)

    return _window_step(ops, x, geometry, sums)


def _max_pooling(ops: Operands, x: Tensor, geometry: Geometry) -> Step:
    out, requantize = ops.result(), ops.requantizer()
    kernel = (ops.fields["opd1_h"], ops.fields["opd1_w"])
    fill = int(np.uint8(geometry.fill).astype(x.dtype))
    inserted = any(geometry.insert) or any(geometry.insert_last)
    height, width = out.shape[2:]
    direct = not ops.is_wide("res0") and ops.dtype("res0") == x.dtype and not ops.fields["opt_right_shift"]

    def run() -> None:
        image, pads = (geometry.expand(x.read()), (0, 0, 0, 0)) if inserted else (x.read(), geometry.pads)
        largest = pool_max(image, kernel, geometry.strides, pads, fill)[:, :, :height, :width]
        out.write(largest if direct else requantize(largest.astype(np.int32)))

    return run


def _average_pooling(ops: Operands, x: Tensor, geometry: Geometry) -> Step:
    factor = ops.constant("opd1")
    if factor is None:
        raise SimulatorError("average pooling needs an immediate factor")
    kernel = (ops.fields["opd1_h"], ops.fields["opd1_w"])
    multiplier = np.int64(factor)  # sums of large windows times it are beyond 32 bits

    def sums(image: IntArray, pads: tuple[int, int, int, int]) -> IntArray:
        return np.asarray(pool_sum(image, kernel, geometry.strides, pads) * multiplier)

    return _window_step(ops, x, geometry, sums)


def _winograd(ops: Operands) -> Step:
    x, out = ops.tensor("opd0"), ops.result()
    geometry = _geometry(ops)
    n, count, height, width = out.shape
    if height % 2 or width % 2:
        raise SimulatorError(f"Winograd convolution needs an even result size, got {height} x {width}")
    if not geometry.plain or geometry.strides != (1, 1) or geometry.dilations != (1, 1):
        raise SimulatorError("Winograd convolution takes no insertion, stride or dilation")
    channels = x.shape[1]
    weight = ops.tensor("opd1", (channels, count, 1, 16))
    _check_windows(x, out.shape, (3, 3), geometry)
    check_work(n * count * height * width * channels * 4)
    bias, requantize = ops.bias((1, count, 1, 1)), ops.requantizer()
    tiles_h, tiles_w = height // 2, width // 2

    def run() -> None:
        image = geometry.expand(x.read()).astype(np.int16)
        windows = np.lib.stride_tricks.sliding_window_view(image, (4, 4), (2, 3))
        tiles = windows[:, :, : 2 * tiles_h : 2, : 2 * tiles_w : 2]  # (N, IC, tiles_h, tiles_w, 4, 4)
        spread = _WINOGRAD_B @ tiles @ _WINOGRAD_B.T
        columns = spread.transpose(4, 5, 1, 0, 2, 3).reshape(16, channels, -1)
        rows = weight.read().reshape(channels, count, 16).transpose(2, 1, 0)
        products = matmul(rows, columns).reshape(4, 4, count, n, tiles_h, tiles_w)
        blocks = np.einsum("ia,abonyx,jb->noyixj", _WINOGRAD_A, products, _WINOGRAD_A, optimize=True)
        total = blocks.reshape(n, count, height, width)
        out.write(requantize(total if bias is None else total + bias()))

    return run
