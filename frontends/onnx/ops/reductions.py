"""Reduce*, ArgMax, ArgMin, CumSum, CumProd, TopK."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.errors import UnsupportedError
from bmcompiler.frontends.onnx.constants import axes_argument
from bmcompiler.frontends.onnx.node import Node, axes_of, axis_of
from bmcompiler.frontends.onnx.ops.arithmetic import wrapping
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder

_METHODS = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceProd": "prod",
    "ReduceL1": "l1",
    "ReduceL2": "l2",
    "ReduceSumSquare": "sum_square",
    "ReduceLogSum": "log_sum",
    "ReduceLogSumExp": "log_sum_exp",
}


_ALONE = {"l1": "abs", "l2": "abs", "sum_square": "square", "log_sum": "log"}
"""What a reduction does to an element that is reduced by itself; the others leave it as it is."""


@onnx_op(*_METHODS)
def reduce(node: Node, b: Builder) -> Value:
    x, keep, method = node.input(0), node.flag("keepdims", True), _METHODS[node.type]
    axes, skip = axes_argument(node, 13 if node.type == "ReduceSum" else 18), node.flag("noop_with_empty_axes")
    if not axes and (skip or not x.type.rank):
        return _alone(b, x, method)
    if x.dtype == "bool" and method not in ("max", "min"):
        raise UnsupportedError(f"{node.type} of bool is not supported")
    chosen = axes_of(axes or tuple(range(x.type.rank)), x.type.rank)
    return b.reduce(x, method=method, axes=chosen, keepdims=keep, **wrapping(x))


def _alone(b: Builder, x: Value, method: str) -> Value:
    how = _ALONE.get(method)
    if how is None:
        return x
    return b.mul(x, x, **wrapping(x)) if how == "square" else b.create(how, [x]).result


@onnx_op("ArgMax", "ArgMin")
def arg(node: Node, b: Builder) -> Value:
    """The index as i64."""
    x = node.input(0)
    axis = axis_of(node.int("axis", 0), node.rank(0, least=1))
    keepdims, last = node.flag("keepdims", True), node.flag("select_last_index")
    return b.cast(b.arg(x, method=node.type[3:].lower(), axis=axis, keepdims=keepdims, last=last), dtype="i64")


@onnx_op("CumSum", "CumProd")
def cumulate(node: Node, b: Builder) -> Value:
    ways = {"exclusive": node.flag("exclusive"), "reverse": node.flag("reverse")}
    method, where = node.type[3:].lower(), axis_of(node.whole(1), node.rank(0, least=1))
    return b.cumulate(node.input(0), method=method, axis=where, **ways)


@onnx_op("TopK")
def top_k_by_attribute(node: Node, b: Builder) -> tuple[Value, Value]:
    return _top_k(node, b, node.int("k"))


@onnx_op("TopK", since=10)
def top_k_by_input(node: Node, b: Builder) -> tuple[Value, Value]:
    node.ignore("sorted")  # in order is one of the orders that "not sorted" allows
    return _top_k(node, b, node.whole(1))


def _top_k(node: Node, b: Builder, k: int) -> tuple[Value, Value]:
    axis = axis_of(node.int("axis", -1), node.rank(0, least=1))
    x, last = node.input(0), node.rank(0, least=1) - 1
    order = [i for i in range(last + 1) if i != axis] + [axis]
    moved = axis != last and prod(x.shape[axis + 1 :]) > 1  # chips rank along the last axis
    ranked = b.permute(x, order=order) if moved else x
    attributes = {"k": k, "axis": last if moved else axis, "largest": node.flag("largest", True)}
    results = b.create("top_k", [ranked], attributes).results
    values, indices = (b.permute(each, order=np.argsort(order).tolist()) if moved else each for each in results)
    return values, b.cast(indices, dtype="i64")
