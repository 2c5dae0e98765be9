"""Building an integer function with real scales (bm1684.md 7.2): all of its forms together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bmcompiler.ir import Value
from bmcompiler.ir.keys import MODE_NOTE
from bmcompiler.numeric.quant_modes import LOW
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.elementwise import Sub
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.formulas import I8, U8, product_threshold, rescaling, sum_multipliers
from bmcompiler.passes.quantization.scale.formats import Format, format_of, single
from bmcompiler.passes.quantization.scale.layers import Layers, after, within

_WHOLE = 1 << 8
"""What stands for 1 in the multiplier of a refitted operand."""


class ScaleLowering(Layers):
    """Layers (`layers`), and one or two instructions for each of the others."""

    def total(self, op: TensorOp, operands: Sequence[Value]) -> Value:
        """mac_shift with multipliers scale_i / scale of -127..127, which the chip does exactly.

        The first product fits 16 bits, the second is added before the one rounding shift (bm1684.md 6.4).
        """
        signed = [format_of(operands[0]).scale, format_of(operands[1]).scale * (-1 if isinstance(op, Sub) else 1)]
        wanted = within(op, self.wanted(op.result))
        if max(map(abs, signed)) > (I8 + 0.5) * wanted.scale:
            raise NoInt8Form("an operand is more than 127 times as large as the sum")
        if self.is_free(op.result):
            wanted = _fitting(signed, wanted)
        multipliers, shift = sum_multipliers([scale / wanted.scale for scale in signed])
        total = self.emit("mac_shift", operands, {"multipliers": multipliers, "rshift": shift}, wanted)
        return self.emit("relu", [total]) if after(op, wanted) else total

    def product(self, op: TensorOp, operands: Sequence[Value]) -> Value:
        """The product in 16 bits, then one factor; in mode low a single product (`_refitted`).

        Where the target lacks that, one shift and a scale of the result that fits it.
        """
        forms = [self._in_16_bits, self._by_shift]
        if self.modes.get(op) == LOW:
            forms.insert(0, self._refitted)
        return self.first_of([partial(form, op, operands) for form in forms])

    def times(self, op: TensorOp, x: Value, factor: float) -> Value:
        wanted = self.wanted(op.result)
        ratio = format_of(x).scale / wanted.scale * factor
        multiplier, shift = rescaling(abs(ratio), self.factor_limit or I8)
        sign = 1 if ratio >= 0 else -1
        return self.emit("muls_shift", [x], {"multiplier": sign * multiplier, "rshift": shift}, wanted)

    def average(self, op: TensorOp, x: Value, divisor: int, attributes: Mapping[str, Any]) -> Value:
        """The exact sum of the window, rounded once (bm1684.md 6.2).

        Times a multiplier of 8 bits where a free scale of the result takes up what that is off, unless the target is
        faster otherwise (sums of large windows in stages), and in mode low; else, and where the target lacks that,
        times the real factor scale of x / scale of y / positions.
        """
        forms: list[Callable[[], Value]] = [partial(self._by_factor, op, x, divisor, attributes)]
        if self.is_free(op.result):
            forms.insert(0, partial(self.by_multiplier, op, x, divisor, attributes))
            forms.sort(key=self._cycles)
        elif self.modes.get(op) == LOW:
            forms.insert(0, lambda: self._noted(self.by_multiplier(op, x, divisor, attributes)))
        return self.first_of(forms)

    def by_multiplier(self, op: TensorOp, x: Value, divisor: int, attributes: Mapping[str, Any]) -> Value:
        """An average by a multiplier and a shift; a free scale of the result follows from them."""
        wanted = self.wanted(op.result)
        ratio = format_of(x).scale / wanted.scale / divisor
        multiplier, shift = rescaling(ratio, U8)
        if self.is_free(op.result) and multiplier:
            wanted = replace(wanted, scale=single(wanted.scale * ratio * 2.0**shift / multiplier))
        return self.emit("avg_pool", [x], {**attributes, "multiplier": multiplier, "rshift": shift}, wanted)

    def _cycles(self, form: Callable[[], Value]) -> float:
        """What the op that a form makes takes by the target, infinite where it does not say or lacks it."""
        mark, cycles = self.mark(), None
        try:
            made = form().op
            cycles = None if self.target is None or made is None else self.target.local_cycles(made)
        except NoInt8Form:
            pass
        self.rollback(mark)
        return math.inf if cycles is None else cycles

    @staticmethod
    def _noted(value: Value) -> Value:
        """A value of an op that would be another one in other modes than low."""
        assert value.op is not None, "integer values are made by an op"
        value.op.attributes[MODE_NOTE] = LOW
        return value

    def _by_factor(self, op: TensorOp, x: Value, divisor: int, attributes: Mapping[str, Any]) -> Value:
        wanted = self.wanted(op.result)
        factor = single(format_of(x).scale / wanted.scale / divisor)
        return self.emit("avg_pool", [x], {**attributes, "scale": factor}, wanted)

    def _in_16_bits(self, op: TensorOp, operands: Sequence[Value]) -> Value:
        wanted = self.wanted(op.result)
        formats = [format_of(value) for value in operands]
        shift = 1 if all(each.unsigned for each in formats) else 0  # 255 * 255 / 2 fits 16 bits, others do whole
        wide = Format("i16", single(formats[0].scale * formats[1].scale * 2.0**shift))
        exact = self.emit("mul_shift", operands, {"rshift": shift}, wide)
        multiplier, rshift = rescaling(wide.scale / wanted.scale, self.factor_limit or I8)
        return self.emit("muls_shift", [exact], {"multiplier": multiplier, "rshift": rshift}, wanted)

    def _refitted(self, op: TensorOp, operands: Sequence[Value]) -> Value:
        """The smaller operand, mostly a gate, gets the scale for which the product has only to be shifted.

        That scale is less than twice its own: it loses a bit at most, where the shift alone would cost the result one.
        """
        wanted = self.wanted(op.result)
        small = min(operands, key=lambda value: value.type.size)
        have = format_of(small)
        step = math.prod(format_of(value).scale for value in operands)
        shift = math.floor(math.log2(wanted.scale / step))
        if shift < 0:
            raise NoInt8Form("the product has finer steps than its operands")
        multiplier = round(_WHOLE * step * 2.0**shift / wanted.scale)
        if multiplier < _WHOLE:
            fitted = replace(have, scale=single(have.scale * _WHOLE / multiplier))
            rescaled = self.emit("muls_shift", [small], {"multiplier": multiplier, "rshift": 8}, fitted)
            operands = [rescaled if value is small else value for value in operands]
        if self.is_free(op.result):
            wanted = replace(wanted, scale=single(step * _WHOLE / multiplier * 2.0**shift))
        return self._noted(self.emit("mul_shift", operands, {"rshift": shift}, wanted))

    def _by_shift(self, op: TensorOp, operands: Sequence[Value]) -> Value:
        wanted = self.wanted(op.result)
        left, right = (format_of(value).scale for value in operands)
        scale, shift = product_threshold(left * 128, right * 128, wanted.scale * 128)
        return self.emit("mul_shift", operands, {"rshift": shift}, Format(wanted.dtype, single(scale / 128)))


def _fitting(scales: list[float], wanted: Format) -> Format:
    """`wanted`, its scale changed by up to 1 %, so that multipliers of 7 bits stand for the ratios as well as can be.

    A wrong ratio is an error of the whole tensor, a scale that is a little larger costs next to nothing.
    """

    def loss(scale: float) -> float:
        multipliers, shift = sum_multipliers([each / scale for each in scales])
        return sum((each - m * scale / 2.0**shift) ** 2 for each, m in zip(scales, multipliers))

    candidates = [wanted.scale * (1 + step / 2000) for step in range(20)]
    return replace(wanted, scale=single(min(candidates, key=loss)))
