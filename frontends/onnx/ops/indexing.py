"""Ops that pick or place elements by index."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError
from bmcompiler.frontends.onnx.node import Node, axis_of, choice
from bmcompiler.frontends.onnx.ops.arithmetic import cast_value
from bmcompiler.frontends.onnx.ops.layout import slice_axes, to_shape
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder

_MAX_SLICES = 64


@onnx_op("Gather")
def gather(node: Node, b: Builder) -> Value:
    """A few constant indices at equal distances are a slice, others a concatenation of slices: those run anywhere."""
    x, axis = node.input(0), axis_of(node.int("axis", 0), node.rank(0, least=1))
    index = node.constant(1) if node.is_constant(1) else None
    if index is None or not 0 < index.size <= _MAX_SLICES or index.dtype.kind not in "iu":
        return b.gather(x, node.input(1), axis=axis)
    size = x.shape[axis]
    if index.min() < -size or index.max() >= size:
        raise ShapeError(f"index {int(index.min())} to {int(index.max())} is outside axis {axis} with {size} elements")
    places = [int(i) % size for i in index.reshape(-1)]
    steps = set(np.diff(places).tolist())
    if len(steps) <= 1 and steps != {0}:
        step = steps.pop() if steps else 1
        last = places[-1] + (1 if step > 0 else -1)
        out = slice_axes(b, x, {axis: (places[0], last if last >= 0 else -size - 1, step)})
    else:
        out = b.concat(*(slice_axes(b, x, {axis: (i, i + 1, 1)}) for i in places), axis=axis)
    return to_shape(b, out, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


@onnx_op("OneHot")
def one_hot(node: Node, b: Builder) -> Value:
    """Indices and depth may be of any number type; their fractions do not count."""
    depth = node.whole(1)
    if depth < 1:
        raise ShapeError(f"depth must be positive, got {depth}")
    axis = axis_of(node.int("axis", -1), node.rank() + 1)
    return b.one_hot(cast_value(b, node.input(0), "i64"), node.input(2), depth=depth, axis=axis)


@onnx_op("Compress")
def compress(node: Node, b: Builder) -> Value:
    """The condition decides the shape, so it must be constant."""
    x, condition = node.input(0), node.constant(1)
    if condition.dtype.kind != "b" or condition.ndim != 1:
        raise FileFormatError(f"the condition must be a list of bool, got {condition.dtype}{list(condition.shape)}")
    if not node.has_attribute("axis"):
        x = to_shape(b, x, (x.type.size,))
    axis = axis_of(node.int("axis", 0), x.type.rank)
    chosen = np.flatnonzero(condition).astype(np.int64)
    if chosen.size and chosen[-1] >= x.shape[axis]:
        raise ShapeError(f"the condition chooses element {int(chosen[-1])} of {x.shape[axis]}")
    return b.gather(x, b.weight(chosen, "chosen"), axis=axis)


@onnx_op("Trilu")
def trilu(node: Node, b: Builder) -> Value:
    """The diagonal is cut to the matrix, beyond which it changes nothing."""
    x, diagonal = node.input(0), node.scalar(1) or 0
    reach = max(node.shape()[-2:], default=0) + 1
    return b.trilu(x, upper=node.flag("upper", True), k=max(-reach, min(reach, diagonal)))


@onnx_op("TensorScatter", since=24)
def tensor_scatter(node: Node, b: Builder) -> Value:
    """Updates written into a cache from a place per batch on, along one axis; circular mode starts again at 0.

    The axes before that one count matrices, each with new rows at the places of its batch.
    """
    x, update, rank = node.input(0), node.input(1), node.rank(0, least=2)
    axis = axis_of(node.int("axis", -2), rank)
    circular = choice("mode", node.string("mode", "linear"), ("linear", "circular")) == "circular"
    outer, width = x.shape[:axis], prod(x.shape[axis + 1 :])
    size, count = x.shape[axis], update.shape[axis] if update.type.rank == rank else 0
    if not axis or update.shape != (*outer, count, *x.shape[axis + 1 :]):
        raise ShapeError(f"update {list(update.shape)} does not fit cache {list(x.shape)} along axis {axis}")
    grid = (outer[0], prod(outer[1:]), count, 1)
    places = b.weight(np.broadcast_to(np.arange(count)[:, None], grid), "steps")
    length = b.weight(np.asarray(size), "size")
    if node.has(2):
        first = b.reshape(cast_value(b, node.input(2), "i64"), shape=(outer[0], 1, 1, 1))
        places = b.add(b.mod(first, length) if circular else first, places, wrap=True)
    if circular:
        places = b.mod(places, length)
    matrices = b.weight(np.broadcast_to(np.arange(prod(outer)).reshape(*grid[:2], 1, 1), grid), "matrices")
    rows = b.reshape(update, shape=(*grid[:3], width))
    cache = b.reshape(x, shape=(prod(outer), size, width))
    return b.reshape(b.scatter_nd(cache, b.concat(matrices, places, axis=3), rows), shape=x.shape)
