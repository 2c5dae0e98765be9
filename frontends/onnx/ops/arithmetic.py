"""Arithmetic with broadcasting, and casts; comparisons and logic are rows."""

from __future__ import annotations

import numpy as np

from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.registry import Converter, Tensor, onnx_op
from bmcompiler.frontends.onnx.tensors import dtype_name
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder


def wrapping(x: Value) -> dict[str, bool]:
    """Attribute of add, sub, mul and reduce: ONNX integers wrap where those of a quantized net saturate."""
    return {"wrap": True} if x.type.is_integer else {}


def _folded(op: str) -> Converter:
    """op(op(a, b), c)...; one input alone passes through."""

    def convert(node: Node, b: Builder) -> Value:
        result, *others = node.inputs()
        for other in others:
            result = b.create(op, [result, other]).result
        return result

    return convert


for _type, _op in (("Sum", "add"), ("Max", "max"), ("Min", "min")):
    onnx_op(_type)(_folded(_op))


@onnx_op("Add", "Sub", "Mul")
def add_sub_mul(node: Node, b: Builder) -> Value:
    x = node.input(0)
    return b.create(node.type.lower(), [x, node.input(1)], wrapping(x)).result


@onnx_op("Mean")
def mean(node: Node, b: Builder) -> Value:
    total = _folded("add")(node, b)
    assert isinstance(total, Value), "a sum is one value"
    if len(node) == 1:
        return total
    return b.div(total, b.weight(np.asarray(len(node), total.type.numpy), "count"))


@onnx_op("Pow")
def power(node: Node, b: Builder) -> Value:
    """The result has the type of the base, whatever the type of the exponent; a square and a square root as such."""
    base = node.input(0)
    exponent = node.input(1)
    if node.is_constant(1) and base.type.is_float:
        number = node.constant(1)
        if number.ndim <= base.type.rank and number.size == 1 and float(number.item()) in (2.0, 0.5):
            return b.mul(base, base) if number.item() == 2 else b.sqrt(base)
        exponent = b.weight(number.astype(base.type.numpy), node.proto.input[1])
    return b.pow(base, exponent)


@onnx_op("Reciprocal")
def reciprocal(node: Node, b: Builder) -> Value:
    x = node.input(0)
    return b.div(b.weight(np.ones((), x.type.numpy), "one"), x)


@onnx_op("Cast")
def cast(node: Node, b: Builder) -> Tensor:
    node.ignore("saturate", "round_mode")
    x, to = node.input(0), dtype_name(node.int("to"))
    return cast_value(b, x, to)


@onnx_op("CastLike")
def cast_like(node: Node, b: Builder) -> Tensor:
    node.ignore("saturate", "round_mode")
    return cast_value(b, node.input(0), node.tensor_type(1).dtype)


def cast_value(b: Builder, x: Value, to: str) -> Value:
    """ONNX cuts reals towards zero where the IR's cast rounds, and wraps integers where it saturates."""
    if x.dtype == to:
        return x
    return b.cast(x, dtype=to, truncate=to[0] in "iu" and x.dtype != "bool")
