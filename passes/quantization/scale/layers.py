"""Convolution, inner product, scaling per channel: integer weights and one of the modes of `quant_modes`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.errors import BMError
from bmcompiler.ir import Operation, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.numeric.quant_modes import ASYMMETRIC
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Convolution, Deconv, Matmul
from bmcompiler.ops.modes import WITH_ZERO_POINTS
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.forms import Affine
from bmcompiler.passes.quantization.formulas import I8
from bmcompiler.passes.quantization.scale.factored_layer import factored_layer
from bmcompiler.passes.quantization.scale.formats import Format, format_of
from bmcompiler.passes.quantization.scale.integer_layer import Layer, in_range, integer_layer
from bmcompiler.passes.quantization.scale.tensors import Tensors

_KEPT = ("strides", "pads", "dilations", "group", "output_pads", "transpose_left", "transpose_right")


class Real(NamedTuple):
    """Weights and bias of a layer of floats."""

    weight: Array
    bias: Array | None


class Layers(Tensors):
    """Layers and matrix products, each in the first mode that the target takes."""

    def layer(self, op: Convolution | Matmul, weight: Array, bias: Array | None) -> Value:
        def attempt(mode: str, wanted: Format) -> Value:
            x = self.request(op.operands[0], zero_point=mode in WITH_ZERO_POINTS and self.takes_zero_point(op))
            ints = self._integers(op, mode, Real(weight, bias), x, within(op, wanted))
            operands = [x, *self.constants_of(ints, op.operands[1], op.bias)]
            attributes = {**kept(op), **ints.attributes, **after(op, ints.result)}
            out = self.emit(op.opname, operands, attributes, ints.result)
            self.report(op, partial(_told, ints))
            return out

        return self.first_of([partial(attempt, *each) for each in self.attempts(op) if _fits(op, each[0])])

    def per_channel(self, op: TensorOp, affine: Affine) -> Value:
        """A 1x1 depthwise convolution, between reshapes unless the operand is (N, C, H, W)."""
        x = self.request(affine.source)
        kernel = affine.weight.reshape(-1, 1, 1, 1)

        def attempt(mode: str, wanted: Format) -> Value:
            ints = self._integers(op, mode, Real(kernel, affine.bias), x, within(op, wanted))
            operands = [self.as_maps(x, affine.axis), *self.constants_of(ints, affine.like, None)]
            attributes = {"group": len(kernel), **ints.attributes, **after(op, ints.result)}
            out = self.emit("conv", operands, attributes, ints.result)
            self.report(op, partial(_told, ints))
            return self.as_before(out, x.shape)

        return self.first_of([partial(attempt, *each) for each in self.attempts(op)])

    def matrix_product(self, op: Matmul, left: Value, right: Value) -> Value:
        """One real factor for all columns."""

        def attempt(mode: str, wanted: Format) -> Value:
            result = within(op, wanted)
            factor = in_range(format_of(left).scale * format_of(right).scale / result.scale)
            attributes = {**kept(op), "mode": mode, "scale": factor, **after(op, result)}
            return self.emit("matmul", [left, right], attributes, result)

        return self.first_of([partial(attempt, *each) for each in self.attempts(op) if each[0] not in WITH_ZERO_POINTS])

    def _integers(self, op: TensorOp, mode: str, real: Real, x: Value, wanted: Format) -> Layer:
        """`integers_of`; its error names the layer. Another lowering of the net finds the integers of this one."""
        free = op.attributes.get("activation") != "relu6" and self.is_free(op.result)
        key = (op, mode, format_of(x), wanted, free)
        try:
            if key not in self.layers:
                self.layers[key] = self.integers_of(op, mode, real, format_of(x), wanted, free=free)
            ints = self.layers[key]
            return replace(ints, weight=self.rounded(op, real.weight, ints.weight, ints.weight_scale))
        except BMError as error:
            raise error.located(layer=op.label, kind=op.short_name) from None

    def constants_of(self, ints: Layer, weight: Value | None, bias: Value | None) -> list[Value]:
        """The operands of an integer layer behind its data, named like those of the old one."""
        constants = (ints.weight, weight, ints.weight_scale), (ints.bias, bias, ints.bias_scale)
        return self.all_weights(*constants, (ints.factors, None, None))

    def integers_of(self, op: TensorOp, mode: str, real: Real, source: Format, wanted: Format, *, free: bool) -> Layer:
        """The integers of a layer in a mode; `free`: the result may have another scale."""
        if mode == CHANNEL:
            return factored_layer(op, real.weight, real.bias, source, wanted)
        return integer_layer(mode, real.weight, real.bias, source, wanted, free=free)


def within(op: Operation, wanted: Format) -> Format:
    """The format with saturation at 6 for relu6."""
    if op.attributes.get("activation") == "relu6" and (wanted.top > 6 or not wanted.unsigned):
        return Format.symmetric(min(wanted.top, 6.0), unsigned=True)
    return wanted


def after(op: Operation, result: Format) -> dict[str, Any]:
    """The activation that is left to the integer op: none where its type begins at what stands for 0."""
    inside = op.attributes.get("activation")
    if inside and result.zero_point:
        if result.zero_point != (0 if result.unsigned else -I8 - 1):
            raise NoInt8Form(f"an activation at the zero point {result.zero_point} has no integer form")
        return {}
    return {"activation": "relu"} if inside and not result.unsigned else {}


def kept(op: Operation) -> dict[str, Any]:
    """Attributes that the integer form shares with the float form."""
    return {name: value for name, value in op.attributes.items() if name in _KEPT}


def _fits(op: TensorOp, mode: str) -> bool:
    """Whether an op has a mode at all: a transposed convolution is not asymmetric (bmlang.md 3.4)."""
    return mode != ASYMMETRIC or not isinstance(op, Deconv)


def _told(ints: Layer) -> str:
    """What the user should know of a layer."""
    text = f"mode {ints.attributes['mode']}"
    if "scale" in ints.attributes:
        text += f", factor {ints.attributes['scale']:.5g}"
    text += f" -> {ints.result.dtype}, scale {ints.result.scale:.5g}"
    if ints.bias is not None:
        text += f", largest bias {np.abs(ints.bias.astype(np.int64)).max(initial=0)}"
    return text
