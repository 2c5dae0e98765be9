"""Convolution, inner product, scaling per channel: integer weights and one shift (bm1880.md 11.2)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bmcompiler.errors import BMError
from bmcompiler.ir import Value
from bmcompiler.ir.keys import WEIGHT_SHIFT
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.layers.nn import Convolution, Matmul
from bmcompiler.ops.shared import Activated
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.forms import Affine
from bmcompiler.passes.quantization.formulas import Linear, linear, product_threshold
from bmcompiler.passes.quantization.shift.formats import OF_BYTES, threshold_of
from bmcompiler.passes.quantization.shift.two_terms import TwoTerms
from bmcompiler.passes.rewriting import producer

_MODES = ("strides", "pads", "dilations", "group", "output_pads", "transpose_left", "transpose_right", "activation")


class Layers(TwoTerms):
    """Layers and matrix products."""

    def layer(self, op: Convolution | Matmul, weight: Array, bias: Array | None) -> Value:
        x = self.request(op.operands[0])
        shift = op.attributes.get(WEIGHT_SHIFT)
        source, wanted = threshold_of(x), self.wanted(op.result)
        key = op, source, wanted, shift
        if key not in self.layers:
            self.layers[key] = _linear(op, weight, bias, source, wanted, shift)
        ints: Linear = self.layers[key]
        attributes = _modes(op)
        doubled = self.in_two_terms(op, weight, bias, ints, attributes)
        if doubled is None:
            ints = replace(ints, weight=self.rounded(op, weight, ints.weight, ints.weight_scale))
        self.report(op, partial(_told, ints, source))
        if doubled is not None:
            return doubled
        operands = [x, *self.layer_constants(ints, op.operands[1], op.bias)]
        return self.emit(op.opname, operands, {**attributes, "rshift": ints.shift}, ints.threshold)

    def per_channel(self, op: TensorOp, affine: Affine) -> Value:
        """A 1x1 depthwise convolution, between reshapes unless the operand is (N, C, H, W)."""
        if op.attributes.get("activation"):
            raise NoInt8Form("a sum with an activation inside has no int8 form")
        pixels = producer(affine.source, Cast)
        if pixels is not None and pixels.operands[0].dtype == "u8":
            x, source = self.real(pixels.operands[0]), OF_BYTES
        else:
            x = self.request(affine.source)
            source = threshold_of(x)
        kernel = affine.weight.reshape(-1, 1, 1, 1)
        ints = _linear(op, kernel, affine.bias, source, self.wanted(op.result))
        operands = [self.as_maps(x, affine.axis), *self.layer_constants(ints, affine.like, None)]
        out = self.emit("conv", operands, {"group": len(kernel), "rshift": ints.shift}, ints.threshold)
        self.report(op, partial(_told, ints, source))
        return self.as_before(out, x.shape)

    def matrix_product(self, op: Matmul, left: Value, right: Value) -> Value:
        threshold, shift = product_threshold(threshold_of(left), threshold_of(right), self.wanted(op.result))
        return self.emit("matmul", [left, right], {**_modes(op), "rshift": shift}, threshold)


def _told(ints: Linear, source: float) -> str:
    """What the user should know of a layer."""
    magnitudes = np.abs(ints.weight.astype(np.int16))
    text = f"shift {ints.shift}, threshold {source:.5g} -> {ints.threshold:.5g}"
    text += f", largest weight {magnitudes.max(initial=0)}, weights at the limit {np.mean(magnitudes == 127):.2%}"
    text += f", weights rounded to 0 {np.mean(magnitudes == 0):.1%}"
    if ints.bias is not None:
        text += f", largest bias {np.abs(ints.bias.astype(np.int32)).max(initial=0)}"
    return text


def _linear(
    op: TensorOp,
    weight: Array,
    bias: Array | None,
    source: float,
    wanted: float,
    shift: int | None = None,
) -> Linear:
    """`formulas.linear`; its error names the layer."""
    try:
        return linear(weight, bias, source, wanted, shift)
    except BMError as error:
        raise error.located(layer=op.label, kind=op.short_name) from None


def _modes(op: Activated) -> dict[str, Any]:
    """What the integer op does as the float op. Raises NoInt8Form for an activation that integers do not have."""
    if op.activation not in ("", "relu"):
        raise NoInt8Form(f"the activation {op.activation} inside an op has no int8 form")
    return {name: value for name, value in op.attributes.items() if name in _MODES}
