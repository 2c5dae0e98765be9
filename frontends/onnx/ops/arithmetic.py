"""Functions of two or more tensors, with broadcasting, and Cast."""

from __future__ import annotations

import numpy as np

from bmcompiler.builder import Builder
from bmcompiler.errors import UnsupportedError
from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.registry import Converter, Tensor, onnx_op
from bmcompiler.frontends.onnx.tensors import dtype_name
from bmcompiler.ir import DTYPES, Value


def _chain(op: str) -> Converter:
    """op(op(a, b), c)...; one input alone passes through."""

    def convert(node: Node, b: Builder) -> Value:
        result, *others = node.inputs()
        for other in others:
            result = b.create(op, [result, other]).result
        return result

    return convert


for _type, _op in (("Sum", "add"), ("Max", "max"), ("Min", "min")):
    onnx_op(_type)(_chain(_op))


def _binary(op: str) -> Converter:
    def convert(node: Node, b: Builder) -> Value:
        return b.create(op, [node.input(0), node.input(1)]).result

    return convert


for _type in ("Add", "Sub", "Mul", "Div"):
    onnx_op(_type)(_binary(_type.lower()))


@onnx_op("Mean")
def mean(node: Node, b: Builder) -> Value:
    total = _chain("add")(node, b)
    assert isinstance(total, Value)
    if len(node) == 1:
        return total
    out: Value = b.div(total, b.weight(np.asarray(len(node), total.type.numpy), "count"))
    return out


@onnx_op("Pow")
def power(node: Node, b: Builder) -> Value:
    """The result has the type of the base, whatever the type of the exponent."""
    base = node.input(0)
    if node.is_constant(1):
        exponent = b.weight(node.constant(1).astype(base.type.numpy), node.proto.input[1])
    else:
        exponent = node.input(1)
        if exponent.dtype != base.dtype:
            exponent = b.cast(exponent, dtype=base.dtype)
    out: Value = b.pow(base, exponent)
    return out


@onnx_op("Reciprocal")
def reciprocal(node: Node, b: Builder) -> Value:
    x = node.input(0)
    out: Value = b.div(b.weight(np.ones((), x.type.numpy), "one"), x)
    return out


@onnx_op("Cast")
def cast(node: Node, b: Builder) -> Tensor:
    node.ignore("saturate", "round_mode")
    x, to = node.input(0), dtype_name(node.int("to"))
    return cast_value(b, x, to)


def cast_value(b: Builder, x: Value, to: str) -> Value:
    """ONNX cuts reals towards zero where the IR's cast rounds; integers may only become wider (ONNX wraps)."""
    if x.dtype == to:
        return x
    if x.type.is_integer and to not in ("bool", "f16", "f32", "f64") and not _holds(to, x.dtype):
        raise UnsupportedError(f"a cast from {x.dtype} to the narrower {to} is not supported")
    if x.type.is_float and to[0] in "iu":
        zero = b.weight(np.zeros((), x.type.numpy), "zero")
        x = b.add(b.floor(b.max(x, zero)), b.ceil(b.min(x, zero)))
    out: Value = b.cast(x, dtype=to)
    return out


def _holds(wide: str, narrow: str) -> bool:
    return bool(np.can_cast(np.dtype(DTYPES[narrow][1]), np.dtype(DTYPES[wide][1])))
