"""What a scheme is: how floats become integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.core import Weight
from bmcompiler.passes.quantization.base import Conversions, Scaling
from bmcompiler.passes.quantization.building import Building
from bmcompiler.target import Target

if TYPE_CHECKING:
    from bmcompiler.passes.quantization.scale.scheme import Scales


@dataclass(frozen=True)
class Start:
    """What the lowering of a function starts from.

    calibrated: thresholds. scaling: what decides the threshold of an op's result, FREE for an op that stays in float.
    exact: values whose threshold must be kept.
    """

    module: Module
    function: Function
    calibrated: Mapping[Value, float]
    scaling: Callable[[Operation], Scaling]
    exact: set[Value]
    target: Target | None


class Scheme(Protocol):
    """How floats become integers."""

    conversions: Conversions
    island: str
    """Why cheap ops between float layers stay in float too."""

    def start(self, start: Start) -> Building[Any]:
        """A builder with a plan."""

    def widen(self, function: Function, accepted: set[Operation]) -> bool:
        """Use what is known once all ops are lowered: True when lowering again gives a better net."""


def array_of(module: Module, value: Value) -> Array:
    """The array of a weight."""
    return module.weights[cast(Weight, value.op).key]


def real_scales(scheme: str) -> type[Scales] | None:
    """The scheme of this name if its scales are real numbers; imports no other."""
    if scheme == "shift":
        return None
    if scheme == "scale":
        from bmcompiler.passes.quantization.scale import scheme as scale

        return scale.Scales
    from bmcompiler.passes.quantization.channel.scheme import Channels

    return Channels
