"""Tensors of the scheme "scale" in the function being built: who may have which `Format`, and which mode a layer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from bmcompiler.ir import Function, Module, Operation, TensorType, Value
from bmcompiler.ir.keys import FLOAT_NOTE
from bmcompiler.numeric import quant_modes
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.numeric.quant_modes import ASYMMETRIC, HIGH, LOW
from bmcompiler.passes.quantization.base import NoInt8Form, is_constant
from bmcompiler.passes.quantization.forms import Forms
from bmcompiler.passes.quantization.formulas import I8, U8, rescaling
from bmcompiler.passes.quantization.plan import Plan
from bmcompiler.passes.quantization.rounding import WeightRounding
from bmcompiler.passes.quantization.scale.formats import Format, format_of
from bmcompiler.target import Target


class Tensors(Forms[Format]):
    """Formats are `Format`s; what stays in float needs no host CPU.

    unsigned: values of the old function that become u8. modes: chosen for layers; where the target refuses that mode,
    the next one that it takes is used. wide: results of layers that may have 16 bits. layers: integers of layers made
    so far, for lowerings of one net to share.
    """

    asked_for_io = True
    rounding: Mapping[str, Any] = {"rounding": "even"}
    factor_limit = 0
    """The largest multiplier of an integer tensor; 0: that of a byte."""

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
        layers: dict[Hashable, Any] | None = None,
        rounder: WeightRounding | None = None,
    ) -> None:
        self.layers = {} if layers is None else layers
        self.unsigned, self.modes, self.wide = unsigned, modes or {}, wide or set()
        super().__init__(module, function, plan, target, integer_io, rounder)

    def modes_of(self, op: Operation) -> tuple[str, ...]:
        """Modes to try for a layer: the chosen one, then the others from the most exact.

        Results of 16 bits have one factor: sums have no more bits, which factors of channels would leave unused.
        """
        chosen = self.modes.get(op, HIGH)
        if chosen == CHANNEL and op.results[0] in self.wide:
            chosen = HIGH
        return tuple(dict.fromkeys((chosen, HIGH, LOW)))

    def in_mode(self, op: Operation, mode: str) -> bool:
        """What cannot have factors of channels is in the mode high instead."""
        instead = mode == CHANNEL and self.modes.get(op) == CHANNEL and super().in_mode(op, HIGH)
        return instead or super().in_mode(op, mode)

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
            or (user in self.plan.keeping and not all(map(self.is_free, user.results)))
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

    def of_constant(self, array: Array) -> Format:
        return Format.symmetric(peak_of(array))

    def integers(self, array: Array, wanted: Format) -> Array:
        return quant_modes.quantize_away(array, wanted.scale, wanted.dtype, wanted.zero_point)

    def meanings(self, format: Format) -> Floats:
        return quant_modes.dequantize(format.codes(), format.scale, format.zero_point)

    def top(self, format: Format) -> float:
        return format.top

    def table_format(self, value: Value, reals: Array) -> Format:
        """Where only layers read a value that take a zero point, it has one if its values are not symmetric."""
        wanted = self.wanted(value)
        return tight(np.asarray(reals, np.float32), wanted) if self.may_have_zero_point(value) else wanted

    def request(self, value: Value, wanted: Format | None = None, *, zero_point: bool = False) -> Value:
        """As in `Building`; a value with a zero point is made symmetric again unless the caller can do with it."""
        found = super().request(value, wanted)
        if wanted is None and not zero_point and format_of(found).zero_point:
            return super().request(value, self.wanted(value))
        return found

    def takes_zero_point(self, layer: Operation) -> bool:
        """Whether a layer takes a zero point of its input: in the asymmetric mode."""
        return self.modes.get(layer) == ASYMMETRIC

    def may_have_zero_point(self, value: Value) -> bool:
        """Whether only layers read a value that take its zero point."""
        return value not in self.unsigned | self.plan.exact and all(
            user.short_name in ("conv", "matmul")
            and self.takes_zero_point(user)
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
            table = self.constant_in(self.integers(self.meanings(have), wanted), None, wanted)
            return self.emit("lut", [value, table], {}, wanted)
        limit = self.factor_limit or (U8 if have.unsigned == wanted.unsigned else I8)
        multiplier, shift = rescaling(have.scale / wanted.scale, limit)
        return self.emit("muls_shift", [value], {"multiplier": multiplier, "rshift": shift}, wanted)

    def note_float(self, op: Operation, reason: str) -> None:
        op.attributes[FLOAT_NOTE] = reason

    def first_of(self, attempts: Sequence[Any]) -> Value:
        """The result of the first function of no arguments that does not raise NoInt8Form; else the first reason."""
        reasons = []
        for attempt in attempts:
            mark = self.mark()
            try:
                return attempt()
            except NoInt8Form as reason:
                self.rollback(mark)
                reasons.append(str(reason))
        raise NoInt8Form(reasons[0])


def tight(values: Array, wanted: Format) -> Format:
    """`wanted`, or the format with a zero point whose steps are smaller by a quarter or more."""
    within = np.clip(values, -wanted.top, wanted.top)
    bottom, top = min(float(within.min()), 0.0), max(float(within.max()), 0.0)
    spanning = Format.spanning(bottom, top) if top > bottom else wanted
    return spanning if spanning.scale <= 0.75 * wanted.scale else wanted


def peak_of(array: Array) -> float:
    """The largest finite magnitude of a constant, 1 for zeros: its threshold."""
    return float(np.abs(array).max(initial=0.0, where=np.isfinite(array))) or 1.0
