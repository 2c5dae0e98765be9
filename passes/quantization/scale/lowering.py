"""Building an integer function with real scales (bm1684.md 7.2): one element type and scale per tensor."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.ir import Function, Module, Operation, TensorType, Value
from bmcompiler.ir.keys import FLOAT_NOTE
from bmcompiler.numeric import quant_modes
from bmcompiler.numeric.quant_modes import ASYMMETRIC, LOW
from bmcompiler.passes.quantization.base import NoInt8Form, is_constant
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.formulas import I8, U8, rescaling
from bmcompiler.passes.quantization.plan import Plan
from bmcompiler.passes.quantization.scale.formats import Format, format_of
from bmcompiler.passes.quantization.scale.layers import Layer
from bmcompiler.target import Target

KEEPING = frozenset(("max_pool", "relu", "reshape", "permute", "slice", "split", "upsample", "tile", "pad"))
"""Ops whose results have the format of their operand."""


class ScaleLowering(Building[Format]):
    """Formats are `Format`s; what stays in float needs no host CPU.

    unsigned: values of the old function that become u8. modes: chosen for layers; where the target refuses that mode,
    the next one that it takes is used. wide: results of layers that may have 16 bits. layers: integers of layers made
    so far, for lowerings of one net to share.
    """

    rounding: Mapping[str, Any] = {"rounding": "away"}

    def __init__(
        self,
        module: Module,
        function: Function,
        plan: Plan,
        target: Target | None,
        *,
        unsigned: set[Value],
        modes: Mapping[Operation, str] | None = None,
        wide: set[Value] | None = None,
        integer_io: bool = False,
        layers: dict[Hashable, Layer] | None = None,
    ) -> None:
        self.layers = {} if layers is None else layers
        self.unsigned, self.modes, self.wide = unsigned, modes or {}, wide or set()
        super().__init__(module, function, plan, target, integer_io)

    def modes_of(self, op: Operation) -> tuple[str, ...]:
        """Modes to try for a layer: the chosen one, then the others from the most exact."""
        chosen = self.modes.get(op, "high")
        return tuple(dict.fromkeys((chosen, "high", "low")))

    def attempts(self, op: Operation) -> list[tuple[str, Format]]:
        """(mode, format of the result) to try for a layer, best first: 16 bits where they are of use."""
        found = []
        narrow = self.wanted(op.results[0])
        for mode in self.modes_of(op):
            if op.results[0] in self.wide and mode != LOW:
                found.append((mode, Format.wide(self.plan.thresholds[op.results[0]])))
            found.append((mode, narrow))
        return found

    def is_free(self, value: Value) -> bool:
        """Whether a value of the old function may get another scale: no op downstream shares it between operands."""
        if value in self.plan.exact:
            return False
        return not any(
            user in self.plan.joined
            or user in self.plan.saturating
            or (user.short_name in KEEPING and not all(map(self.is_free, user.results)))
            for user in value.users
        )

    def wanted(self, value: Value) -> Format:
        return Format.symmetric(self.plan.thresholds[value], unsigned=value in self.unsigned)

    def format_of(self, value: Value) -> Format:
        return format_of(value)

    def type_of(self, shape: Sequence[int], wanted: Format) -> TensorType:
        return wanted.type_of(shape)

    def same(self, a: Format, b: Format) -> bool:
        return a.same(b)

    def of_constant(self, array: NDArray[Any]) -> Format:
        return Format.symmetric(peak_of(array))

    def integers(self, array: NDArray[Any], wanted: Format) -> NDArray[Any]:
        return quant_modes.quantize_away(array, wanted.scale, wanted.dtype, wanted.zero_point)

    def request(self, value: Value, wanted: Format | None = None, *, zero_point: bool = False) -> Value:
        """As in `Building`; a value with a zero point is made symmetric again unless the caller can do with it."""
        found = super().request(value, wanted)
        if wanted is None and not zero_point and format_of(found).zero_point:
            return super().request(value, self.wanted(value))
        return found

    def may_have_zero_point(self, value: Value) -> bool:
        """Whether only layers in the asymmetric mode read a value, which take it as it is."""
        return value not in self.unsigned | self.plan.exact and all(
            user.short_name in ("conv", "matmul")
            and self.modes.get(user) == ASYMMETRIC
            and user.operands[0] is value
            and all(map(is_constant, user.operands[1:]))
            for user in value.users
        )

    def rescale(self, value: Value, wanted: Format) -> Value:
        """One muls_shift; its multiplier counts as signed where the signs of operand and result differ.

        Between zero points a table.
        """
        have = format_of(value)
        if have.zero_point or wanted.zero_point:
            table = self.integers(quant_modes.dequantize(have.codes(), have.scale, have.zero_point), wanted)
            return self.emit("lut", [value, self.constant_in(table, None, wanted)], {}, wanted)
        limit = U8 if have.unsigned == wanted.unsigned else I8
        multiplier, shift = rescaling(have.scale / wanted.scale, limit)
        return self.emit("muls_shift", [value], {"multiplier": multiplier, "rshift": shift}, wanted)

    def note_float(self, op: Operation, reason: str) -> None:
        op.attributes[FLOAT_NOTE] = reason

    def constant_in(self, integers: NDArray[Any], like: Value | None, format: Format) -> Value:
        """A constant of integers that are in `format` already."""
        value = self.weight(integers, like)
        value.type = format.type_of(value.shape)
        return value

    def first_of(self, attempts: Sequence[Any]) -> Value:
        """The result of the first function of no arguments that does not raise NoInt8Form; else the first reason."""
        reasons = []
        for attempt in attempts:
            mark = self.mark()
            try:
                result: Value = attempt()
                return result
            except NoInt8Form as reason:
                self.rollback(mark)
                reasons.append(str(reason))
        raise NoInt8Form(reasons[0])


def peak_of(array: NDArray[Any]) -> float:
    """The largest finite magnitude of a constant, 1 for zeros: its threshold."""
    return float(np.abs(array).max(initial=0.0, where=np.isfinite(array))) or 1.0
