"""MaxPool, AveragePool and their global forms."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.builder import Builder
from bmcompiler.errors import UnsupportedError
from bmcompiler.frontends.onnx.geometry import as_image, like_input, paddings, pair, per_axis, quad, spatial_axes
from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value


def _window(node: Node, dilations: Sequence[int], count: int) -> dict[str, object]:
    """Attributes that both poolings share."""
    kernel = per_axis(node, "kernel_shape", count, ())
    strides = per_axis(node, "strides", count, (1,) * count)
    pads = paddings(node, node.shape()[2:], kernel, strides, dilations)
    same = node.string("auto_pad", "NOTSET").startswith("SAME")
    return {
        "kernel": pair(kernel, 1),
        "strides": pair(strides, 1),
        "pads": quad(pads),
        # SAME already fixes the number of windows
        "ceil_mode": node.flag("ceil_mode") and not same,
    }


@onnx_op("MaxPool")
def max_pool(node: Node, b: Builder) -> Value:
    node.ignore("storage_order")  # of the indices, a second output that nothing here makes
    count = spatial_axes(node)
    dilations = per_axis(node, "dilations", count, (1,) * count)
    window = _window(node, dilations, count)
    out = b.max_pool(as_image(b, node.input(0)), dilations=pair(dilations, 1), **window)
    return like_input(b, out, count + 2)


@onnx_op("AveragePool")
def average_pool(node: Node, b: Builder) -> Value:
    count = spatial_axes(node)
    dilations = per_axis(node, "dilations", count, (1,) * count)
    if any(d != 1 for d in dilations):
        raise UnsupportedError("dilations other than 1 are not supported")
    window = _window(node, dilations, count)
    counted = node.flag("count_include_pad")
    out = b.avg_pool(as_image(b, node.input(0)), count_include_pad=counted, **window)
    return like_input(b, out, count + 2)


def _whole(node: Node) -> tuple[int, int]:
    spatial_axes(node)
    return pair(node.shape()[2:], 1)


@onnx_op("GlobalMaxPool")
def global_max_pool(node: Node, b: Builder) -> Value:
    out = b.max_pool(as_image(b, node.input(0)), kernel=_whole(node))
    return like_input(b, out, node.rank())


@onnx_op("GlobalAveragePool")
def global_average_pool(node: Node, b: Builder) -> Value:
    out = b.avg_pool(as_image(b, node.input(0)), kernel=_whole(node))
    return like_input(b, out, node.rank())
