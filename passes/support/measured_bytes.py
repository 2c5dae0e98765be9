"""Whether eight bits do for norms, softmax and their like in a net as it is: measured, on a copy of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import ge
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bmcompiler.errors import CalibrationError
from bmcompiler.ir import Function, Module, copy_module
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.data import inputs_of

if TYPE_CHECKING:
    from bmcompiler.passes.quantization.choice.measured import Measured

NEAR = 2.0**-5
"""Relative error of an output that eight bits make by themselves, about. Most nets are far from it on either side: more
is made where rows of a softmax or a norm differ in their sums."""
_TIMES = 2.0
"""How many times further from float a net may be than it is with the host's floats."""
_SAMPLES = 8
"""Runs of the net that are looked at."""
_BETWEEN = "merge-reshapes,calibrate{method=mse}"
"""What gives a net that was taken apart its thresholds; choices of methods and modes only bring it nearer to float."""


class TakeApart(Protocol):
    """Legalizes a module, with or without what eight bits may be too coarse for; whether that changed it."""

    def __call__(self, module: Module, *, coarse: bool) -> bool: ...


@dataclass
class Statistics:
    """What was decided for the net in its first input shape, None before."""

    in_bytes: bool | None = None


@dataclass(frozen=True)
class _Form:
    """The net in one form: what its integers do to the outputs of each function, and whether any compute at all."""

    measured: Sequence[Measured]
    computes: bool

    @property
    def error(self) -> float:
        """Of the worst output."""
        return max((each.error(name) for each in self.measured for name in each.noise), default=0.0)

    @property
    def kept(self) -> list[float]:
        """Decisions of each function."""
        return [each.decisions.kept for each in self.measured]


def bytes_do(module: Module, take_apart: TakeApart, ctx: PassContext) -> bool:
    """Whether the net with all of it in bytes is near float on the samples.

    It is to be nearly as near as with the host's floats, where the chip has anything to do beside these, and to lose no
    more decisions. take_apart: what legalization makes of a module. Another input shape takes over what was found for
    the first. Without samples that thresholds are measured by nothing can be known, and the answer is no.
    """
    state = ctx.state(Statistics)
    if state.in_bytes is None:
        state.in_bytes = ctx.data is not None and ctx.table is None and _near(module, take_apart, ctx)
    return state.in_bytes


def _near(module: Module, take_apart: TakeApart, ctx: PassContext) -> bool:
    from bmcompiler.passes.quantization.choice.aim import RUIN

    whole = _form(module, partial(take_apart, coarse=True), ctx)
    if whole is None:
        return False
    near = whole.error <= NEAR and all(each.worst <= RUIN for each in whole.measured)
    parted = _form(module, partial(take_apart, coarse=False), ctx) if near else None
    said = ""
    if parted is not None and parted.computes:  # else the chip would have nothing to do
        near = whole.error <= _TIMES * parted.error and all(map(ge, whole.kept, parted.kept))
        said = f", {parted.error:.2%} with these in float"
    who = "the chip computes" if near else "the host computes"
    said = f"in eight bits outputs are {whole.error:.2%} from float{said}"
    ctx.notes.append(f"{who} norms, softmax and their like: {said}")
    return near


def _form(module: Module, take_apart: Callable[[Module], bool], ctx: PassContext) -> _Form | None:
    """None where it has no thresholds."""
    from bmcompiler.passes.precision.calibrate import thresholds
    from bmcompiler.passes.quantization.choice.decide import reference_of
    from bmcompiler.passes.quantization.choice.hostile import hostile
    from bmcompiler.passes.quantization.nets import Nets
    from bmcompiler.passes.quantization.scheme import array_of
    from bmcompiler.passes.quantization.shift.scheme import Shifts

    copy = copy_module(module)
    take_apart(copy)
    try:
        known = PassContext(ctx.target, _few(copy.main, ctx), pool=ctx.pool, decisions=ctx.decisions)
        run_pipeline(copy, _BETWEEN, known)
    except CalibrationError:  # calibration of the whole net says it, or this form alone has infinite powers of e
        return None
    found, computes = [], False
    for function in copy.functions:
        reference = reference_of(copy, function, known, _SAMPLES)
        unfit = hostile(function, thresholds(function), partial(array_of, copy), steep=False)
        modes = dict.fromkeys(function.ops, Shifts.layer_modes[0])
        low, accepted = Nets(copy, function, ctx.target, None, strict=False).nearest(modes, unfit)
        found.append(reference.measured(low, range(len(reference.steps))))
        computes |= any(isinstance(op, TensorOp) and not op.moves_only for op in accepted)
    return _Form(found, computes)


def _few(function: Function, ctx: PassContext) -> dict[str, Array]:
    """Samples of the runs that are looked at."""
    from bmcompiler.passes.quantization.choice.decide import steps_to_measure

    steps = inputs_of(function, ctx.data or {}, steps_to_measure(function, ctx, _SAMPLES))
    return {name: np.concatenate([np.atleast_1d(step[name]) for step in steps]) for name in function.input_names}
