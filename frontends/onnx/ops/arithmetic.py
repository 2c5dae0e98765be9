"""Functions of two or more tensors, with broadcasting; casts, comparison and logic."""

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


@onnx_op("Div")
def divide(node: Node, b: Builder) -> Value:
    return b.div(node.input(0), node.input(1))


@onnx_op("Mod")
def modulo(node: Node, b: Builder) -> Value:
    """Before opset 10 there was none; without fmod the inputs are integers."""
    return b.mod(node.input(0), node.input(1), fmod=node.flag("fmod"))


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


@onnx_op("BitCast")
def bit_cast(node: Node, b: Builder) -> Value:
    return b.bit_cast(node.input(0), dtype=dtype_name(node.int("to")))


# -- comparison and logic -----------------------------------------------------------
_COMPARE = {
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
}


@onnx_op(*_COMPARE)
def compare(node: Node, b: Builder) -> Value:
    return b.compare(node.input(0), node.input(1), method=_COMPARE[node.type])


_BITS = {
    "And": "bit_and",
    "Or": "bit_or",
    "Xor": "bit_xor",
    "BitwiseAnd": "bit_and",
    "BitwiseOr": "bit_or",
    "BitwiseXor": "bit_xor",
    "Not": "bit_not",
    "BitwiseNot": "bit_not",
}


@onnx_op(*_BITS)
def bits(node: Node, b: Builder) -> Value:
    """Logic on bool is bitwise logic on one bit."""
    return b.create(_BITS[node.type], node.inputs()).result


@onnx_op("BitShift")
def bit_shift(node: Node, b: Builder) -> Value:
    return b.bit_shift(node.input(0), node.input(1), direction=node.string("direction").lower())


@onnx_op("Where")
def where(node: Node, b: Builder) -> Value:
    return b.where(node.input(0), node.input(1), node.input(2))


@onnx_op("IsNaN")
def is_nan(node: Node, b: Builder) -> Value:
    return b.is_nan(node.input(0))


@onnx_op("IsInf")
def is_inf(node: Node, b: Builder) -> Value:
    signs = {"positive": node.flag("detect_positive", True), "negative": node.flag("detect_negative", True)}
    return b.is_inf(node.input(0), **signs)
