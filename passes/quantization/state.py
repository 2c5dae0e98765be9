"""What passes of quantization leave for each other, and for the same net in other input shapes: kept by the context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bmcompiler.ir import Function
    from bmcompiler.numeric.arrays import Doubles, Mask
    from bmcompiler.passes.quantization.choice.reference import Reference
    from bmcompiler.passes.quantization.look import Look
    from bmcompiler.passes.quantization.rounding import Found
    from bmcompiler.passmanager import PassContext
    from bmcompiler.quant.table import CalibrationTable


@dataclass
class CalibrationState:
    """What was measured of the float net.

    measured: the table of the context, where calibrate made it itself, from data. candidates: by method, thresholds of
    all float values, in order (`float_values`), for quantize to choose from. look: what quantize measures, absent where
    calibration ran another form of the net or other processes. channels: by factor of `equalize`, the factor, and
    whether the channel was always 0.
    """

    measured: CalibrationTable | None = None
    candidates: dict[str, Sequence[float]] | None = None
    look: Look | None = None
    channels: tuple[Doubles, Mask] | None = None

    def was_given(self, table: CalibrationTable | None) -> bool:
        """Whether a table in force came from outside."""
        return table is not None and table is not self.measured


@dataclass
class QuantPlan:
    """What quantization decided for the net in its first input shape.

    modes: by layer name. weights: integers of weights (`WeightRounding`). biases: corrections. reference: the float net
    of who measured last, by function and numbers of steps.
    """

    modes: dict[str, str] = field(default_factory=dict)
    weights: Found | None = None
    biases: Mapping[str, Doubles] | None = None
    reference: tuple[tuple[Function, tuple[int, ...]], Reference] | None = None


def calibration_of(ctx: PassContext) -> CalibrationState:
    """The state of a compilation."""
    return ctx.state(CalibrationState)


def plan_of(ctx: PassContext) -> QuantPlan:
    """The plan of a compilation."""
    return ctx.state(QuantPlan)
