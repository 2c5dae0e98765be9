"""Convolution, inner product, per-channel scaling: integer weights and one shift (bm1880.md 11.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.errors import BMError
from bmcompiler.ir import Operation, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.base import NoInt8Form, Scaling, is_constant, rule
from bmcompiler.passes.quantization.formulas import Linear, linear, product_threshold
from bmcompiler.passes.quantization.shift.lowering import Lowering, threshold_of

_MODES = ("strides", "pads", "dilations", "group", "output_pads", "transpose_left", "transpose_right", "activation")


@rule("conv", "deconv", scaling=Scaling.FREE)
def convolution(op: TensorOp, low: Lowering) -> Value:
    return _layer(op, low)


def _matmul_scaling(op: Operation) -> Scaling:
    return Scaling.FREE if is_constant(op.operands[1]) else Scaling.PRODUCT


@rule("matmul", scaling=_matmul_scaling)
def matmul(op: TensorOp, low: Lowering) -> Value:
    if low.constant(op.right) is not None:
        return _layer(op, low)
    if op.bias is not None:
        raise NoInt8Form("a product of two computed tensors takes no bias")
    left, right = low.request(op.left), low.request(op.right)
    threshold, shift = product_threshold(threshold_of(left), threshold_of(right), low.wanted(op.result))
    return low.emit("matmul", [left, right], {**_modes(op), "rshift": shift}, threshold)


@rule("scale", scaling=Scaling.FREE)
def scale(op: TensorOp, low: Lowering) -> Value:
    weight = low.need_constant(op.weight, "weight")
    bias = None if op.bias is None else low.need_constant(op.bias, "bias")
    return per_channel(op, low, op.input, weight=weight, bias=bias, axis=op.axis, like=op.weight)


@rule("batch_norm", scaling=Scaling.FREE)
def batch_norm(op: TensorOp, low: Lowering) -> Value:
    gamma, beta, mean, variance = (
        low.need_constant(value, "statistics").astype(np.float64) for value in op.operands[1:]
    )
    weight = gamma / np.sqrt(variance + op.epsilon)
    return per_channel(op, low, op.input, weight=weight, bias=beta - mean * weight, axis=1, like=op.gamma)


def per_channel(
    op: TensorOp,
    low: Lowering,
    source: Value,
    *,
    weight: NDArray[Any],
    bias: NDArray[Any] | None,
    axis: int,
    like: Value | None,
) -> Value:
    """x * weight[c] + bias[c] as a 1x1 depthwise convolution, between reshapes unless x is (N, C, H, W)."""
    x = low.request(source)
    count = weight.shape[0]
    ints = _linear(op, weight.reshape(count, 1, 1, 1), bias, threshold_of(x), low.wanted(op.result))
    operands = [low.as_maps(x, axis), *_constants(low, ints, like, None)]
    out = low.emit("conv", operands, {"group": count, "rshift": ints.shift}, ints.threshold)
    _report(op, low, ints, threshold_of(x))
    return low.as_before(out, x.shape)


def _layer(op: TensorOp, low: Lowering) -> Value:
    """The op itself on integers, its second operand being the weight."""
    source, weight, bias = op.operands[0], op.operands[1], op.bias
    weights = low.need_constant(weight, "weight")
    biases = None if bias is None else low.need_constant(bias, "bias")
    x = low.request(source)
    ints = _linear(op, weights, biases, threshold_of(x), low.wanted(op.result))
    _report(op, low, ints, threshold_of(x))
    attributes = {**_modes(op), "rshift": ints.shift}
    return low.emit(op.opname, [x, *_constants(low, ints, weight, bias)], attributes, ints.threshold)


def _linear(op: TensorOp, weight: NDArray[Any], bias: NDArray[Any] | None, source: float, wanted: float) -> Linear:
    """`formulas.linear`; its error names the layer."""
    try:
        return linear(weight, bias, source, wanted)
    except BMError as error:
        raise error.located(layer=op.label, kind=op.short_name) from None


def _modes(op: TensorOp) -> dict[str, Any]:
    """What the integer op does as the float op. Raises NoInt8Form for an activation that integers do not have."""
    if op.activation not in ("", "relu"):
        raise NoInt8Form(f"the activation {op.activation} inside an op has no int8 form")
    return {name: value for name, value in op.attributes.items() if name in _MODES}


def _constants(low: Lowering, ints: Linear, weight: Value | None, bias: Value | None) -> list[Value]:
    constants = [low.weight(ints.weight, weight, ints.weight_scale)]
    if ints.bias is not None:
        constants.append(low.weight(ints.bias, bias, ints.bias_scale))
    return constants


def _report(op: TensorOp, low: Lowering, ints: Linear, source: float) -> None:
    magnitudes = np.abs(ints.weight.astype(np.int16))
    text = f"shift {ints.shift}, threshold {source:.5g} -> {ints.threshold:.5g}"
    text += f", largest weight {magnitudes.max(initial=0)}, weights at the limit {np.mean(magnitudes == 127):.2%}"
    text += f", weights rounded to 0 {np.mean(magnitudes == 0):.1%}"
    if ints.bias is not None:
        text += f", largest bias {np.abs(ints.bias.astype(np.int32)).max(initial=0)}"
    low.report(op, text)
