"""Building an integer function with a scale for each output channel: the scheme "scale" with other layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bmcompiler.ir import Operation, Value
from bmcompiler.numeric import factors
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.elementwise import Sub
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.channel.integer_layer import WeightRows, channel_layer
from bmcompiler.passes.quantization.formulas import I16, MAX_MAC_SHIFT
from bmcompiler.passes.quantization.scale.formats import Format, format_of
from bmcompiler.passes.quantization.scale.integer_layer import Layer
from bmcompiler.passes.quantization.scale.layers import Real, after, kept, within
from bmcompiler.passes.quantization.scale.lowering import ScaleLowering


class ChannelLowering(ScaleLowering):
    """Layers in the mode channel, which take zero points; factors of other ops have 15 bits."""

    factor_limit = I16
    rounding: Mapping[str, Any] = {"rounding": "away"}

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.stated: Mapping[Value, Format] = {}
        super().__init__(*arguments, **named)

    def state(self, formats: Mapping[Value, Format]) -> None:
        """Formats that values of the old function have whatever else the plan says; integer inputs get theirs."""
        self.stated = formats
        for old, new in self.ints.items():
            if old in formats:
                new.type = formats[old].type_of(new.shape)

    def wanted(self, value: Value) -> Format:
        return self.stated.get(value) or super().wanted(value)

    def may_have_zero_point(self, value: Value) -> bool:
        return value not in self.stated and super().may_have_zero_point(value)

    def request(self, value: Value, wanted: Format | None = None, *, zero_point: bool = True) -> Value:
        """Zero points stay: what cannot do with them asks for `symmetric`."""
        return super().request(value, wanted, zero_point=zero_point)

    def symmetric(self, value: Value) -> Value:
        """An integer value without zero point: by a table, where it has one."""
        have = format_of(value)
        if not have.zero_point:
            return value
        limits = np.iinfo(value.type.numpy)
        reach = max(have.zero_point - int(limits.min), int(limits.max) - have.zero_point)
        return self.rescale(value, Format.symmetric(reach * have.scale))

    def modes_of(self, op: Operation) -> tuple[str, ...]:
        return (CHANNEL,)

    def takes_zero_point(self, user: Operation) -> bool:
        return True

    def integers_of(self, op: TensorOp, mode: str, real: Real, source: Format, wanted: Format, *, free: bool) -> Layer:
        weight, bias = real
        key = op, weight.shape
        if key not in self.layers:
            self.layers[key] = WeightRows(op, weight)
        return channel_layer(op, weight, bias, source, wanted, exact=op.result in self.stated, rows=self.layers[key])

    def matrix_product(self, op: Matmul, left: Value, right: Value) -> Value:
        """One factor for all columns."""
        left, right = self.symmetric(left), self.symmetric(right)
        result = within(op, self.wanted(op.result))
        try:
            rows = factors.apart(format_of(left).scale * format_of(right).scale / result.scale)
        except ValueError as error:
            raise NoInt8Form(str(error)) from None
        bias = self.weight(np.zeros(op.type.shape[-1], np.int32), None)
        operands = [left, right, bias, self.weight(rows, None)]
        attributes = {**kept(op), "mode": CHANNEL, **after(op, result)}
        if result.zero_point:
            attributes["zero_points"] = (0, 0, result.zero_point)
        return self.emit("matmul", operands, attributes, result)

    def total(self, op: TensorOp, operands: Sequence[Value]) -> Value:
        """With zero points, or with a stated format, a weighted sum with a constant and multipliers of 15 bits."""
        wanted = within(op, self.wanted(op.result))
        formats = [format_of(value) for value in operands]
        if not (wanted.zero_point or any(each.zero_point for each in formats) or op.result in self.stated):
            return super().total(op, operands)
        signs = (1, -1 if isinstance(op, Sub) else 1)
        ratios = [sign * each.scale / wanted.scale for sign, each in zip(signs, formats)]
        shift = next((s for s in range(MAX_MAC_SHIFT, -1, -1) if max(map(abs, ratios)) * 2.0**s <= I16), None)
        if shift is None:
            raise NoInt8Form("an operand is many times as large as the sum")
        multipliers = tuple(round(ratio * 2.0**shift) for ratio in ratios)
        value = wanted.zero_point << shift
        value -= sum(multiplier * each.zero_point for multiplier, each in zip(multipliers, formats))
        attributes = {"multipliers": multipliers, "rshift": shift, "value": value}
        summed = self.emit("affine_sum", operands, attributes, wanted)
        return self.emit("relu", [summed]) if after(op, wanted) else summed

    def product(self, op: TensorOp, operands: Sequence[Value]) -> Value:
        if self.wanted(op.result).zero_point:
            raise NoInt8Form("the model states a zero point for a product of two tensors")
        return super().product(op, [self.symmetric(value) for value in operands])

    def times(self, op: TensorOp, x: Value, factor: float) -> Value:
        if self.wanted(op.result).zero_point:
            raise NoInt8Form("the model states a zero point for a multiple of a tensor")
        return super().times(op, self.symmetric(x), factor)

    def average(self, op: TensorOp, x: Value, divisor: int, attributes: Mapping[str, Any]) -> Value:
        """Sum of the window times a multiplier of 8 bits; a free scale of the result takes up what that is off.

        With a stated format, a depthwise convolution by ones, whose factor has 31 bits.
        """
        if op.result in self.stated or format_of(x).zero_point:
            return self._average_by_ones(op, x, divisor, attributes)
        return self.by_multiplier(op, x, divisor, attributes)

    def _average_by_ones(self, op: TensorOp, x: Value, divisor: int, attributes: Mapping[str, Any]) -> Value:
        if attributes.get("ceil_mode"):
            raise NoInt8Form("windows that reach beyond the padding have no form with zero points")
        source, wanted, channels = format_of(x), self.wanted(op.result), x.shape[1]
        ones = self.weight(np.ones((channels, 1, *attributes["kernel"]), np.int8), None)
        rows = np.repeat(factors.apart(source.scale / divisor / wanted.scale), channels, axis=0)
        operands = [x, ones, self.weight(np.zeros(channels, np.int32), None), self.weight(rows, None)]
        shape = {name: attributes[name] for name in ("strides", "pads") if name in attributes}
        points = (source.zero_point, 0, wanted.zero_point)
        given = {"mode": CHANNEL, "group": channels, **shape, **({"zero_points": points} if any(points) else {})}
        return self.emit("conv", operands, given, wanted)
