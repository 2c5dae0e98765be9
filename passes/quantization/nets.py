"""The integer nets of one function: lowered op by op, until no op is an integer or a float for another's sake alone."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.carrying import carry_macs, need_of
from bmcompiler.ir.keys import EXACT, INTEGER_WEIGHTS, THRESHOLD_SOURCE
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.precision.calibrate import thresholds
from bmcompiler.passes.quantization.base import Conversion, NoInt8Form, Scaling, is_constant
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.islands import pointless_islands
from bmcompiler.passes.quantization.scheme import Scheme, Start
from bmcompiler.passes.quantization.shift.scheme import Shifts
from bmcompiler.target import Target

if TYPE_CHECKING:
    from bmcompiler.passes.quantization.rounding import WeightRounding
    from bmcompiler.passes.quantization.scale.scheme import Scales

Lowered = tuple[Building[Any], set[Operation]]
"""The net that was built, and the ops of the float function that became integers."""


@dataclass(frozen=True)
class Nets:
    """Lowers one function, and keeps what its nets share: integers of layers, and nets, by what they depend on.

    scales: the scheme, if its scales are real numbers; else that of shifts. strict: keep all thresholds of a table.
    """

    module: Module
    function: Function
    target: Target | None
    scales: type[Scales] | None
    strict: bool
    _layers: dict[Hashable, Any] = field(default_factory=dict)
    _known: dict[Hashable, Lowered] = field(default_factory=dict)

    def nearest(self, modes: Mapping[Operation, str], in_float: Mapping[Operation, str]) -> Lowered:
        """The net with the nearest integers and float borders, made once; an op without mode is in float."""
        ops = [op for op in self.function.ops if op.operands and op.results]
        levels = tuple(thresholds(self.function).values())
        ways = {op: None if op in in_float else modes.get(op) for op in ops}
        key = levels, tuple(ways.values())
        if key not in self._known:
            scheme: Scheme = (
                self.scales(modes, layers=self._layers) if self.scales else Shifts(modes, layers=self._layers)
            )
            floats = {**in_float, **{op: "" for op in ops if op not in modes and op not in in_float}}
            low, accepted = self._settled(scheme, floats)
            refused = levels, tuple(ways[op] if op in accepted else None for op in ops)
            self._known[key] = self._known.setdefault(refused, (low, accepted))
        return self._known[key]

    def final(
        self,
        modes: Mapping[Operation, str],
        in_float: Mapping[Operation, str],
        rounder: WeightRounding | None,
        *,
        integer_io: bool,
        other_biases: bool = False,
    ) -> Lowered:
        """The net as it is to be. other_biases: than those of the layers that are known."""
        layers = {} if other_biases else self._layers
        scheme: Scheme = (
            self.scales(modes, integer_io, layers=layers, rounder=rounder)
            if self.scales
            else Shifts(modes, rounder, layers)
        )
        return self._settled(scheme, dict(in_float))

    def _settled(self, scheme: Scheme, in_float: dict[Operation, str]) -> Lowered:
        """Lower until no island is left and nothing can be widened."""
        while True:
            low, accepted = self._lower(scheme, in_float)
            pointless = pointless_islands(self.function, accepted)
            if not pointless and not scheme.widen(self.function, accepted):
                return low, accepted
            in_float.update(dict.fromkeys(pointless, scheme.island))

    def _lower(self, scheme: Scheme, in_float: Mapping[Operation, str]) -> Lowered:
        """Build the integer function with the ops of `in_float` in float."""
        function = self.function

        def conversion_of(op: Operation) -> Conversion | None:
            found = scheme.conversions.of(type(op)) if op not in in_float and EXACT not in op.attributes else None
            return found if found is not None and found.knows(op) else None

        def scaling(op: Operation) -> Scaling:
            conversion = conversion_of(op)
            return Scaling.FREE if conversion is None else conversion.scaling(op)

        strict = self.strict or INTEGER_WEIGHTS in function.attributes
        exact = {r for op in function.ops for r in op.results if strict and THRESHOLD_SOURCE in op.attributes}
        low = scheme.start(Start(self.module, function, thresholds(function), scaling, exact, self.target))
        accepted: set[Operation] = set()
        for op in function.ops[:-1]:
            if op.results and is_constant(op.results[0]):
                continue
            low.location = op.location
            found, before = conversion_of(op), len(low.new.ops)
            reason = in_float.get(op) or cast("str | None", op.attributes.get(EXACT))
            reason = reason or (_unconverted(op) if found is None else _apply(found, cast(TensorOp, op), low))
            if reason is None:
                accepted.add(op)
            else:
                low.in_float(op, reason)
            low.made[op] = low.new.ops[before:]
            carry_macs([need_of(op)], low.made[op])
        low.finish(function)
        return low, accepted


def _unconverted(op: Operation) -> str:
    types = {v.dtype for v in (*op.operands, *op.results)} - {"f32"}
    return f"'{op.short_name}' has no int8 form" + (f" for {', '.join(sorted(types))}" if types else "")


def _apply(conversion: Conversion, op: TensorOp, low: Building[Any]) -> str | None:
    """Lower one op; when that is impossible, nothing is left behind and the reason is returned."""
    mark = low.mark()
    try:
        results = conversion.build(op, low)
        low.accept(op, [results] if isinstance(results, Value) else results)
    except NoInt8Form as reason:
        low.rollback(mark)
        return str(reason)
    return None
