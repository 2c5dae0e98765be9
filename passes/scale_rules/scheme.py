"""Real scales as a scheme of the pass quantize: rules, plan and builder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.passes.quantize_rules.plan import make_plan
from bmcompiler.passes.quantize_rules.scheme import Scalings, array_of
from bmcompiler.passes.scale_rules import SCALE_RULES
from bmcompiler.passes.scale_rules.lowering import ScaleLowering, peak_of
from bmcompiler.passes.scale_rules.plan import unsigned_values
from bmcompiler.target import Target


@dataclass
class Scales:
    """i8 and u8 with real scales. modes: chosen for layers; integer_io: the net takes and gives integers."""

    modes: Mapping[Operation, str] = field(default_factory=dict)
    integer_io: bool = False

    rules = SCALE_RULES

    def start(
        self,
        module: Module,
        function: Function,
        calibrated: Mapping[Value, float],
        scaling: Scalings,
        exact: set[Value],
        target: Target | None,
    ) -> ScaleLowering:
        within = dict(calibrated)
        for op in function.ops:
            if op.attributes.get("activation") == "relu6":
                within[op.results[0]] = min(within[op.results[0]], 6.0)
        plan = make_plan(function, within, scaling, lambda value: array_of(module, value), exact, peak_of)
        unsigned = unsigned_values(function, plan)
        return ScaleLowering(
            module, function, plan, target, unsigned=unsigned, modes=self.modes, integer_io=self.integer_io
        )
