"""Conv and ConvTranspose, with one or two spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.builder import Builder
from bmcompiler.errors import FileFormatError, ShapeError
from bmcompiler.frontends.onnx.geometry import (
    AUTO_PADS,
    as_image,
    kernel_image,
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


def _taps(node: Node, weight: Value, count: int) -> tuple[int, ...]:
    """Kernel size per spatial axis. Raises FileFormatError when `kernel_shape` contradicts the weight."""
    taps = weight.shape[-count:]
    stated = node.ints("kernel_shape", taps)
    if stated != taps or 0 in taps:
        raise FileFormatError(f"kernel_shape {list(stated)} does not fit weight {list(weight.shape)}")
    return taps


@onnx_op("Conv")
def conv(node: Node, b: Builder) -> Value:
    count = spatial_axes(node)
    weight = kernel_image(node, b, 1, count)
    taps = _taps(node, weight, count)
    strides = per_axis(node, "strides", count, (1,) * count)
    dilations = per_axis(node, "dilations", count, (1,) * count)
    pads = paddings(node, node.shape()[2:], taps, strides, dilations)
    out = b.conv(
        as_image(b, node.input(0)),
        weight,
        node.optional(2),
        strides=pair(strides, 1),
        pads=quad(pads),
        dilations=pair(dilations, 1),
        group=node.int("group", 1),
    )
    return like_input(b, out, count + 2)


@onnx_op("ConvTranspose")
def conv_transpose(node: Node, b: Builder) -> Value:
    count = spatial_axes(node)
    weight = kernel_image(node, b, 1, count)
    taps = _taps(node, weight, count)
    strides = per_axis(node, "strides", count, (1,) * count)
    dilations = per_axis(node, "dilations", count, (1,) * count)
    extra = per_axis(node, "output_padding", count, (0,) * count, least=0)
    full = [
        (size - 1) * stride + dilation * (k - 1) + 1 + more
        for size, k, stride, dilation, more in zip(node.shape()[2:], taps, strides, dilations, extra)
    ]
    pads, more = _transposed_pads(node, full, strides)
    out = b.deconv(
        as_image(b, node.input(0)),
        weight,
        node.optional(2),
        strides=pair(strides, 1),
        pads=quad(pads),
        dilations=pair(dilations, 1),
        group=node.int("group", 1),
        output_pads=pair([e + m for e, m in zip(extra, more)], 0),
    )
    return like_input(b, out, count + 2)


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
