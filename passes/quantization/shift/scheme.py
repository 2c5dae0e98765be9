"""Power-of-two shifts as a scheme of the pass quantize: conversions, plan and builder."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bmcompiler.ir import Function, Operation
from bmcompiler.numeric.two_terms import SHIFT_MODES
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.plan import make_plan
from bmcompiler.passes.quantization.rounding import WeightRounding
from bmcompiler.passes.quantization.scheme import Start, array_of
from bmcompiler.passes.quantization.shift.conversions import CONVERSIONS
from bmcompiler.passes.quantization.shift.lowering import ShiftLowering


@dataclass
class Shifts:
    """int8 with power-of-two shifts. modes: of layers. rounder: which integers weights become; None: the nearest.

    layers: integers of layers, which schemes for one net may share: formats decide the rest.
    """

    modes: Mapping[Operation, str] = field(default_factory=dict)
    rounder: WeightRounding | None = None
    layers: dict[Hashable, Any] = field(default_factory=dict)

    conversions = CONVERSIONS
    layer_modes: ClassVar[tuple[str, ...]] = SHIFT_MODES
    """Modes of layers, the cheapest one first."""
    island = "it stands between layers on the CPU, where going to int8 and back would only cost accuracy"

    def start(self, start: Start) -> Building[Any]:
        """See `Scheme.start`."""
        module, function = start.module, start.function
        plan = make_plan(function, start.calibrated, start.scaling, lambda value: array_of(module, value), start.exact)
        return ShiftLowering(module, function, plan, start.target, self.modes, self.rounder, self.layers)

    def widen(self, function: Function, accepted: set[Operation]) -> bool:
        """Nothing is learnt from lowering: False."""
        return False
