"""What each option of each unit does to the outputs: its own error, and what the float net behind it makes of that."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from bmcompiler.ir import Operation
from bmcompiler.numeric.arrays import Array
from bmcompiler.options import Progress
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.choice.programs import border_of
from bmcompiler.passes.quantization.choice.reference import Errors, Reference
from bmcompiler.passes.quantization.choice.solve import FLOAT, Border, Option, Problem
from bmcompiler.passes.quantization.choice.tasks import energy
from bmcompiler.passes.quantization.choice.trials import Chosen
from bmcompiler.passes.quantization.choice.units import Unit
from bmcompiler.target import Target


class Weighing:
    """Makes the problem that assignments solve. tried: steps that it measures on; fixed: modes of layers that stay."""

    def __init__(
        self,
        reference: Reference,
        target: Target | None,
        tried: Sequence[int],
        fixed: Mapping[Operation, str],
        progress: Progress,
    ) -> None:
        self.reference, self.target, self.tried, self.fixed, self.progress = reference, target, tried, fixed, progress
        self.own: dict[Unit, dict[str, float]] = {}
        self.cheap: dict[Unit, tuple[str, list[Array]]] = {}

    def measure(
        self,
        integer: Sequence[Unit],
        costs: Mapping[Unit, Mapping[str, int]],
        nets: Mapping[str, Building[Any]],
    ) -> None:
        """What the integers of each unit add to its own result."""
        best: dict[Unit, tuple[int, float]] = {}
        for mode, low in self.progress(nets.items(), "measuring layers", len(nets)):
            for unit, errors in self.reference.own_errors(low, integer, self.tried).items():
                if mode in costs[unit]:
                    own = self.own.setdefault(unit, {})[mode] = energy(errors)
                    if unit not in best or (costs[unit][mode], own) < best[unit]:
                        best[unit], self.cheap[unit] = (costs[unit][mode], own), (mode, errors)

    def problem(self, parts: Sequence[Unit], costs: Mapping[Unit, Mapping[str, int]]) -> Problem:
        """Options; until they are weighed, their energies only tell which mode of a unit is more exact."""
        options: dict[Unit, list[Option]] = {unit: [] for unit in parts}
        clusters = len(self.reference.clusters.clusters)
        for unit in parts:
            for mode, cost in costs[unit].items():
                if mode != FLOAT or unit.head not in self.fixed or len(costs[unit]) == 1:
                    own = self.own.get(unit, {}).get(mode, 0.0)
                    options[unit].append(Option(mode, cost, np.full(clusters, own)))
        made = {value: unit for unit in parts for value in unit.results}
        reads = {u: list(dict.fromkeys(made[v] for v in u.operands if v in made)) for u in parts}
        known: dict[Hashable, Border] = {}  # of equal results: a target is asked for cycles of ops made for it
        border: dict[Unit, Border] = {}
        for unit in parts:
            alike = tuple(value.type for value in unit.results)
            if alike not in known:
                known[alike] = border_of(unit.results, self.target)
            border[unit] = known[alike]
        return Problem(options, reads, border)

    def weighed(self, problem: Problem, start: Chosen) -> tuple[Problem, Chosen]:
        """The same with what each mode of a unit adds to each cluster."""
        base: Errors = {unit: errors for unit, (_, errors) in self.cheap.items()}
        consequences = self.reference.consequences(base, self.tried, self.progress)

        def with_energies(unit: Unit, option: Option) -> Option:
            if unit not in consequences or option.name == FLOAT:
                return option
            own = self.own[unit]
            part = own[option.name] / max(own[self.cheap[unit][0]], 1e-30)
            return replace(option, energies=consequences[unit] * part)

        options = {unit: [with_energies(unit, option) for option in each] for unit, each in problem.options.items()}
        heavy = Problem(options, problem.reads, problem.border)
        return heavy, again(heavy, start)

    def relative(self, unit: Unit, mode: str) -> float:
        """What the integers of a unit add to its result, over the result."""
        return sqrt(self.own[unit][mode] / max(self.reference.energy_of(unit, self.tried), 1e-30))


def again(problem: Problem, chosen: Chosen) -> Chosen:
    """An assignment with the options of another problem."""
    return {u: next(o for o in problem.options[u] if o.name == option.name) for u, option in chosen.items()}
