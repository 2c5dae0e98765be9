"""Power-of-two shifts as a scheme of the pass quantize: rules, plan and builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from numpy.typing import NDArray

from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantization.base import Rules, Scaling
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.plan import make_plan
from bmcompiler.passes.quantization.shift import RULES
from bmcompiler.passes.quantization.shift.lowering import Lowering
from bmcompiler.target import Target

Scalings = Callable[[Operation], Scaling]
"""What decides the threshold of an op's result; FREE for an op that stays in float."""


class Scheme(Protocol):
    """How floats become integers."""

    rules: Rules
    island: str
    """Why cheap ops between float layers stay in float too."""

    def start(
        self,
        module: Module,
        function: Function,
        calibrated: Mapping[Value, float],
        scaling: Scalings,
        exact: set[Value],
        target: Target | None,
    ) -> Building[Any]:
        """A builder with a plan: thresholds of values (`exact` ones must be kept), by what each op wants."""

    def widen(self, function: Function, accepted: set[Operation]) -> bool:
        """Use what is known once all ops are lowered: True when lowering again gives a better net."""


class Shifts:
    """int8 with power-of-two shifts."""

    rules = RULES
    island = "it stands between layers on the CPU, where going to int8 and back would only cost accuracy"

    def start(
        self,
        module: Module,
        function: Function,
        calibrated: Mapping[Value, float],
        scaling: Scalings,
        exact: set[Value],
        target: Target | None,
    ) -> Building[Any]:
        """See `Scheme.start`."""
        plan = make_plan(function, calibrated, scaling, lambda value: array_of(module, value), exact)
        return Lowering(module, function, plan, target)

    def widen(self, function: Function, accepted: set[Operation]) -> bool:
        """Nothing is learnt from lowering: False."""
        return False


def array_of(module: Module, value: Value) -> NDArray[Any]:
    """The array of a weight."""
    return module.weights[cast(TensorOp, value.op).key]
