"""DeformConv: each tap of a window is sampled at a computed place of its own; a convolution of 1x1 adds them up."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.errors import ShapeError
from bmcompiler.frontends.onnx.geometry import paddings, per_axis
from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.ops.convolution import taps_of
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder


@onnx_op("DeformConv", since=19)
def deform_conv(node: Node, b: Builder) -> Value:
    """Samples of all taps become channels: (N, C * KH * KW, OH, OW). Outside of the image there are zeros."""
    x, weight, offset, mask = node.input(0), node.input(1), node.input(2), node.optional(4)
    if x.type.rank != 4 or weight.type.rank != 4:
        raise ShapeError(f"input {list(x.shape)} and weight {list(weight.shape)} must have two spatial axes")
    (n, c), sizes, taps = x.shape[:2], x.shape[2:], taps_of(node, weight, 2)
    groups, count, places = node.int("offset_group", 1), prod(taps), offset.shape[2:]
    if groups < 1 or c % groups or offset.shape != (n, groups * count * 2, *places):
        raise ShapeError(f"offset {list(offset.shape)} does not fit {groups} groups of a window of {list(taps)}")
    if mask is not None and mask.shape != (n, groups * count, *places):
        raise ShapeError(f"mask {list(mask.shape)} does not fit offset {list(offset.shape)}")
    grid = _grid(node, b, b.reshape(offset, shape=(n, groups, count, 2, *places)), sizes, taps)
    images = b.reshape(x, shape=(n * groups, c // groups, *sizes))
    found = b.grid_sample(images, grid, mode="linear", padding="zeros", align_corners=False)
    if mask is not None:
        found = b.mul(found, b.reshape(mask, shape=(n * groups, 1, count * places[0], places[1])))
    found = b.reshape(found, shape=(n, c * count, *places))
    columns = b.reshape(weight, shape=(weight.shape[0], weight.shape[1] * count, 1, 1))
    return b.conv(found, columns, node.optional(3), group=node.int("group", 1))


def _grid(node: Node, b: Builder, offset: Value, sizes: tuple[int, ...], taps: tuple[int, ...]) -> Value:
    """Places of all taps, (N * groups, taps * OH, OW, 2), as GridSample has them: x before y, -1 to 1 over all pixels.

    Args: offset: (N, groups, taps, 2, OH, OW), pixels by which a tap is moved down and to the right.
    """
    n, groups, count, _, *results = offset.shape
    strides, dilations = (per_axis(node, name, 2, (1, 1)) for name in ("strides", "dilations"))
    pads = paddings(node, sizes, taps, strides, dilations)
    windows = [
        (size + sum(pad) - dilation * (tap - 1) - 1) // stride + 1
        for size, pad, dilation, tap, stride in zip(sizes, pads, dilations, taps, strides)
    ]
    if windows != results:
        raise ShapeError(f"offset {list(offset.shape)} must be for {windows} windows")
    usual = np.zeros((1, 1, count, 2, *results))
    tap, across = np.divmod(np.arange(count), taps[1])
    down, right = (np.arange(results[axis]) * strides[axis] - pads[axis][0] for axis in (0, 1))
    usual[0, 0, :, 0] = (tap * dilations[0])[:, None, None] + down[:, None]
    usual[0, 0, :, 1] = (across * dilations[1])[:, None, None] + right
    factor = (2 / np.asarray(sizes)).reshape(1, 1, 1, 2, 1, 1)
    dtype = offset.type.numpy
    moved = b.mul(offset, b.weight(factor.astype(dtype), "pixels"))
    placed = b.add(moved, b.weight(((usual + 0.5) * factor - 1).astype(dtype), "places"))
    columns, rows = (
        b.slice(placed, starts=(0, 0, 0, axis, 0, 0), ends=(n, groups, count, axis + 1, *results), steps=(1,) * 6)
        for axis in (1, 0)
    )
    pairs = b.permute(b.concat(columns, rows, axis=3), order=(0, 1, 2, 4, 5, 3))
    return b.reshape(pairs, shape=(n * groups, count * results[0], results[1], 2))
