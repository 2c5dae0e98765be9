"""Pooling with one, two or three spatial axes: windows of three are height and width first, then depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError, UnsupportedError
from bmcompiler.frontends.onnx.constants import MAX_GROWN, check_size
from bmcompiler.frontends.onnx.geometry import as_image, like_input, paddings, pair, per_axis, quad, spatial_axes
from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.ops.layout import to_shape
from bmcompiler.frontends.onnx.registry import Tensor, onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder

_Axis = tuple[int, int, tuple[int, int], int]
_WHOLE: _Axis = (1, 1, (0, 0), 1)


@dataclass(frozen=True)
class _Windows:
    """(kernel, stride, pads, dilation) per spatial axis."""

    axes: tuple[_Axis, ...]
    ceil_mode: bool

    @property
    def image(self) -> dict[str, object]:
        """Attributes of a pooling over one or two axes."""
        kernels, strides, pads, dilations = zip(*self.axes)
        return {
            "kernel": pair(kernels, 1),
            "strides": pair(strides, 1),
            "pads": quad(pads),
            "dilations": pair(dilations, 1),
            "ceil_mode": self.ceil_mode,
        }

    @property
    def plain(self) -> dict[str, object]:
        """The same without dilations."""
        return {name: value for name, value in self.image.items() if name != "dilations"}

    def positions(self, sizes: Sequence[int]) -> list[tuple[np.ndarray, int]]:
        """Per axis: source index of every tap (windows, taps), and how much the windows reach beyond the pads."""
        found = []
        for (taps, stride, (before, after), dilation), size in zip(self.axes, sizes):
            span, length = dilation * (taps - 1) + 1, size + before + after
            if span > length:
                raise ShapeError(f"a window of {taps} (dilation {dilation}) does not fit {length} padded elements")
            count = -(-(length - span) // stride) + 1 if self.ceil_mode else (length - span) // stride + 1
            if self.ceil_mode and (count - 1) * stride >= size + before:
                count -= 1
            check_size((count, taps), MAX_GROWN)
            starts = np.arange(count) * stride - before
            beyond = max(0, (count - 1) * stride + span - length)
            found.append((starts[:, None] + np.arange(taps) * dilation, beyond))
        return found


def _windows(node: Node) -> _Windows:
    count = spatial_axes(node.shape())
    kernel = per_axis(node, "kernel_shape", count, ())
    strides = per_axis(node, "strides", count, (1,) * count)
    dilations = per_axis(node, "dilations", count, (1,) * count)
    pads = paddings(node, node.shape()[2:], kernel, strides, dilations)
    same = node.string("auto_pad", "NOTSET").startswith("SAME")  # which already fixes the number of windows
    return _Windows(tuple(zip(kernel, strides, pads, dilations)), node.flag("ceil_mode") and not same)


def _by_planes(b: Builder, x: Value, windows: _Windows, pool: Callable[[Value, _Windows], Value]) -> Value:
    """Apply a pooling of two axes whose windows are products of axes to one, two or three axes."""
    count = x.type.rank - 2
    if count < 3:
        return like_input(b, pool(as_image(b, x), windows), count + 2)
    n, c, d, h, w = x.shape
    flat = pool(to_shape(b, x, (n, c * d, h, w)), replace(windows, axes=windows.axes[1:]))
    rows, columns = flat.shape[2:]
    deep = replace(windows, axes=(windows.axes[0], _WHOLE))
    out = pool(to_shape(b, flat, (n, c, d, rows * columns)), deep)
    return to_shape(b, out, (n, c, out.shape[2], rows, columns))


@onnx_op("MaxPool")
def max_pool(node: Node, b: Builder) -> tuple[Value, ...]:
    x, windows, by_columns = node.input(0), _windows(node), node.flag("storage_order")
    out = _by_planes(b, x, windows, lambda image, each: b.max_pool(image, **each.image))
    if len([name for name in node.proto.output if name]) < 2:
        return (out,)
    return out, _indices(b, x, windows, by_columns)


def _indices(b: Builder, x: Value, windows: _Windows, by_columns: bool) -> Value:
    """Places of the maxima, counted over the whole tensor; `by_columns` counts down each column of a plane first."""
    if x.type.rank > 4:
        raise UnsupportedError("indices of maxima over three axes are not supported")
    image, swap = as_image(b, x), by_columns and x.type.rank == 4
    if swap:
        image = b.permute(image, order=(0, 1, 3, 2))
        windows = replace(windows, axes=windows.axes[::-1])
    mask = b.max_pool_mask(image, **windows.image)
    if swap:
        mask = b.permute(mask, order=(0, 1, 3, 2))
    places = b.add(mask, b.weight(_plane_starts(x.shape), "planes"), wrap=True)
    return like_input(b, b.cast(places, dtype="i64"), x.type.rank)


def _plane_starts(shape: Sequence[int]) -> np.ndarray:
    """Index of each plane's first element, (N, C, 1, 1), i32."""
    if prod(shape) >= 2**31 or shape[0] * shape[1] > MAX_GROWN:
        raise UnsupportedError(f"indices into a tensor of shape {list(shape)} are not supported")
    return (np.arange(shape[0] * shape[1], dtype=np.int32) * prod(shape[2:])).reshape(shape[0], shape[1], 1, 1)


@onnx_op("MaxUnpool")
def max_unpool(node: Node, b: Builder) -> Value:
    """Indices count over the result without `output_shape`, which then pads it with zeros at the end."""
    x, rank = node.input(0), node.rank()
    if rank not in (3, 4):
        raise UnsupportedError(f"input {list(node.shape())} has {rank - 2} spatial axes. Supported: 1 and 2")
    count = rank - 2
    kernel = per_axis(node, "kernel_shape", count, ())
    strides = per_axis(node, "strides", count, (1,) * count)
    pads = per_axis(node, "pads", 2 * count, (0,) * (2 * count), least=0)
    sizes = [
        (d - 1) * s + k - pads[i] - pads[count + i] for i, (d, s, k) in enumerate(zip(x.shape[2:], strides, kernel))
    ]
    wanted = node.constant_ints(2)
    if wanted is not None and len(wanted) != rank:
        raise FileFormatError(f"output_shape {list(wanted)} must have {rank} entries")
    starts = b.weight(_plane_starts((*x.shape[:2], *sizes)), "planes")
    places = b.sub(b.cast(as_image(b, node.input(1)), dtype="i32"), starts, wrap=True)
    out = like_input(b, b.max_unpool(as_image(b, x), places, size=pair(sizes, 1)), rank)
    if wanted is None or tuple(wanted) == out.shape:
        return out
    growth = [want - have for want, have in zip(wanted, out.shape)]
    if min(growth) < 0:
        raise ShapeError(f"output_shape {list(wanted)} is smaller than {list(out.shape)}")
    out = b.pad(out, pads=[n for g in growth for n in (0, g)])
    return out


@onnx_op("AveragePool")
def average_pool(node: Node, b: Builder) -> Value:
    x, windows, counted = node.input(0), _windows(node), node.flag("count_include_pad")
    if all(dilation == 1 for *_, dilation in windows.axes):
        return _by_planes(b, x, windows, lambda image, each: b.avg_pool(image, count_include_pad=counted, **each.plain))
    counts = np.ones((1,) * (x.type.rank - 2))
    for i, ((where, _), (_, _, (before, after), _)) in enumerate(zip(windows.positions(x.shape[2:]), windows.axes)):
        low, high = (-before, x.shape[2 + i] + after) if counted else (0, x.shape[2 + i])
        inside = np.sum((where >= low) & (where < high), axis=1)
        counts = counts * inside.reshape([-1 if i == axis else 1 for axis in range(counts.ndim)])
    return b.div(_sums(b, x, windows), b.weight(counts.astype(x.type.numpy), "counts"))


def _sums(b: Builder, x: Value, windows: _Windows) -> Value:
    """Sums of windows, as a convolution of every channel with ones."""

    def pool(image: Value, each: _Windows) -> Value:
        n, c, h, w = image.shape
        sizes = (h, w)[-len(each.axes) :]
        kernels, strides, pads, dilations = zip(*each.axes)
        reached = [(p[0], p[1] + beyond) for p, (_, beyond) in zip(pads, each.positions(sizes))]
        ones = b.weight(np.ones((1, 1, *pair(kernels, 1)), x.type.numpy), "ones")
        geometry = {"strides": pair(strides, 1), "pads": quad(reached), "dilations": pair(dilations, 1)}
        out = b.conv(to_shape(b, image, (n * c, 1, h, w)), ones, **geometry)
        return to_shape(b, out, (n, c, *out.shape[2:]))

    return _by_planes(b, x, windows, pool)


@onnx_op("LpPool")
def lp_pool(node: Node, b: Builder) -> Value:
    windows, p = _windows(node), node.int("p", 2)
    return _root(b, _sums(b, _power(b, node.input(0), p), windows), p)


def _power(b: Builder, x: Value, p: int) -> Value:
    """|x| ** p."""
    if p < 1:
        raise FileFormatError(f"p must be 1 or more, got {p}")
    out = b.mul(x, x) if p == 2 else b.abs(x)
    return out if p <= 2 else b.pow(out, b.weight(np.asarray(p, x.type.numpy), "p"))


def _root(b: Builder, x: Value, p: int) -> Value:
    return x if p == 1 else b.sqrt(x) if p == 2 else b.pow(x, b.weight(np.asarray(1 / p, x.type.numpy), "root"))


# -- over everything ----------------------------------------------------------------
def _whole(node: Node, b: Builder) -> tuple[Value, tuple[int, int]]:
    """The input with two spatial axes, and their sizes."""
    shape, spatial = node.shape(), node.rank(0, least=3) - 2
    size = (1, shape[2]) if spatial == 1 else (shape[2], prod(shape[3:]))
    return to_shape(b, node.input(0), (*shape[:2], *size)), size


def _one_each(node: Node, b: Builder, x: Value) -> Value:
    return to_shape(b, x, (*x.shape[:2], *(1,) * (node.rank() - 2)))


@onnx_op("GlobalMaxPool")
def global_max_pool(node: Node, b: Builder) -> Tensor:
    image, size = _whole(node, b)
    return _one_each(node, b, b.max_pool(image, kernel=size))


@onnx_op("GlobalAveragePool")
def global_average_pool(node: Node, b: Builder) -> Tensor:
    image, size = _whole(node, b)
    return _one_each(node, b, b.avg_pool(image, kernel=size))


@onnx_op("GlobalLpPool")
def global_lp_pool(node: Node, b: Builder) -> Tensor:
    image, _ = _whole(node, b)
    p = node.int("p", 2)
    total = b.reduce(_power(b, image, p), method="sum", axes=(2, 3))
    return _one_each(node, b, _root(b, total, p))
