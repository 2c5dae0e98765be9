"""The integer net with weights rounded by samples, if its outputs are nearer to float for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.ir import Function, Module, Operation
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.choice.aim import EXACT
from bmcompiler.passes.quantization.choice.reference import Reference
from bmcompiler.passes.quantization.choice.thresholds import confirmed, judged
from bmcompiler.passes.quantization.rounding import WeightRounding

Lowered = tuple[Building[Any], set[Operation]]
_LARGE = 1 << 30
"""Products of a net from which on rounding takes seconds."""


def rounded(
    module: Module,
    function: Function,
    reference: Reference,
    lower: Callable[[WeightRounding | None], Lowered],
    nearest: Callable[[], Building[Any]],
    enough: float,
) -> tuple[Lowered, WeightRounding, str | None]:
    """The integer net, what its weights became, and a sentence on it.

    Every other step of the reference is measured; the remaining ones judge each layer, and then the outputs of the net.
    Where these do not come nearer to float, all weights are the nearest integers, and so they are in large nets where
    these leave no cluster a larger error than `enough`, and in any where that is EXACT. nearest: gives the net with
    them, which may have been measured before.
    """
    known = None if reference.look is None else reference.look.taken()
    steps, judges = reference.steps, range(0, len(reference.steps), 2)
    rounding = WeightRounding(function)
    before = reference.output_errors(nearest(), judges) if len(steps) > 1 else np.zeros(0)
    large = sum(op.products() for op in function.ops) > _LARGE
    if len(steps) < 2 or (before <= (enough if large else EXACT) ** 2).all():
        return lower(None), rounding, None
    rounding.measure(module, function, steps, known)
    del known
    better = lower(rounding)
    now = reference.output_errors(better[0], judges)
    if rounding.layers and confirmed(now, before):
        found = f"{judged(now):.2%} from float, {judged(before):.2%} with the nearest integers"
        return better, rounding, f"weights of {rounding.layers} layers are rounded by samples: outputs are {found}"
    rounding.found.clear()
    return lower(None), rounding, None
