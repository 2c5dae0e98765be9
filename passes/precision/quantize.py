"""Float to int8: power-of-two shifts (bm1880.md 11.2), scales (bm1684.md 7.2), scales of channels (bm1684x.md 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmcompiler.conditions import INTEGERS, NO_LAYOUT, NO_THRESHOLDS, ONE_FLOAT, SOURCE_TYPES, THRESHOLDS, has_scheme
from bmcompiler.errors import UsageError
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.numeric.quant_modes import MODES
from bmcompiler.numeric.two_terms import SHIFT_MODES
from bmcompiler.ops import need_tensor_ops
from bmcompiler.passes.importing.absorb_qdq import stated_forms
from bmcompiler.passes.precision.calibrate import MEANS, make_table, tensor_names, thresholds
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.nets import Lowered, Nets
from bmcompiler.passes.quantization.scheme import array_of, real_scales
from bmcompiler.passes.quantization.shift.scheme import Shifts
from bmcompiler.passes.quantization.state import calibration_of, plan_of
from bmcompiler.passmanager import Pass, PassContext, PassResult

if TYPE_CHECKING:
    from bmcompiler.conditions import Condition
    from bmcompiler.passes.quantization.choice.aim import Aim
    from bmcompiler.passes.quantization.choice.summary import Choice
    from bmcompiler.passes.quantization.choice.ways import Ways
    from bmcompiler.passes.quantization.rounding import WeightRounding
    from bmcompiler.passes.quantization.scale.scheme import Scales

_FEW = 2
"""On which methods of calibration are compared where nothing may be spent on accuracy."""


@dataclass(frozen=True)
class Quantize(Pass):
    """Rewrite a calibrated float module into integer TensorOps, requantization spelled out.

    1. An op with a conversion (`quantization`) whose integer ops the target runs becomes int8; thresholds follow the
       plan (`quantization.plan`).
    2. Every other op stays in float, with the reason in its attribute "place.cpu"; `dequantize` and `quantize` stand at
       the borders, each made once per value.
    3. Cheap ops between layers on the CPU go there too (`quantization.islands`).
    4. Float inputs that an int8 op reads become i8 with their quantization; outputs are what their producers make.
    5. How each layer computes is chosen by what it does to the outputs (`quantization.choice`): by default every
       output channel is within 2 percent of float if that costs at most a quarter more cycles, within 10 percent if
       it costs half more, and none is ruined at any cost; and 99 % of decisions stay, if that is quicker than float.
       All is measured on samples that it was not chosen by. `max_error` (percent) or `max_cycles` (over the
       cheapest) ask for other things. A layer may be float (on the host, where the chip has none), for accuracy or
       where it is quicker; no program is slower than the float one, which is measured besides. A file `table` forces
       what it says; where there is none, it is written.
    With scheme = scale, or channel (`quantization.channel`: a scale for each output channel of a layer, whose only mode
    is of that name), tensors are i8 or u8 with real scales (`quantization.scale`), convolutions and inner products
    have one of the modes of `quant_modes`, or rule 12's: `mode`, or with "auto" what rule 5 chooses, and
    6. What stays in float runs on the chip if that has float instructions; inputs and outputs stay float too, unless
       `io` is "integer".
    7. Where calibrate kept the thresholds of several methods, those are used whose integers do least to the outputs,
       or that keep clearly more decisions, where some are lost; those of mse, if they bring all outputs as near as
       rule 5 wants them. Raw scores that decide at 0 end where a sigmoid is 0.0003: what is further below says nothing
       else, and counts as no error. Outputs of few numbers that decide nothing end beyond the largest value of 16
       samples or more, as far as others may reach (`bmcompiler.evaluation.tails`).
    8. With `correct_bias` and mode = auto, biases take back what the integers shift on average, where samples that it
       was not measured on confirm that this helps (`quantization.choice.biases`). Not by default: outputs come nearer
       to float, but confidences move, and detectors were seen to lose by it.
    9. With scheme = channel, what a model states of its tensors and weights (Q/DQ pairs, QLinear ops) is kept: element
       types, scales, zero points, integers of weights; all layers that can be are integers then.
    10. With `round_weights` and calibration data, weights of layers are not rounded to the nearest integer but up or
       down as brings the layer's sums nearer to float (`quantization.rounding`), where samples that it was not measured
       on confirm this of the layer and of the outputs (`quantization.choice.rounded`). Outputs of large nets that are
       as near as rule 5 wants them stay as they are. Thresholds and modes are chosen with the nearest integers: what
       is gained is not spent.
    11. With scheme = shift, layers have weights in one term of bytes ("int8") or in two ("double",
       `bmcompiler.numeric.two_terms`; rule 10 leaves these alone), as rule 5 chooses.
    12. With scheme = scale there is the mode "channel", too: sums of each output channel have a shift of their own, for
       two commands more than "low", so that weights have a scale for each (`quantization.scale.factored_layer`). What
       has no such form (products of two tensors, results of 16 bits) is in the mode "high" instead. With
       `second_choice`, where rule 5 loses decisions, or takes more than 0.74 of the float program's cycles, it chooses
       again, between this mode and float, and takes what loses fewer decisions, or as few in fewer cycles. With
       `per_channel` the mode is one of all, in place of "asymmetric": one net of those measured lost half a point by
       it.
    Options: `scheme` is "shift" (powers of two), "scale" or "channel"; `skip` names source layers or tensors that
    stay in float; `strict_table` keeps every threshold that a table names, at the cost of rescaling (the vendor's way);
    `report` logs the integers chosen for each layer.
    """

    name = "quantize"
    requires = (THRESHOLDS, ONE_FLOAT, NO_LAYOUT)
    ensures = (INTEGERS, NO_THRESHOLDS)
    breaks = (THRESHOLDS, SOURCE_TYPES)
    loses_bits = True
    takes_table = True
    scheme: str = field(default="shift", metadata={"choices": ("shift", "scale", "channel")})
    mode: str = field(default="auto", metadata={"choices": ("auto", *MODES, CHANNEL, *SHIFT_MODES)})
    io: str = field(default="float", metadata={"choices": ("float", "integer")})
    max_error: float = 0.0
    max_cycles: float = 0.0
    table: str = ""
    skip: tuple[str, ...] = ()
    correct_bias: bool = False
    round_weights: bool = True
    per_channel: bool = False
    second_choice: bool = True
    strict_table: bool = False
    report: bool = False

    def needs(self) -> tuple[Condition, ...]:
        return (*self.requires, has_scheme(self.scheme))

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        need_tensor_ops(module)
        found = [self._function(module, function, ctx) for function in module.functions]
        look, reference = calibration_of(ctx).look, plan_of(ctx).reference
        if look is not None:
            look.taken()
        if reference is not None:
            reference[1].remembered.forget()
        module.functions = [low.new for low in found]
        module.weights.clear()
        for low in found:
            module.weights.update(low.module.weights)
        return PassResult(True)

    def _function(self, module: Module, function: Function, ctx: PassContext) -> Building[Any]:
        skipped = self._skipped(function)
        nets = Nets(module, function, ctx.target, real_scales(self.scheme), self.strict_table)
        self._choose_thresholds(nets, ctx, skipped)
        choice = self._choice(nets, ctx, skipped)
        low, accepted = self._final(nets, ctx, choice.modes, {**skipped, **choice.in_float})
        self._save(function, choice, low, accepted, ctx)
        if self.report:
            for op, text in low.reports.items():
                ctx.log(f"{op.label} ({op.short_name}): {text()}")
        return low

    @property
    def takes_io(self) -> bool:
        return real_scales(self.scheme) is not None

    def _aim(self) -> Aim:
        from bmcompiler.passes.quantization.choice.aim import Aim

        return Aim(self.max_error / 100 or None, self.max_cycles or None)

    def _choose_thresholds(self, nets: Nets, ctx: PassContext, in_float: Mapping[Operation, str]) -> None:
        """Rule 7."""
        state, function = calibration_of(ctx), nets.function
        candidates, state.candidates = state.candidates, None
        if candidates is None or ctx.data is None:
            return
        from bmcompiler.passes.quantization.choice.decide import reference_of
        from bmcompiler.passes.quantization.choice.hostile import hostile
        from bmcompiler.passes.quantization.choice.thresholds import best_method, of_scores, with_room

        modes = dict.fromkeys(function.ops, (nets.scales or Shifts).layer_modes[0])

        def lower() -> Building[Any]:
            steep = nets.scales is not None
            unfit = hostile(function, thresholds(function), partial(array_of, nets.module), steep=steep)
            return nets.nearest(modes, {**(unfit if self.mode == "auto" else {}), **in_float})[0]

        few = (_FEW,) if 0 < self.max_cycles <= 1 else ()
        reference = reference_of(nets.module, function, ctx, *few)
        fitting, said = of_scores(function, candidates, reference)
        fitting, more = with_room(function, fitting, reference)
        ctx.notes += said + more
        ctx.notes.append(best_method(function, fitting, reference, lower, self._aim().wanted))
        if not state.was_given(ctx.table):
            ctx.table = state.measured = make_table(nets.module)

    def _choice(self, nets: Nets, ctx: PassContext, skipped: Mapping[Operation, str]) -> Choice:
        """Rule 5."""
        from bmcompiler.passes.quantization.choice.decide import Wanted, decide

        scales = nets.scales
        states = scales is not None and CHANNEL in scales.tensor_modes and bool(stated_forms(nets.function))
        mode = CHANNEL if states and self.mode == "auto" else self.mode
        wanted = Wanted(self.name, mode, self._aim(), self.table, self._ways(scales))
        choice = decide(nets.module, nets.function, ctx, nets.nearest, wanted, skipped)
        ctx.notes += choice.notes
        return choice

    def _ways(self, scales: type[Scales] | None) -> Ways:
        """What a layer may be, of the scheme."""
        from bmcompiler.passes.quantization.choice.cost import host_cycles
        from bmcompiler.passes.quantization.choice.ways import Ways

        if scales is None:
            return Ways(Shifts.conversions, Shifts.layer_modes, host_cycles, steep=False, on_host=True)
        modes = scales.layer_modes if self.per_channel else scales.tensor_modes
        more = (*scales.layer_modes, *scales.tensor_modes)
        again = self.second_choice and modes == scales.tensor_modes != scales.layer_modes
        finer = (CHANNEL,) if again else ()
        return Ways(scales.conversions, modes, timed=True, share=scales.share, more=more, finer=finer)

    def _final(
        self, nets: Nets, ctx: PassContext, modes: Mapping[Operation, str], in_float: Mapping[Operation, str]
    ) -> Lowered:
        """The net with weights (rule 10) and biases (rule 8) that samples say are better."""
        integer_io = self.io == "integer"
        lower = partial(nets.final, modes, in_float, integer_io=integer_io)

        def nearest() -> Building[Any]:
            return (lower(None) if integer_io else nets.nearest(modes, in_float))[0]

        found, rounder = self._rounded(nets, ctx, lower, nearest)
        if self.mode == "auto" and self.correct_bias and ctx.data is not None:
            found = self._with_biases(nets, ctx, found, partial(lower, rounder, other_biases=True))
        return found

    def _rounded(
        self,
        nets: Nets,
        ctx: PassContext,
        lower: Callable[[WeightRounding | None], Lowered],
        nearest: Callable[[], Building[Any]],
    ) -> tuple[Lowered, WeightRounding | None]:
        """Rule 10. Other input shapes of the net take over what was found for the first."""
        from bmcompiler.passes.quantization.choice.decide import reference_of
        from bmcompiler.passes.quantization.choice.rounded import rounded
        from bmcompiler.passes.quantization.rounding import WeightRounding

        plan = plan_of(ctx)
        if plan.weights is not None:
            rounder = WeightRounding(nets.function, plan.weights)
            return lower(rounder), rounder
        if not self.round_weights or ctx.data is None:
            return lower(None), None
        reference = reference_of(nets.module, nets.function, ctx, MEANS)
        found, rounder, note = rounded(nets.module, nets.function, reference, lower, nearest, self._aim().wanted)
        plan.weights = rounder.found
        ctx.notes += [note] if note else []
        return found, rounder

    def _with_biases(self, nets: Nets, ctx: PassContext, found: Lowered, lower: Callable[[], Lowered]) -> Lowered:
        """Rule 8. Other input shapes of the net take over what was measured for the first."""
        from bmcompiler.passes.quantization.choice.biases import apply, corrected
        from bmcompiler.passes.quantization.choice.decide import reference_of

        plan = plan_of(ctx)
        if plan.biases is not None:
            apply(nets.module, nets.function, plan.biases)
            return lower() if plan.biases else found
        reference = reference_of(nets.module, nets.function, ctx, MEANS)
        low, accepted, plan.biases = corrected(nets.module, nets.function, reference, *found, lower)
        if plan.biases:
            ctx.notes.append(f"biases of {len(plan.biases)} layers are corrected")
        return low, accepted

    def _save(
        self, function: Function, choice: Choice, low: Building[Any], accepted: set[Operation], ctx: PassContext
    ) -> None:
        """What was decided: for other input shapes, and in the table if there is none yet."""
        from bmcompiler.passes.quantization.choice.decide import decided, rows
        from bmcompiler.quant.mode_table import save_modes

        if self.table and not Path(self.table).exists():
            save_modes(self.table, rows(function, choice, low, accepted, ctx.target))
            ctx.notes.append(f"quantization table written to {self.table}")
        plan_of(ctx).modes = decided(function, choice)

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


def _names(op: Operation, known: dict[Value, list[str]]) -> set[str]:
    return {*op.location, *(name for value in op.results for name in known[value])}
