"""Building an integer function with a scale for each output channel: the scheme "scale" with other layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.ir import Operation, Value
from bmcompiler.numeric import factors
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.nn import Matmul
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.channel.integer_layer import channel_layer
from bmcompiler.passes.quantization.formulas import I16, U8, rescaling
from bmcompiler.passes.quantization.scale.formats import Format, format_of, single
from bmcompiler.passes.quantization.scale.integer_layer import Layer
from bmcompiler.passes.quantization.scale.layers import after, kept, within
from bmcompiler.passes.quantization.scale.lowering import ScaleLowering


class ChannelLowering(ScaleLowering):
    """Layers in the mode channel, which take zero points; factors of other ops have 15 bits."""

    factor_limit = I16

    def modes_of(self, op: Operation) -> tuple[str, ...]:
        return (CHANNEL,)

    def takes_zero_point(self, user: Operation) -> bool:
        return True

    def integers_of(
        self,
        op: TensorOp,
        mode: str,
        weight: NDArray[Any],
        bias: NDArray[Any] | None,
        source: Format,
        wanted: Format,
        *,
        free: bool,
    ) -> Layer:
        return channel_layer(op, weight, bias, source, wanted)

    def matrix_product(self, op: Matmul, left: Value, right: Value) -> Value:
        """One factor for all columns."""
        result = within(op, self.wanted(op.result))
        try:
            rows = factors.apart(format_of(left).scale * format_of(right).scale / result.scale)
        except ValueError as error:
            raise NoInt8Form(str(error)) from None
        bias = self.weight(np.zeros(op.type.shape[-1], np.int32), None)
        operands = [left, right, bias, self.weight(rows, None)]
        return self.emit("matmul", operands, {**kept(op), "mode": CHANNEL, **after(op, result)}, result)

    def average(self, op: TensorOp, x: Value, divisor: int, attributes: Mapping[str, Any]) -> Value:
        """Sum of the window times a multiplier of 8 bits; a free scale of the result takes up what that is off."""
        wanted = self.wanted(op.result)
        ratio = format_of(x).scale / wanted.scale / divisor
        multiplier, shift = rescaling(ratio, U8)
        if self.is_free(op.result) and multiplier:
            wanted = replace(wanted, scale=single(wanted.scale * ratio * 2.0**shift / multiplier))
        return self.emit("avg_pool", [x], {**attributes, "multiplier": multiplier, "rshift": shift}, wanted)

    def constants_of(self, ints: Layer, weight: Value | None, bias: Value | None) -> list[Value]:
        rows = ints.factors
        assert rows is not None
        return [*super().constants_of(ints, weight, bias), self.weight(rows, None)]
