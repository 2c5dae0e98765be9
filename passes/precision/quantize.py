"""Float to int8: power-of-two shifts (bm1880.md 11.2), scales (bm1684.md 7.2), scales of channels (bm1684x.md 7)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bmcompiler.conditions import INTEGERS, NO_LAYOUT, NO_THRESHOLDS, ONE_FLOAT, SOURCE_TYPES, THRESHOLDS, has_scheme
from bmcompiler.errors import UsageError
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.carrying import carry_macs, need_of
from bmcompiler.ir.keys import INTEGER_WEIGHTS, THRESHOLD_SOURCE
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.numeric.quant_modes import MODES
from bmcompiler.numeric.two_terms import SHIFT_MODES
from bmcompiler.ops import need_tensor_ops
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.importing.absorb_qdq import stated_forms
from bmcompiler.passes.precision.calibrate import CANDIDATES, MEANS, MEASURED, make_table, tensor_names, thresholds
from bmcompiler.passes.quantization.base import Conversion, NoInt8Form, Scaling, is_constant
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.islands import pointless_islands
from bmcompiler.passes.quantization.scheme import Scheme, Start, array_of, real_scales
from bmcompiler.passes.quantization.shift.scheme import Shifts
from bmcompiler.passmanager import Pass, PassContext, PassResult

if TYPE_CHECKING:
    from bmcompiler.conditions import Condition
    from bmcompiler.passes.quantization.choice.aim import Aim
    from bmcompiler.passes.quantization.rounding import WeightRounding
    from bmcompiler.passes.quantization.scale.scheme import Scales

ROUNDED = "quantize.rounded"
"""Key of `PassContext.options`: integers of weights, found for the net in another input shape."""
BIASES = "quantize.biases"
"""Key of `PassContext.options`: corrections of biases, measured for the net in another input shape."""
_FEW = 2
"""On which methods of calibration are compared where nothing may be spent on accuracy."""


@dataclass(frozen=True)
class _Known:
    """What lowerings of one function share: integers of layers, and nets, by what they depend on."""

    layers: dict[Hashable, Any] = field(default_factory=dict)
    nets: dict[Hashable, tuple[Building[Any], set[Operation]]] = field(default_factory=dict)


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
       it costs half more, and none is ruined at any cost. `max_error` (percent) or `max_cycles` (over the cheapest)
       ask for other things. A layer may be float (on the host, where the chip has none), for accuracy or where it is
       quicker; no program is slower than the float one, which is measured besides. A file `table` forces what it says;
       where there is none, it is written.
    With scheme = scale, or channel (`quantization.channel`: a scale for each output channel of a layer, whose only mode
    is of that name), tensors are i8 or u8 with real scales (`quantization.scale`), convolutions and inner products
    have one of the modes of `quant_modes`, or rule 12's: `mode`, or with "auto" what rule 5 chooses, and
    6. What stays in float runs on the chip if that has float instructions; inputs and outputs stay float too, unless
       `io` is "integer".
    7. Where calibrate kept the thresholds of several methods, those are used whose integers do least to the outputs;
       those of mse, if they bring all outputs as near as rule 5 wants them.
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
       has no such form (products of two tensors, results of 16 bits) is in the mode "high" instead. Rule 5 takes it,
       in place of "asymmetric", with `per_channel` only: one net of those measured lost half a point by it.
    Options: `scheme` is "shift" (powers of two), "scale" or "channel"; `skip` names source layers or tensors that
    stay in float; `strict_table` keeps every threshold that a table names, at the cost of rescaling (the vendor's way);
    `report` logs the integers chosen for each layer.
    """

    name = "quantize"
    requires = (THRESHOLDS, ONE_FLOAT, NO_LAYOUT)
    ensures = (INTEGERS, NO_THRESHOLDS)
    breaks = (THRESHOLDS, SOURCE_TYPES)
    loses_bits = True
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
    strict_table: bool = False
    report: bool = False

    def needs(self) -> tuple[Condition, ...]:
        return (*self.requires, has_scheme(self.scheme))

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        need_tensor_ops(module)
        found = [self._function(module, function, ctx) for function in module.functions]
        module.functions = [low.new for low in found]
        module.weights.clear()
        for low in found:
            module.weights.update(low.module.weights)
        return PassResult(True)

    def _function(self, module: Module, function: Function, ctx: PassContext) -> Building[Any]:
        in_float = self._skipped(function)
        known = _Known()
        self._choose_thresholds(module, function, ctx, in_float, known)
        low = self._with_choice(module, function, ctx, in_float, known)
        if self.report:
            for op, text in low.reports.items():
                ctx.log(f"{op.label} ({op.short_name}): {text}")
        return low

    takes_table = True
    """A quantization table can say how layers compute."""

    @property
    def takes_io(self) -> bool:
        """Whether `io` decides what the net takes and gives."""
        return self._scales() is not None

    def _scales(self) -> type[Scales] | None:
        """The scheme with real scales that is asked for."""
        return real_scales(self.scheme)

    def _aim(self) -> Aim:
        from bmcompiler.passes.quantization.choice.aim import Aim

        return Aim(self.max_error / 100 or None, self.max_cycles or None)

    def _choose_thresholds(
        self,
        module: Module,
        function: Function,
        ctx: PassContext,
        in_float: Mapping[Operation, str],
        known: _Known,
    ) -> None:
        """Rule 7."""
        candidates = ctx.options.pop(CANDIDATES, None)
        if candidates is None or ctx.data is None:
            return
        from bmcompiler.passes.quantization.choice.decide import reference_of
        from bmcompiler.passes.quantization.choice.hostile import hostile
        from bmcompiler.passes.quantization.choice.thresholds import best_method

        scales = self._scales()
        modes = dict.fromkeys(function.ops, (scales or Shifts).layer_modes[0])

        def lower() -> Building[Any]:
            unfit = hostile(function, thresholds(function), partial(array_of, module), steep=scales is not None)
            kept = {**(unfit if self.mode == "auto" else {}), **in_float}
            return self._net(module, function, ctx, known, modes, kept)[0]

        few = (_FEW,) if 0 < self.max_cycles <= 1 else ()
        reference = reference_of(module, function, ctx, *few)
        ctx.notes.append(best_method(function, candidates, reference, lower, self._aim().wanted))
        if ctx.table is ctx.options.get(MEASURED):
            ctx.table = ctx.options[MEASURED] = make_table(module)

    def _with_choice(
        self,
        module: Module,
        function: Function,
        ctx: PassContext,
        skipped: dict[Operation, str],
        known: _Known,
    ) -> Building[Any]:
        """Rule 5."""
        from bmcompiler.passes.quantization.choice.cost import host_cycles
        from bmcompiler.passes.quantization.choice.decide import DECIDED, Wanted, decide, decided, rows
        from bmcompiler.passes.quantization.choice.ways import Ways
        from bmcompiler.quant.mode_table import save_modes

        scales = self._scales()
        lower = partial(self._net, module, function, ctx, known)
        modes_of_layers = () if scales is None else scales.layer_modes if self.per_channel else scales.tensor_modes
        more = () if scales is None else (*scales.layer_modes, *scales.tensor_modes)
        ways = (
            Ways(scales.conversions, modes_of_layers, timed=True, share=scales.share, more=more)
            if scales is not None
            else Ways(Shifts.conversions, Shifts.layer_modes, host_cycles, steep=False, on_host=True)
        )
        states = scales is not None and CHANNEL in scales.tensor_modes and bool(stated_forms(function))
        mode = CHANNEL if states and self.mode == "auto" else self.mode
        choice = decide(module, function, ctx, lower, Wanted(self.name, mode, self._aim(), self.table, ways), skipped)
        ctx.notes += choice.notes
        in_float = {**skipped, **choice.in_float}
        whole_io = self.io == "integer"

        def whole(rounder: WeightRounding | None, fresh: bool = False) -> tuple[Building[Any], set[Operation]]:
            layers = {} if fresh else known.layers  # other biases than those that are known
            scheme = (
                scales(choice.modes, whole_io, layers=layers, rounder=rounder)
                if scales
                else Shifts(choice.modes, rounder)
            )
            return self._settled(module, function, ctx, scheme, dict(in_float))

        def nearest() -> Building[Any]:
            return (whole(None) if whole_io else lower(choice.modes, in_float))[0]

        low, accepted, rounder = self._rounded(module, function, ctx, whole, nearest)
        if self.mode == "auto" and self.correct_bias and ctx.data is not None:
            low, accepted = self._with_biases(module, function, ctx, low, accepted, partial(whole, rounder, True))
        if self.table and not Path(self.table).exists():
            save_modes(self.table, rows(function, choice, low, accepted, ctx.target))
            ctx.notes.append(f"quantization table written to {self.table}")
        ctx.options[DECIDED] = decided(function, choice)
        return low

    def _rounded(
        self,
        module: Module,
        function: Function,
        ctx: PassContext,
        lower: Callable[[WeightRounding | None], tuple[Building[Any], set[Operation]]],
        nearest: Callable[[], Building[Any]],
    ) -> tuple[Building[Any], set[Operation], WeightRounding | None]:
        """Rule 10. Other input shapes of the net take over what was found for the first."""
        from bmcompiler.passes.quantization.choice.decide import reference_of
        from bmcompiler.passes.quantization.choice.rounded import rounded
        from bmcompiler.passes.quantization.rounding import WeightRounding

        known = ctx.options.get(ROUNDED)
        if known is not None:
            rounder = WeightRounding(function, known)
            return *lower(rounder), rounder
        if not self.round_weights or ctx.data is None:
            return *lower(None), None
        reference = reference_of(module, function, ctx, MEANS)
        (low, accepted), rounder, note = rounded(module, function, reference, lower, nearest, self._aim().wanted)
        ctx.options[ROUNDED] = rounder.found
        ctx.notes += [note] if note else []
        return low, accepted, rounder

    def _with_biases(
        self,
        module: Module,
        function: Function,
        ctx: PassContext,
        low: Building[Any],
        accepted: set[Operation],
        lower: Callable[[], tuple[Building[Any], set[Operation]]],
    ) -> tuple[Building[Any], set[Operation]]:
        """Rule 8. Other input shapes of the net take over what was measured for the first."""
        from bmcompiler.passes.quantization.choice.biases import apply, corrected
        from bmcompiler.passes.quantization.choice.decide import reference_of

        known = ctx.options.get(BIASES)
        if known is not None:
            apply(module, function, known)
            return lower() if known else (low, accepted)
        reference = reference_of(module, function, ctx, MEANS)
        low, accepted, shifts = corrected(module, function, reference, low, accepted, lower)
        ctx.options[BIASES] = shifts
        if shifts:
            ctx.notes.append(f"biases of {len(shifts)} layers are corrected")
        return low, accepted

    def _net(
        self,
        module: Module,
        function: Function,
        ctx: PassContext,
        known: _Known,
        modes: Mapping[Operation, str],
        in_float: Mapping[Operation, str],
    ) -> tuple[Building[Any], set[Operation]]:
        """The net with the nearest integers and float borders, made once; an op without mode is in float."""
        ops = [op for op in function.ops if op.operands and op.results]
        levels = tuple(thresholds(function).values())
        ways = {op: None if op in in_float else modes.get(op) for op in ops}
        key = levels, tuple(ways.values())
        if key not in known.nets:
            scales = self._scales()
            scheme: Scheme = scales(modes, layers=known.layers) if scales else Shifts(modes)
            floats = {**in_float, **{op: "" for op in ops if op not in modes and op not in in_float}}
            low, accepted = self._settled(module, function, ctx, scheme, floats)
            refused = levels, tuple(ways[op] if op in accepted else None for op in ops)
            known.nets[key] = known.nets.setdefault(refused, (low, accepted))
        return known.nets[key]

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

        def conversion_of(op: Operation) -> Conversion | None:
            fits = op not in in_float and not any(v.dtype != "f32" for v in (*op.operands, *op.results))
            return scheme.conversions.of(type(op)) if fits else None

        def scaling(op: Operation) -> Scaling:
            conversion = conversion_of(op)
            return Scaling.FREE if conversion is None else conversion.scaling(op)

        strict = self.strict_table or INTEGER_WEIGHTS in function.attributes
        exact = {r for op in function.ops for r in op.results if strict and THRESHOLD_SOURCE in op.attributes}
        low = scheme.start(Start(module, function, thresholds(function), scaling, exact, ctx.target))
        accepted: set[Operation] = set()
        for op in function.ops[:-1]:
            if is_constant_op(op):
                continue
            low.location = op.location
            found, before = conversion_of(op), len(low.new.ops)
            reason = in_float.get(op) or (_unconverted(op) if found is None else _apply(found, cast(TensorOp, op), low))
            if reason is None:
                accepted.add(op)
            else:
                low.in_float(op, reason)
            low.made[op] = low.new.ops[before:]
            carry_macs([need_of(op)], low.made[op])
        low.finish(function)
        return low, accepted


def is_constant_op(op: Operation) -> bool:
    """Whether an op only brings a weight."""
    return bool(op.results) and is_constant(op.results[0])


def _names(op: Operation, known: dict[Value, list[str]]) -> set[str]:
    return {*op.location, *(name for value in op.results for name in known[value])}


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
