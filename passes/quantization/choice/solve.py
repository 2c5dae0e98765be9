"""The cheapest assignment of options to units that keeps the expected error of every cluster within bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bmcompiler.numeric.arrays import Doubles
from bmcompiler.passes.quantization.choice.units import Unit

FLOAT = "float"


@dataclass(frozen=True)
class Option:
    """A way to compute a unit: cycles without those of conversions, and the energy it adds to each cluster."""

    name: str
    cycles: int
    energies: Doubles


@dataclass(frozen=True)
class Border:
    """Cycles to convert the results of a unit: its integers for readers in float, and the other way."""

    to_float: int
    to_integers: int


@dataclass
class Problem:
    """options: of each unit. reads: the units whose results a unit reads. border: of each unit."""

    options: Mapping[Unit, Sequence[Option]]
    reads: Mapping[Unit, Sequence[Unit]]
    border: Mapping[Unit, Border]

    def __post_init__(self) -> None:
        self.readers: dict[Unit, list[Unit]] = {unit: [] for unit in self.options}
        for unit, sources in self.reads.items():
            for source in sources:
                self.readers[source].append(unit)

    def integers(self) -> dict[Unit, Option]:
        """Each unit's cheapest option that is not float, if it has any; the more exact one of equals."""
        return {
            u: min(_integer(each) or each, key=lambda o: (o.cycles, o.energies.sum()))
            for u, each in self.options.items()
        }

    def without(self, *names: str) -> Problem:
        """The same without some options, but for units that have nothing else."""
        options = {u: [o for o in each if o.name not in names] or each for u, each in self.options.items()}
        return replace(self, options=options)

    def cycles(self, chosen: Mapping[Unit, Option]) -> int:
        """Of an assignment, conversions included."""
        return sum(o.cycles for o in chosen.values()) + sum(self._borders(unit, chosen) for unit in chosen)

    def _borders(self, unit: Unit, chosen: Mapping[Unit, Option]) -> int:
        """A result is converted once if a reader is of the other kind."""
        inside, border = chosen[unit].name == FLOAT, self.border[unit]
        other = any((chosen[r].name == FLOAT) != inside for r in self.readers[unit])
        return other * (border.to_integers if inside else border.to_float)

    def price(self, unit: Unit, option: Option, chosen: dict[Unit, Option]) -> int:
        """What an assignment costs more with another option for one unit."""
        around = [unit, *self.reads[unit]]
        before = chosen[unit].cycles + sum(self._borders(u, chosen) for u in around)
        old, chosen[unit] = chosen[unit], option
        after = option.cycles + sum(self._borders(u, chosen) for u in around)
        chosen[unit] = old
        return after - before


def solve(
    problem: Problem, start: Mapping[Unit, Option], bounds: Doubles, most_cycles: float = float("inf")
) -> dict[Unit, Option]:
    """Change options, those first that take most of the excess away for a cycle, until the energies are in bounds.

    A change is for one unit, or for all units between two that are float. It ends where nothing helps, or with the last
    assignment within `most_cycles`.
    """
    chosen = dict(start)
    total = sum((o.energies for o in chosen.values()), np.zeros(len(bounds)))
    cycles = problem.cycles(chosen)
    while True:
        weights = np.where(total > bounds, 1 / bounds, 0.0)
        if not weights.any():
            return chosen
        best: tuple[float, Unit, Option, int] | None = None
        for unit, options in problem.options.items():
            now = float(weights @ chosen[unit].energies)
            if now <= 0:
                continue
            for option in options:
                gain = now - float(weights @ option.energies)
                if option is chosen[unit] or gain <= 1e-9 * now:
                    continue
                price = problem.price(unit, option, chosen)
                worth = gain / max(price, 1)
                if (best is None or worth > best[0]) and cycles + price <= most_cycles:
                    best = worth, unit, option, price
        if best is None:
            return chosen
        _, unit, option, price = best
        total = np.maximum(total + option.energies - chosen[unit].energies, 0)
        chosen[unit] = option
        cycles += price


def eased(problem: Problem, chosen: Mapping[Unit, Option], bounds: Doubles) -> dict[Unit, Option]:
    """An assignment without what its bounds do not need: changes that spare most cycles first, while energies allow.

    What `solve` took early may be in the way of what it took later: an integer layer left between two in float only
    converts. Clusters without a bound, and those that exceed theirs, get no worse.
    """
    found = dict(chosen)
    total = sum((o.energies for o in found.values()), np.zeros(len(bounds)))
    limits = np.where(np.isfinite(bounds), np.maximum(bounds, total), total)
    while True:
        spares = (
            (problem.price(unit, option, found), number, unit, option)
            for number, (unit, options) in enumerate(problem.options.items())
            for option in options
            if option is found[unit] or (total + option.energies - found[unit].energies <= limits).all()
        )
        price, _, unit, option = min(spares, key=lambda each: each[:2])
        if price >= 0:
            return found
        total = np.maximum(total + option.energies - found[unit].energies, 0)
        found[unit] = option


def _integer(options: Sequence[Option]) -> list[Option]:
    return [option for option in options if option.name != FLOAT]
