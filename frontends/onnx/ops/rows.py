"""Ops that are one TensorOp: which, and where its attributes come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bmcompiler.frontends.onnx.node import Node, axis_of, choice
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.frontends.onnx.tensors import dtype_name
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder

Read = Callable[[Node], Any]
"""Reads what a node says of one attribute of the TensorOp."""


class Row(NamedTuple):
    """A TensorOp, how many inputs of the node it takes, and its attributes."""

    op: str
    inputs: int = 1
    attributes: Mapping[str, Read] = {}

    def convert(self, node: Node, b: Builder) -> Value:
        """See `registry.Converter`."""
        attributes = {name: read(node) for name, read in self.attributes.items()}
        return b.create(self.op, [node.input(i) for i in range(self.inputs)], attributes).result


def _real(name: str, default: float) -> Read:
    return lambda node: node.float(name, default)


def _whole(name: str, default: int | None = None) -> Read:
    return lambda node: node.int(name, default)


def _flag(name: str, default: bool = False) -> Read:
    return lambda node: node.flag(name, default)


def _one_of(name: str, default: str, known: Sequence[str]) -> Read:
    return lambda node: choice(name, node.string(name, default), known)


def _axis(node: Node) -> int:
    return axis_of(node.int("axis", 0), node.rank(0, least=1))


def _always(value: str) -> Read:
    return lambda node: value


_REDUCTION = {"reduction": _one_of("reduction", "none", ("none", "add", "mul", "max", "min"))}
_COMPARISONS = {
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
}
_SAME_NAME = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Det", "Erf", "Exp", "Floor",
    "Log", "Mish", "Neg", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan",
    "Tanh",
)  # fmt: skip
ROWS = {
    **{name: Row(name.lower()) for name in _SAME_NAME},
    "BitCast": Row("bit_cast", 1, {"dtype": lambda node: dtype_name(node.int("to"))}),
    "BitShift": Row("bit_shift", 2, {"direction": lambda node: node.string("direction").lower()}),
    "Celu": Row("celu", 1, {"alpha": _real("alpha", 1.0)}),
    "Div": Row("div", 2),
    "Elu": Row("elu", 1, {"alpha": _real("alpha", 1.0)}),
    "GatherElements": Row("gather_elements", 2, {"axis": _axis}),
    "GatherND": Row("gather_nd", 2, {"batch_dims": _whole("batch_dims", 0)}),
    "Gelu": Row("gelu", 1, {"approximate": lambda node: node.string("approximate", "none")}),
    "HardSigmoid": Row("hard_sigmoid", 1, {"alpha": _real("alpha", 0.2), "beta": _real("beta", 0.5)}),
    "HardSwish": Row("hard_swish"),
    "IsInf": Row("is_inf", 1, {s: _flag(f"detect_{s}", True) for s in ("positive", "negative")}),
    "IsNaN": Row("is_nan"),
    "LRN": Row(
        "lrn",
        1,
        {"size": _whole("size"), "alpha": _real("alpha", 1e-4), "beta": _real("beta", 0.75), "k": _real("bias", 1.0)},
    ),
    "LeakyRelu": Row("leaky_relu", 1, {"slope": _real("alpha", 0.01)}),
    "Mod": Row("mod", 2, {"fmod": _flag("fmod")}),  # before opset 10 there was none; without fmod inputs are integers
    "ReverseSequence": Row(
        "reverse_sequence", 2, {"batch_axis": _whole("batch_axis", 1), "time_axis": _whole("time_axis", 0)}
    ),
    "Scatter": Row("scatter_elements", 3, {"axis": _axis, **_REDUCTION}),
    "ScatterElements": Row("scatter_elements", 3, {"axis": _axis, **_REDUCTION}),
    "ScatterND": Row("scatter_nd", 3, _REDUCTION),
    "Selu": Row("selu", 1, {"alpha": _real("alpha", 1.6732631921768188), "gamma": _real("gamma", 1.0507010221481323)}),
    "Shrink": Row("shrink", 1, {"threshold": _real("lambd", 0.5), "bias": _real("bias", 0.0)}),
    "Swish": Row("swish", 1, {"alpha": _real("alpha", 1.0)}),
    "ThresholdedRelu": Row("thresholded_relu", 1, {"alpha": _real("alpha", 1.0)}),
    "Where": Row("where", 3),
    **{name: Row("compare", 2, {"method": _always(method)}) for name, method in _COMPARISONS.items()},
    # Logic on bool is bitwise logic on one bit.
    **{f"{kind}{name}": Row(f"bit_{name.lower()}", 2) for kind in ("", "Bitwise") for name in ("And", "Or", "Xor")},
    **dict.fromkeys(("Not", "BitwiseNot"), Row("bit_not")),
}
for _type, _row in ROWS.items():
    onnx_op(_type)(_row.convert)
onnx_op("Binarizer", domain="ai.onnx.ml")(Row("threshold", 1, {"threshold": _real("threshold", 0.0)}).convert)
