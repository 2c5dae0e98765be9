"""Convolution, inner product, per-channel scaling: integer weights and one of the modes of `quant_modes`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.errors import BMError
from bmcompiler.ir import Operation, Value
from bmcompiler.numeric.quant_modes import ASYMMETRIC
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.base import NoInt8Form, Scaling
from bmcompiler.passes.quantization.scale.base import rule
from bmcompiler.passes.quantization.scale.formats import Format, format_of
from bmcompiler.passes.quantization.scale.layers import Layer, in_range, integer_layer
from bmcompiler.passes.quantization.scale.lowering import ScaleLowering

LAYERS = ("conv", "deconv", "matmul", "scale", "batch_norm")
"""Ops that have modes."""
KEPT = ("strides", "pads", "dilations", "group", "output_pads", "transpose_left", "transpose_right")


@rule("conv", "deconv", scaling=Scaling.FREE)
def convolution(op: TensorOp, low: ScaleLowering) -> Value:
    return _layer(op, low)


@rule("matmul", scaling=Scaling.FREE)
def matmul(op: TensorOp, low: ScaleLowering) -> Value:
    return _layer(op, low) if low.constant(op.right) is not None else _product(op, low)


@rule("scale", scaling=Scaling.FREE)
def scale(op: TensorOp, low: ScaleLowering) -> Value:
    weight = low.need_constant(op.weight, "weight")
    bias = None if op.bias is None else low.need_constant(op.bias, "bias")
    return per_channel(op, low, op.input, weight=weight, bias=bias, axis=op.axis, like=op.weight)


@rule("batch_norm", scaling=Scaling.FREE)
def batch_norm(op: TensorOp, low: ScaleLowering) -> Value:
    gamma, beta, mean, variance = (
        low.need_constant(value, "statistics").astype(np.float64) for value in op.operands[1:]
    )
    weight = gamma / np.sqrt(variance + op.epsilon)
    return per_channel(op, low, op.input, weight=weight, bias=beta - mean * weight, axis=1, like=op.gamma)


def per_channel(
    op: TensorOp,
    low: ScaleLowering,
    source: Value,
    *,
    weight: NDArray[Any],
    bias: NDArray[Any] | None,
    axis: int,
    like: Value | None,
) -> Value:
    """x * weight[c] + bias[c] as a 1x1 depthwise convolution, between reshapes unless x is (N, C, H, W)."""
    x = low.request(source)
    kernel = weight.reshape(-1, 1, 1, 1)

    def attempt(mode: str, wanted: Format) -> Value:
        ints = _integers(op, mode, kernel, bias, x, within(op, wanted), low)
        operands = [low.as_maps(x, axis), *_constants(low, ints, like, None)]
        attributes = {"group": weight.shape[0], **ints.attributes, **after(op, ints.result)}
        out = low.emit("conv", operands, attributes, ints.result)
        _report(op, low, ints)
        return low.as_before(out, x.shape)

    return low.first_of([partial(attempt, *each) for each in low.attempts(op)])


def within(op: Operation, wanted: Format) -> Format:
    """The format with saturation at 6 for relu6."""
    if op.attributes.get("activation") == "relu6" and (wanted.top > 6 or not wanted.unsigned):
        return Format.symmetric(min(wanted.top, 6.0), unsigned=True)
    return wanted


def after(op: Operation, result: Format) -> dict[str, Any]:
    """The activation that is left to the integer op: none where u8 saturates at 0."""
    inside = op.attributes.get("activation")
    return {"activation": "relu"} if inside and not result.unsigned else {}


def kept(op: Operation) -> dict[str, Any]:
    """Attributes that the integer form shares with the float form."""
    return {name: value for name, value in op.attributes.items() if name in KEPT}


def _layer(op: TensorOp, low: ScaleLowering) -> Value:
    """The op itself on integers, its second operand being the weight; in the first mode that the target takes."""
    weights = low.need_constant(op.operands[1], "weight")
    biases = None if op.bias is None else low.need_constant(op.bias, "bias")

    def attempt(mode: str, wanted: Format) -> Value:
        x = low.request(op.operands[0], zero_point=mode == ASYMMETRIC)
        ints = _integers(op, mode, weights, biases, x, within(op, wanted), low)
        operands = [x, *_constants(low, ints, op.operands[1], op.bias)]
        out = low.emit(op.opname, operands, {**kept(op), **ints.attributes, **after(op, ints.result)}, ints.result)
        _report(op, low, ints)
        return out

    return low.first_of([partial(attempt, *each) for each in low.attempts(op) if fits(op, each[0])])


def fits(op: TensorOp, mode: str) -> bool:
    """Whether an op has a mode at all: a transposed convolution is not asymmetric (bmlang.md 3.4)."""
    return mode != ASYMMETRIC or op.opname != "deconv"


def _product(op: TensorOp, low: ScaleLowering) -> Value:
    """A product of two computed tensors: one real factor."""
    if op.bias is not None:
        raise NoInt8Form("a product of two computed tensors takes no bias")
    left, right = low.request(op.left), low.request(op.right)

    def attempt(mode: str, wanted: Format) -> Value:
        result = within(op, wanted)
        factor = in_range(format_of(left).scale * format_of(right).scale / result.scale)
        attributes = {**kept(op), "mode": mode, "scale": factor, **after(op, result)}
        return low.emit("matmul", [left, right], attributes, result)

    return low.first_of([partial(attempt, *each) for each in low.attempts(op) if each[0] != ASYMMETRIC])


def _integers(
    op: TensorOp,
    mode: str,
    weight: NDArray[Any],
    bias: NDArray[Any] | None,
    x: Value,
    wanted: Format,
    low: ScaleLowering,
) -> Layer:
    """`integer_layer`; its error names the layer. Another lowering of the net finds the integers of this one."""
    free = op.attributes.get("activation") != "relu6" and low.is_free(op.result)
    key = (op, mode, format_of(x), wanted, free)
    try:
        if key not in low.layers:
            low.layers[key] = integer_layer(mode, weight, bias, format_of(x), wanted, free=free)
        return low.layers[key]
    except BMError as error:
        raise error.located(layer=op.label, kind=op.short_name) from None


def _constants(low: ScaleLowering, ints: Layer, weight: Value | None, bias: Value | None) -> list[Value]:
    constants = [low.weight(ints.weight, weight, ints.weight_scale)]
    if ints.bias is not None:
        constants.append(low.weight(ints.bias, bias, ints.bias_scale))
    return constants


def _report(op: TensorOp, low: ScaleLowering, ints: Layer) -> None:
    text = f"mode {ints.attributes['mode']}, factor {ints.attributes['scale']:.5g}"
    text += f" -> {ints.result.dtype}, scale {ints.result.scale:.5g}"
    if ints.bias is not None:
        text += f", largest bias {np.abs(ints.bias.astype(np.int64)).max(initial=0)}"
    low.report(op, text)
