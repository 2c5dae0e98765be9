"""Reduce*, ArgMax, ArgMin."""

from __future__ import annotations

import numpy as np

from bmcompiler.builder import Builder
from bmcompiler.frontends.onnx.constants import axes_argument
from bmcompiler.frontends.onnx.node import Node, axes_of, axis_of
from bmcompiler.frontends.onnx.ops.layout import slice_axes
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value

_METHODS = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceProd": "prod",
    "ReduceL1": "l1",
    "ReduceL2": "l2",
    "ReduceSumSquare": "sum_square",
    "ReduceLogSum": "sum",
}


def _axes(node: Node) -> tuple[int, ...] | None:
    """Axes to reduce; None when the node passes its input through."""
    axes = axes_argument(node, 13 if node.type == "ReduceSum" else 18)
    if not axes and node.flag("noop_with_empty_axes"):
        return None
    return axes_of(axes or tuple(range(node.rank())), node.rank())


@onnx_op(*_METHODS)
def reduce(node: Node, b: Builder) -> Value:
    x, axes, keep = node.input(0), _axes(node), node.flag("keepdims", True)
    method = _METHODS[node.type]
    scalar = x.type.rank == 0
    if scalar:
        x, axes = b.reshape(x, shape=(1,)), (0,) if axes is not None else None
    if axes is None:  # nothing to reduce over: each element is reduced by itself
        x = b.reshape(x, shape=(*x.shape, 1))
        axes, keep = (x.type.rank - 1,), False
    out: Value = b.reduce(x, method=method, axes=axes, keepdims=keep and not scalar)
    if node.type == "ReduceLogSum":
        out = b.log(out)
    return out


@onnx_op("ReduceLogSumExp")
def reduce_log_sum_exp(node: Node, b: Builder) -> Value:
    """log(sum(exp(x - m))) + m with the maximum m, so that nothing overflows."""
    x, axes, keep = node.input(0), _axes(node), node.flag("keepdims", True)
    if not axes:
        return x
    top = b.reduce(x, method="max", axes=axes)
    total = b.reduce(b.exp(b.sub(x, top)), method="sum", axes=axes)
    out: Value = b.add(b.log(total), top)
    if not keep:
        out = b.reshape(out, shape=tuple(d for i, d in enumerate(x.shape) if i not in axes))
    return out


@onnx_op("ArgMax", "ArgMin")
def arg(node: Node, b: Builder) -> Value:
    """The index as i64. `select_last_index` counts from the back of the reversed axis."""
    x = node.input(0)
    axis = axis_of(node.int("axis", 0), node.rank(0, least=1))
    how = {"method": node.type[3:].lower(), "axis": axis, "keepdims": node.flag("keepdims", True)}
    size = x.shape[axis]
    if not node.flag("select_last_index"):
        out: Value = b.cast(b.arg(x, **how), dtype="i64")
        return out
    back = b.arg(slice_axes(b, x, {axis: (size - 1, -size - 1, -1)}), **how)
    last = b.weight(np.asarray(size - 1, np.int32), "last")
    out = b.cast(b.sub(last, back), dtype="i64")
    return out
