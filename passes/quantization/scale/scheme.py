"""Real scales as a scheme of the pass quantize: conversions, plan and builder."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bmcompiler.ir import Function, Operation, Value
from bmcompiler.ir.keys import is_return
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.numeric.quant_modes import HIGH, LOW, MODES
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.plan import Plan, make_plan
from bmcompiler.passes.quantization.rounding import WeightRounding
from bmcompiler.passes.quantization.scale.conversions import SCALE_CONVERSIONS
from bmcompiler.passes.quantization.scale.lowering import ScaleLowering
from bmcompiler.passes.quantization.scale.tensors import peak_of
from bmcompiler.passes.quantization.scheme import Start, array_of


@dataclass
class Scales:
    """i8 and u8 with real scales. modes: chosen for layers; integer_io: the net takes and gives integers."""

    modes: Mapping[Operation, str] = field(default_factory=dict)
    integer_io: bool = False
    wide: set[Value] = field(default_factory=set)
    """Results of layers that may have 16 bits."""
    never_wide: set[Value] = field(default_factory=set)
    """Results that had 16 bits and lost them."""
    layers: dict[Hashable, Any] = field(default_factory=dict)
    """Integers of layers and what is known of weights, which schemes for one net may share: formats decide the rest."""
    rounder: WeightRounding | None = None
    """Which integers weights become; None: the nearest."""

    conversions = SCALE_CONVERSIONS
    layer_modes: ClassVar[tuple[str, ...]] = (LOW, HIGH, CHANNEL)
    """Modes of layers, the cheapest one first."""
    tensor_modes: ClassVar[tuple[str, ...]] = MODES
    """Those with one scale for all weights of a layer, likewise."""
    share: ClassVar[float] = 0.74
    """Part of the cycles of the float program that accuracy may cost (`Ways`): integers are to spare a quarter."""
    lowering: ClassVar[type[ScaleLowering]] = ScaleLowering
    island = "it stands between layers in float, where going to int8 and back would only cost accuracy"

    def start(self, start: Start) -> ScaleLowering:
        """See `quantization.scheme.Scheme.start`."""
        module, function = start.module, start.function
        within = dict(start.calibrated)
        for op in function.ops:
            if op.attributes.get("activation") == "relu6":
                within[op.results[0]] = min(within[op.results[0]], 6.0)
        plan = make_plan(function, within, start.scaling, lambda value: array_of(module, value), start.exact, peak_of)
        unsigned = unsigned_values(function, plan)
        return self.lowering(
            module,
            function,
            plan,
            start.target,
            unsigned=unsigned,
            modes=self.modes,
            wide=self.wide,
            integer_io=self.integer_io,
            layers=self.layers,
            rounder=self.rounder,
        )

    def widen(self, function: Function, accepted: set[Operation]) -> bool:
        """Results that only float ops and float outputs read get 16 bits: rounding them to 8 would gain nothing.

        What has lost them once does not get them again: an op may have no form with 16 bits, and two ops may have them
        in turn for ever.
        """

        def only_floats_read(value: Value) -> bool:
            return all(
                (not self.integer_io if is_return(user) else user not in accepted)
                or (user.short_name == "reshape" and only_floats_read(user.results[0]))
                for user in value.users
            )

        layers = [op for op in accepted if isinstance(op, TensorOp) and op.affine]
        wide = {op.result for op in layers if only_floats_read(op.result)}
        wide -= self.never_wide
        self.never_wide |= self.wide - wide
        changed, self.wide = wide != self.wide, wide
        return changed


def unsigned_values(function: Function, plan: Plan) -> set[Value]:
    """Values that become u8.

    1. Results of functions without negative values, of clips from 0 up, and of ops with an activation inside.
    2. Results of ops that move, select, average, add or multiply such values only.
    3. What a relu, or a clip that saturation enforces (`quantization.plan` rule 4), alone reads, where the op that
       makes it can saturate: the activation is then no work at all.
    """
    found: set[Value] = set()
    for op in function.ops[:-1]:
        if not op.operands or not all(result.type.is_float for result in op.results):
            continue
        if isinstance(op, TensorOp) and _is_unsigned(op, found):
            found.update(op.results)
        source = op.operands[0]
        if op.short_name == "relu" or op in plan.saturating:
            maker = source.op
            if isinstance(maker, TensorOp) and (maker.saturates or maker.affine) and len(source.uses) == 1:
                found.add(source)
    return found


def _is_unsigned(op: TensorOp, found: set[Value]) -> bool:
    """Rules 1 and 2. Signs of constants are not looked at: they count as signed."""
    return op.result_bounds()[0] >= 0 or (op.keeps_sign() and found.issuperset(op.operands))
