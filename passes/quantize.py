"""Float to int8, with power-of-two shifts (bm1880.md 11.2) or real scales (bm1684.md 7.2)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bmcompiler.errors import UsageError
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import THRESHOLD_SOURCE
from bmcompiler.numeric.quant_modes import MODES
from bmcompiler.ops import need_tensor_ops
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.calibrate import tensor_names, thresholds
from bmcompiler.passes.quantization.base import NoInt8Form, Rule, Scaling, is_constant
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.islands import pointless_islands
from bmcompiler.passes.quantization.scheme import Scheme, Start
from bmcompiler.passes.quantization.shift.scheme import Shifts
from bmcompiler.passmanager import Pass, PassContext, PassResult

if TYPE_CHECKING:
    from bmcompiler.passes.quantization.scale.integer_layer import Layer


@dataclass(frozen=True)
class Quantize(Pass):
    """Rewrite a calibrated float module into integer TensorOps, requantization spelled out.

    1. An op with a rule (`quantization`) whose integer ops the target runs becomes int8; thresholds follow the plan
       (`quantization.plan`).
    2. Every other op stays in float, with the reason in its attribute "place.cpu"; `dequantize` and `quantize` stand at
       the borders, each made once per value.
    3. Cheap ops between layers on the CPU go there too (`quantization.islands`).
    4. Float inputs that an int8 op reads become i8 with their quantization; outputs are what their producers make.

    With scheme = scale tensors are i8 or u8 with real scales (`quantization.scale`), and
    5. convolutions and inner products have one of the three modes of `quant_modes`: `mode`, or with "auto" the one with
       the fewest cycles whose output error is at most `budget` percent above the least (`scale.choice`). A file
       `table` forces what it says; where there is none yet, it is written.
    6. What stays in float runs on the chip if that has float instructions; inputs and outputs stay float too, unless
       `io` is "integer".

    Options: `scheme` is "shift" (powers of two) or "scale"; `skip` names source layers or tensors that stay in float;
    `strict_table` keeps every threshold that a table names, at the cost of rescaling (the vendor's way); `report` logs
    the integers chosen for each layer.
    """

    name = "quantize"
    scheme: str = field(default="shift", metadata={"choices": ("shift", "scale")})
    mode: str = field(default="auto", metadata={"choices": ("auto", *MODES)})
    io: str = field(default="float", metadata={"choices": ("float", "integer")})
    budget: float = 0.5
    table: str = ""
    skip: tuple[str, ...] = ()
    strict_table: bool = False
    report: bool = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        need_tensor_ops(module)
        found = [self._function(module, function, ctx) for function in module.functions]
        module.functions = [low.new for low in found]
        for key in list(module.weights):
            del module.weights[key]
        for low in found:
            module.weights.update(low.module.weights)
        return PassResult(True)

    def _function(self, module: Module, function: Function, ctx: PassContext) -> Building[Any]:
        in_float = self._skipped(function)
        if self.scheme == "shift":
            low, _ = self._settled(module, function, ctx, Shifts(), in_float)
        else:
            low = self._with_modes(module, function, ctx, in_float)
        if self.report:
            for op, text in low.reports.items():
                ctx.log(f"{op.label} ({op.short_name}): {text}")
        return low

    def _with_modes(
        self, module: Module, function: Function, ctx: PassContext, skipped: dict[Operation, str]
    ) -> Building[Any]:
        """Rule 5."""
        from bmcompiler.passes.quantization.scale.decide import DECIDED, decide, decided, rows
        from bmcompiler.passes.quantization.scale.scheme import Scales
        from bmcompiler.quant.mode_table import save_modes

        layers: dict[Hashable, Layer] = {}

        def lower(
            modes: Mapping[Operation, str], in_float: Mapping[Operation, str]
        ) -> tuple[Building[Any], set[Operation]]:
            return self._settled(module, function, ctx, Scales(modes, layers=layers), dict(in_float))

        choice = decide(
            module, function, ctx, lower, mode=self.mode, budget=self.budget / 100, table=self.table, in_float=skipped
        )
        ctx.notes += choice.notes
        scheme = Scales(choice.modes, self.io == "integer", layers=layers)
        low, accepted = self._settled(module, function, ctx, scheme, {**skipped, **choice.in_float})
        found = list(rows(function, choice, low, accepted, ctx.target))
        if self.table and not Path(self.table).exists():
            save_modes(self.table, found)
            ctx.notes.append(f"quantization table written to {self.table}")
        ctx.options[DECIDED] = decided(function, choice)
        return low

    def _settled(
        self, module: Module, function: Function, ctx: PassContext, scheme: Scheme, in_float: dict[Operation, str]
    ) -> tuple[Building[Any], set[Operation]]:
        """Lower until no island is left and nothing can be widened; also returns the ops that became integers."""
        while True:
            low, accepted = self._lower(module, function, ctx, scheme, in_float)
            pointless = pointless_islands(function, accepted)
            if not pointless and not scheme.widen(function, accepted):
                return low, accepted
            in_float.update(dict.fromkeys(pointless, scheme.island))

    def _skipped(self, function: Function) -> dict[Operation, str]:
        """Ops that `skip` names. Raises UsageError for a name that fits none."""
        chosen: dict[Operation, str] = {}
        known = tensor_names(function) if self.skip else {}
        for name in self.skip:
            ops = [op for op in function.ops[:-1] if op.operands and name in _names(op, known)]
            if not ops:
                layers = dict.fromkeys(n for op in function.ops[:-1] if op.operands for n in op.location)
                raise UsageError(
                    f"pass {self.name}: skip names '{name}', which is no layer of the network",
                    remedy=f"the layers are: {', '.join(layers)}",
                )
            chosen.update(dict.fromkeys(ops, "kept in float by the option skip"))
        return chosen

    def _lower(
        self, module: Module, function: Function, ctx: PassContext, scheme: Scheme, in_float: dict[Operation, str]
    ) -> tuple[Building[Any], set[Operation]]:
        """Build the int8 function with the ops of `in_float` in float; also returns the ops that became int8."""

        def rule_of(op: Operation) -> Rule | None:
            fits = op not in in_float and not any(v.dtype != "f32" for v in (*op.operands, *op.results))
            return scheme.rules.of(type(op)) if fits else None

        def scaling(op: Operation) -> Scaling:
            rule = rule_of(op)
            return Scaling.FREE if rule is None else rule.scaling(op)

        exact = {
            r for op in function.ops for r in op.results if self.strict_table and THRESHOLD_SOURCE in op.attributes
        }
        low = scheme.start(Start(module, function, thresholds(function), scaling, exact, ctx.target))
        accepted: set[Operation] = set()
        for op in function.ops[:-1]:
            if is_constant_op(op):
                continue
            low.location = op.location
            rule = rule_of(op)
            reason = in_float.get(op) or (_no_rule(op) if rule is None else _apply(rule, cast(TensorOp, op), low))
            if reason is None:
                accepted.add(op)
            else:
                low.in_float(op, reason)
        low.finish(function)
        return low, accepted


def is_constant_op(op: Operation) -> bool:
    """Whether an op only brings a weight."""
    return bool(op.results) and is_constant(op.results[0])


def _names(op: Operation, known: dict[Value, list[str]]) -> set[str]:
    return {*op.location, *(name for value in op.results for name in known[value])}


def _no_rule(op: Operation) -> str:
    types = {v.dtype for v in (*op.operands, *op.results)} - {"f32"}
    return f"'{op.short_name}' has no int8 form" + (f" for {', '.join(sorted(types))}" if types else "")


def _apply(rule: Rule, op: TensorOp, low: Building[Any]) -> str | None:
    """Lower one op; when that is impossible, nothing is left behind and the reason is returned."""
    mark = low.mark()
    try:
        results = rule.build(op, low)
        low.accept(op, [results] if isinstance(results, Value) else results)
    except NoInt8Form as reason:
        low.rollback(mark)
        return str(reason)
    return None
