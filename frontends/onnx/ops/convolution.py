"""Conv and ConvTranspose with one, two or three spatial axes; one and three are computed with two."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError, UnsupportedError
from bmcompiler.frontends.onnx.geometry import (
    AUTO_PADS,
    as_image,
    like_input,
    paddings,
    pair,
    per_axis,
    quad,
    spatial_axes,
)
from bmcompiler.frontends.onnx.node import Node, choice
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder

_MOST_TAPS = 4096


def taps_of(node: Node, weight: Value, count: int) -> tuple[int, ...]:
    """Kernel size per spatial axis. Raises FileFormatError when `kernel_shape` contradicts the weight."""
    taps = weight.shape[-count:]
    stated = node.ints("kernel_shape", taps)
    if stated != taps or 0 in taps:
        raise FileFormatError(f"kernel_shape {list(stated)} does not fit weight {list(weight.shape)}")
    return taps


@onnx_op("Conv")
def conv(node: Node, b: Builder) -> Value:
    return convolve(node, b, node.input(0), node.input(1), node.optional(2))


def convolve(node: Node, b: Builder, x: Value, weight: Value, bias: Value | None) -> Value:
    """The convolution that the node's attributes describe, of these values."""
    count = spatial_axes(x.shape)
    if weight.type.rank != count + 2:
        raise ShapeError(f"weight {list(weight.shape)} does not fit input {list(x.shape)}")
    taps = taps_of(node, weight, count)
    strides = per_axis(node, "strides", count, (1,) * count)
    dilations = per_axis(node, "dilations", count, (1,) * count)
    pads = paddings(node, x.shape[2:], taps, strides, dilations)
    group, shape = node.int("group", 1), x.shape
    if count == 3:
        x = _depth_windows(b, x, taps[0], strides[0], pads[0], dilations[0], taps_first=group == 1)
        weight = merged_weight(b, weight, taps_first=group == 1)
        strides, pads, dilations = strides[1:], pads[1:], dilations[1:]
    out = b.conv(
        as_image(b, x),
        as_image(b, weight),
        bias,
        strides=pair(strides, 1),
        pads=quad(pads),
        dilations=pair(dilations, 1),
        group=group,
    )
    return _depth_last(b, out, shape[0]) if count == 3 else like_input(b, out, count + 2)


def _depth_windows(
    b: Builder, x: Value, taps: int, stride: int, pads: tuple[int, int], dilation: int, taps_first: bool
) -> Value:
    """(N, C, D, H, W) as (windows * N, C * taps, H, W): what a window sees along D stands in the channels.

    With D in front every tap is a run of memory, and so are its channels where taps come first, as no groups allow.
    """
    n, c, d, h, w = x.shape
    count = (d + sum(pads) - dilation * (taps - 1) - 1) // stride + 1
    if count < 1:
        raise ShapeError(f"a window of {taps} (dilation {dilation}) does not fit {d + sum(pads)} padded elements")
    x = b.permute(x, order=(2, 0, 1, 3, 4))
    if any(pads):
        x = b.pad(x, pads=(*pads, 0, 0, 0, 0, 0, 0, 0, 0))
    parts = []
    for tap in range(taps):
        first = tap * dilation
        ends = (first + (count - 1) * stride + 1, n, c, h, w)
        part = b.slice(x, starts=(first, 0, 0, 0, 0), ends=ends, steps=(stride, 1, 1, 1, 1))
        parts.append(b.reshape(part, shape=(count * n, c, h, w) if taps_first else (count * n, c, 1, h, w)))
    stacked = b.concat(*parts, axis=1 if taps_first else 2) if taps > 1 else parts[0]
    return b.reshape(stacked, shape=(count * n, c * taps, h, w))


def merged_weight(b: Builder, weight: Value, taps_first: bool = False) -> Value:
    """(A, B, KD, KH, KW) as (A, B * KD, KH, KW), or as (A, KD * B, KH, KW)."""
    first, second, depth, *taps = weight.shape
    weight = b.permute(weight, order=(0, 2, 1, 3, 4)) if taps_first else weight
    return b.reshape(weight, shape=(first, second * depth, *taps))


def _depth_last(b: Builder, x: Value, images: int) -> Value:
    """(D * N, C, H, W) as (N, C, D, H, W)."""
    count, c, h, w = x.shape
    return b.permute(b.reshape(x, shape=(count // images, images, c, h, w)), order=(1, 2, 0, 3, 4))


@onnx_op("ConvTranspose")
def conv_transpose(node: Node, b: Builder) -> Value:
    x, weight = node.input(0), node.input(1)
    count = spatial_axes(x.shape)
    if weight.type.rank != count + 2:
        raise ShapeError(f"weight {list(weight.shape)} does not fit input {list(x.shape)}")
    taps = taps_of(node, weight, count)
    strides = per_axis(node, "strides", count, (1,) * count)
    dilations = per_axis(node, "dilations", count, (1,) * count)
    extra = per_axis(node, "output_padding", count, (0,) * count, least=0)
    full = [
        (size - 1) * stride + dilation * (k - 1) + 1 + more
        for size, k, stride, dilation, more in zip(x.shape[2:], taps, strides, dilations, extra)
    ]
    pads, missing = _transposed_pads(node, full, strides)
    more = [e + m for e, m in zip(extra, missing)]
    geometry = list(zip(strides, dilations, pads, more))
    return transposed(b, x, weight, node.optional(2), geometry, node.int("group", 1))


Geometry = Sequence[tuple[int, int, tuple[int, int], int]]
"""(stride, dilation, pads, output padding) per spatial axis."""


def transposed(b: Builder, x: Value, weight: Value, bias: Value | None, geometry: Geometry, group: int) -> Value:
    """Transposed convolution over one, two or three axes."""
    if len(geometry) == 3:
        return _deep_transpose(b, x, weight, bias, geometry, group)
    strides, dilations, pads, more = zip(*geometry)
    out = b.deconv(
        as_image(b, x),
        as_image(b, weight),
        bias,
        strides=pair(strides, 1),
        pads=quad(pads),
        dilations=pair(dilations, 1),
        group=group,
        output_pads=pair(more, 0),
    )
    return like_input(b, out, x.type.rank)


def tap_weight(b: Builder, like: Value, taps: Sequence[int]) -> Value:
    """Kernel (prod(taps), 1, *taps) of a transposed convolution that puts channel k at tap k.

    Raises UnsupportedError for windows of absurd size.
    """
    count = prod(taps)
    if count > _MOST_TAPS:
        raise UnsupportedError(f"a window of {list(taps)} is not supported: it has more than {_MOST_TAPS} elements")
    return b.weight(np.eye(count, dtype=like.type.numpy).reshape(count, 1, *taps), "taps")


def _deep_transpose(b: Builder, x: Value, weight: Value, bias: Value | None, geometry: Geometry, group: int) -> Value:
    """Three axes as two transposed convolutions.

    Height and width first, with the depth taps among the channels, then depth, which only adds up overlapping slices.
    """
    n, c, d, h, w = x.shape
    depth, rows, columns = geometry
    planes = b.reshape(b.permute(x, order=(0, 2, 1, 3, 4)), shape=(n * d, c, h, w))
    flat = b.deconv(
        planes,
        merged_weight(b, weight),
        strides=(rows[0], columns[0]),
        dilations=(rows[1], columns[1]),
        pads=(*rows[2], *columns[2]),
        output_pads=(rows[3], columns[3]),
        group=group,
    )
    taps = weight.shape[2]
    outputs, (oh, ow) = flat.shape[1] // taps, flat.shape[2:]
    slices = b.permute(b.reshape(flat, shape=(n, d, outputs, taps, oh * ow)), order=(0, 2, 3, 1, 4))
    summed = b.deconv(
        b.reshape(slices, shape=(n * outputs, taps, d, oh * ow)),
        tap_weight(b, x, (taps, 1)),
        strides=(depth[0], 1),
        dilations=(depth[1], 1),
        pads=(*depth[2], 0, 0),
        output_pads=(depth[3], 0),
    )
    out = b.reshape(summed, shape=(n, outputs, summed.shape[2], oh, ow))
    if bias is not None:
        out = b.add(out, b.reshape(bias, shape=(outputs, 1, 1, 1)))
    return out


def _transposed_pads(
    node: Node, full: Sequence[int], strides: Sequence[int]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Pads and further output padding per axis that turn the `full` output sizes into the wanted ones.

    `output_shape` gives the sizes, and without it auto_pad SAME gives input * stride. SAME_UPPER cuts the odd element
    after the data, all others before it.
    """
    count = len(full)
    mode = choice("auto_pad", node.string("auto_pad", "NOTSET") or "NOTSET", AUTO_PADS)
    pads = per_axis(node, "pads", 2 * count, (0,) * (2 * count), least=0)
    wanted = list(node.ints("output_shape", ()))
    if wanted and len(wanted) == count + 2:  # some exporters write batch and channels as well
        wanted = wanted[2:]
    if not wanted and mode.startswith("SAME"):
        wanted = [size * stride for size, stride in zip(node.shape()[2:], strides)]
    if not wanted:
        before, after = (pads[:count], pads[count:]) if mode == "NOTSET" else ((0,) * count, (0,) * count)
        return list(zip(before, after)), [0] * count
    if len(wanted) != count or min(wanted) < 1:
        raise ShapeError(f"output_shape {wanted} must be {count} sizes of 1 or more")
    surplus = [max(0, have - want) for have, want in zip(full, wanted)]
    missing = [max(0, want - have) for have, want in zip(full, wanted)]
    halves = [(total // 2, total - total // 2) for total in surplus]
    return [(small, large) if mode == "SAME_UPPER" else (large, small) for small, large in halves], missing
