"""Assignments tried: lowered, measured on samples that the problem was not made of, timed as programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bmcompiler.analysis.profile import Timing
from bmcompiler.ir import Operation
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.choice.costs import OptionCosts
from bmcompiler.passes.quantization.choice.measured import Measured
from bmcompiler.passes.quantization.choice.programs import Programs, Shares
from bmcompiler.passes.quantization.choice.reference import Reference
from bmcompiler.passes.quantization.choice.solve import FLOAT, Option
from bmcompiler.passes.quantization.choice.units import Unit

Lower = Callable[[Mapping[Operation, str], Mapping[Operation, str]], tuple[Building[Any], set[Operation]]]
"""(mode by op, reason by op that stays in float) -> the integer net and the ops that became integers."""
Chosen = Mapping[Unit, Option]


@dataclass(frozen=True)
class Trials:
    """Tries assignments of one net. fixed, in_float: modes and floats that every assignment has."""

    lower: Lower
    reference: Reference
    held_back: Sequence[int]
    programs: Programs | None
    costs: OptionCosts
    fixed: Mapping[Operation, str]
    in_float: Mapping[Operation, str]

    def measure(self, chosen: Chosen) -> Measured:
        """What an assignment does on held-back steps."""
        return self.reference.measured(self._lowered(chosen), self.held_back)

    def timed(self, chosen: Chosen) -> tuple[Timing, Shares] | None:
        """The program of an assignment, and how units share its layers; None where none can be timed."""
        low = self._lowered(chosen)
        timing = None if self.programs is None else self.programs.timing(low.module)
        if timing is None:
            return None
        costs = self.costs
        return timing, {u: costs.plain(u) if o.name == FLOAT else costs.narrow(u, low) for u, o in chosen.items()}

    def cycles(self, chosen: Chosen) -> int | None:
        """Cycles of the program of an assignment."""
        timing = None if self.programs is None else self.programs.timing(self._lowered(chosen).module)
        return None if timing is None else timing.cycles

    def _lowered(self, chosen: Chosen) -> Building[Any]:
        modes = {op: o.name for unit, o in chosen.items() for op in unit.ops if o.name != FLOAT}
        floats = {op: "" for unit, o in chosen.items() for op in unit.ops if o.name == FLOAT}
        return self.lower({**modes, **self.fixed}, {**floats, **self.in_float})[0]
