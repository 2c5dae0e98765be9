"""Functions of one tensor, and per-channel slopes and factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bmcompiler.backends.lanes.kernels.base import is_activation
from bmcompiler.backends.lanes.kernels.functions.elementwise import ElementwiseKernel
from bmcompiler.backends.lanes.recipes import (
    Recorder,
    Register,
    activations,
    exponential,
    powers,
    rounding,
    trigonometry,
)
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import (
    Abs,
    Ceil,
    Clip,
    Elu,
    Exp,
    Floor,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Log,
    Neg,
    Prelu,
    Relu,
    Round,
    Sigmoid,
    Softplus,
    Sqrt,
    Tanh,
)
from bmcompiler.ops.elements.functions import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cos,
    Cosh,
    Erf,
    Sign,
    Sin,
    Sinh,
    Tan,
)
from bmcompiler.ops.elements.gates import Celu, Gelu, Mish, Selu, Shrink, Softsign, Swish, Threshold, ThresholdedRelu
from bmcompiler.ops.layers.norm import BatchNorm, Scale
from bmcompiler.target import rule

_PLAIN: dict[type[TensorOp], Callable[..., Register]] = {
    Relu: activations.relu,
    HardSwish: activations.hard_swish,
    Mish: activations.mish,
    Softsign: activations.softsign,
    Sign: activations.sign,
    Erf: activations.erf,
    Abs: Recorder.abs,
    Neg: Recorder.neg,
    Exp: exponential.exp,
    Log: exponential.log,
    Sigmoid: exponential.sigmoid,
    Tanh: exponential.tanh,
    Softplus: exponential.softplus,
    Sinh: exponential.sinh,
    Cosh: exponential.cosh,
    Asinh: exponential.asinh,
    Acosh: exponential.acosh,
    Atanh: exponential.atanh,
    Sqrt: powers.sqrt,
    Floor: rounding.floor,
    Ceil: rounding.ceil,
    Round: rounding.round_even,
    Sin: trigonometry.sin,
    Cos: trigonometry.cos,
    Tan: trigonometry.tan,
    Asin: trigonometry.asin,
    Acos: trigonometry.acos,
    Atan: trigonometry.atan,
}
_WITH_ATTRIBUTES: dict[type[TensorOp], tuple[Callable[..., Register], tuple[str, ...]]] = {
    Clip: (activations.clip, ("min", "max")),
    LeakyRelu: (activations.prelu, ("slope",)),
    Elu: (activations.elu, ("alpha",)),
    Selu: (activations.selu, ("alpha", "gamma")),
    Celu: (activations.celu, ("alpha",)),
    Swish: (activations.swish, ("alpha",)),
    HardSigmoid: (activations.hard_sigmoid, ("alpha", "beta")),
    ThresholdedRelu: (activations.thresholded_relu, ("alpha",)),
    Shrink: (activations.shrink, ("threshold", "bias")),
    Threshold: (Recorder.greater, ("threshold",)),
}


class FunctionKernel(ElementwiseKernel[TensorOp]):
    """Functions of one tensor without attributes, or with those of the table; gelu in both forms."""

    ops: tuple[type[TensorOp], ...] = (*_PLAIN, *_WITH_ATTRIBUTES, Gelu)

    def recipe(self, op: TensorOp) -> tuple[Any, ...]:
        if isinstance(op, Gelu):
            return (activations.gelu_tanh if op.approximate == "tanh" else activations.gelu,)
        if type(op) in _PLAIN:
            return (_PLAIN[type(op)],)
        recipe, names = _WITH_ATTRIBUTES[type(op)]
        return (recipe, *(getattr(op, name) for name in names))


class ChannelKernel(ElementwiseKernel[Prelu | Scale | BatchNorm]):
    """prelu, scale and batch_norm: vectors along one axis."""

    ops = (Prelu, Scale, BatchNorm)

    @rule("The first operand must be an activation")
    def data_is_activation(self, op: Prelu | Scale | BatchNorm) -> bool:
        return is_activation(op.operands[0])

    def shapes(self, op: Prelu | Scale | BatchNorm) -> tuple[tuple[int, ...], ...]:
        axis = 1 if isinstance(op, BatchNorm) else op.axis
        after = len(op.type.shape) - axis % len(op.type.shape) - 1
        return (op.operands[0].shape, *((v.shape[0], *(1,) * after) for v in op.operands[1:]))

    def recipe(self, op: Prelu | Scale | BatchNorm) -> tuple[Any, ...]:
        if isinstance(op, Prelu):
            return (activations.prelu,)
        return (_batch_norm, op.epsilon) if isinstance(op, BatchNorm) else (_scale,)


def _scale(m: Recorder, x: Register, weight: Register, *bias: Register) -> Register:
    out = m.mul(x, weight)
    return m.add(out, bias[0]) if bias else out


def _batch_norm(
    m: Recorder, x: Register, gamma: Register, beta: Register, mean: Register, variance: Register, epsilon: float
) -> Register:
    """The factor is worked out in every tile; constant statistics are folded before they come here."""
    factor = m.mul(m.rsqrt(m.add(variance, epsilon)), gamma)
    return m.add(m.mul(m.sub(x, mean), factor), beta)
