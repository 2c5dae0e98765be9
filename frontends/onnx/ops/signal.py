"""DFT and STFT with constant lengths, and Col2Im."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError
from bmcompiler.frontends.onnx.constants import MAX_GROWN, check_size
from bmcompiler.frontends.onnx.geometry import per_axis
from bmcompiler.frontends.onnx.node import Node, axis_of
from bmcompiler.frontends.onnx.ops.convolution import tap_weight, transposed
from bmcompiler.frontends.onnx.ops.layout import slice_axes, to_shape
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder

_MOST_ROWS = 64
"""Slices that frames are joined of."""


@onnx_op("DFT", since=17)
def dft_17(node: Node, b: Builder) -> Value:
    return _dft(node, b, node.int("axis", 1))


@onnx_op("DFT", since=20)
def dft(node: Node, b: Builder) -> Value:
    axis = node.scalar(2)
    return _dft(node, b, -2 if axis is None else axis)


def _dft(node: Node, b: Builder, axis: int) -> Value:
    return b.dft(
        node.input(0),
        axis=axis_of(axis, node.rank(0, least=2)),
        length=node.scalar(1) or 0,
        inverse=node.flag("inverse"),
        onesided=node.flag("onesided"),
    )


@onnx_op("STFT", since=17)
def stft(node: Node, b: Builder) -> Value:
    """Frames of the signal (batch, length, 1 or 2), times the window, transformed one by one."""
    x, step = node.input(0), node.scalar(1)
    if x.type.rank == 2:
        x = b.reshape(x, shape=(*x.shape, 1))
    window = node.optional(2)
    length = node.scalar(3)
    if length is None:
        length = window.shape[0] if window is not None else x.shape[1]
    if not step or step < 1 or not 1 <= length <= x.shape[1]:
        raise ShapeError(f"frames of {length} every {step} do not fit a signal of {x.shape[1]}")
    check_size(((x.shape[1] - length) // step + 1, length), MAX_GROWN)
    frames = _frames(b, x, length, step)
    if window is not None:
        frames = b.mul(frames, b.reshape(window, shape=(length, 1)))
    return b.dft(frames, axis=2, onesided=node.flag("onesided", True) and x.shape[-1] == 1)


def _frames(b: Builder, x: Value, length: int, step: int) -> Value:
    """(batch, frames, length, parts) of (batch, samples, parts): a frame begins every `step` samples.

    Rows of `step` samples side by side, where a frame has few of them; else an index per sample.
    """
    batch, samples, parts = x.shape
    count, rows = (samples - length) // step + 1, -(-length // step)
    if rows > _MOST_ROWS:
        starts = np.arange(count) * step
        return b.gather(x, b.weight(starts[:, None] + np.arange(length), "frames"), axis=1)
    whole = (count + rows - 1) * step
    if samples > whole:
        x = slice_axes(b, x, {1: (0, whole, 1)})
    elif samples < whole:
        x = b.pad(x, pads=[0, 0, 0, whole - samples, 0, 0])
    lines = to_shape(b, x, (batch, count + rows - 1, step, parts))
    pieces = [slice_axes(b, lines, {1: (row, row + count, 1)}) for row in range(rows)]
    frames = pieces[0] if rows == 1 else b.concat(*pieces, axis=2)
    return frames if rows * step == length else slice_axes(b, frames, {2: (0, length, 1)})


@onnx_op("Col2Im", since=18)
def col2im(node: Node, b: Builder) -> Value:
    """Overlapping blocks added up: a transposed convolution whose kernel puts tap k where it belongs."""
    x, image, block = node.input(0), node.constant_ints(1) or (), node.constant_ints(2) or ()
    count = len(image)
    if x.type.rank != 3 or count not in (1, 2, 3) or len(block) != count or min(block) < 1:
        raise FileFormatError(f"image {list(image)} and block {list(block)} do not fit input {list(x.shape)}")
    strides = per_axis(node, "strides", count, (1,) * count)
    dilations = per_axis(node, "dilations", count, (1,) * count)
    pads = per_axis(node, "pads", 2 * count, (0,) * (2 * count), least=0)
    sides = list(zip(pads[:count], pads[count:]))
    spans = [dilation * (taps - 1) + 1 for taps, dilation in zip(block, dilations)]
    windows = [(d + sum(p) - span) // s + 1 for d, p, span, s in zip(image, sides, spans, strides)]
    taps = prod(block)
    if min(windows) < 1 or x.shape[1] % taps or x.shape[2] != prod(windows):
        raise ShapeError(f"input {list(x.shape)} does not hold blocks {list(block)} of an image {list(image)}")
    n, channels = x.shape[0], x.shape[1] // taps
    more = [d + sum(p) - ((w - 1) * s + span) for d, p, w, s, span in zip(image, sides, windows, strides, spans)]
    kernel = tap_weight(b, x, block)
    blocks = to_shape(b, x, (n * channels, taps, *windows))
    out = transposed(b, blocks, kernel, None, list(zip(strides, dilations, sides, more)), 1)
    return to_shape(b, out, (n, channels, *image))
