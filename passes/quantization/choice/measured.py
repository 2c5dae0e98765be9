"""What an integer net does to the outputs: errors of clusters, errors of whole outputs, decisions kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt

import numpy as np

from bmcompiler.evaluation.confidence import larger_at_most
from bmcompiler.evaluation.decisions import DECISIONS
from bmcompiler.evaluation.measures import Count
from bmcompiler.numeric.arrays import Array, Doubles
from bmcompiler.passes.quantization.choice.tasks import energy, finite

Outputs = Mapping[str, Array]
_CHANCE = 1.0
"""Decisions that may be lost however few there are: of so few, one says nothing of a share."""
_LARGEST = 16.0
"""How many times too large the energy of errors is taken to be at most where decisions say so."""
_TINY = 1e-30


@dataclass(frozen=True)
class Measured:
    """energies: of errors, by cluster, mean of steps. noise, signal: energies of each float output. kept: decisions.

    larger, noisier: how many times the energies, and the noise of an output, are those of other samples at most
    (`larger_at_most`); 1 where nothing is known.
    """

    energies: Doubles
    noise: Mapping[str, float] = field(default_factory=dict)
    signal: Mapping[str, float] = field(default_factory=dict)
    kept: Mapping[str, Count] = field(default_factory=dict)
    larger: Doubles | float = 1.0
    noisier: Mapping[str, float] = field(default_factory=dict)

    @property
    def worst(self) -> float:
        """Relative error of the worst cluster."""
        return sqrt(self.energies.max(initial=0.0))

    @property
    def at_most(self) -> Measured:
        """The same of other samples, at most."""
        noise = {name: self.noisier.get(name, 1.0) * each for name, each in self.noise.items()}
        return replace(self, energies=self.energies * self.larger, noise=noise, larger=1.0, noisier={})

    @property
    def promised(self) -> float:
        """Relative error of the worst cluster or output that other samples have at most."""
        others = self.at_most
        return max([others.worst, *map(others.error, others.noise)])

    @property
    def decisions(self) -> Count:
        """Of all outputs."""
        return sum(self.kept.values(), Count())

    def error(self, output: str) -> float:
        """Relative error of an output."""
        return sqrt(self.noise.get(output, 0.0) / max(self.signal.get(output, 0.0), _TINY))

    def excess(self, output: str) -> float:
        """How many times more decisions of an output are lost than may be; errors and flips grow alike."""
        count = self.kept.get(output, Count())
        return (count.of - count.kept) / max((1 - DECISIONS) * count.of, _CHANCE)

    def shows(self, output: str) -> bool:
        """Whether errors before an output show there: not where it is many numbers of classes alone, and these stay."""
        few = (1 - DECISIONS) * self.kept.get(output, Count()).of < _CHANCE
        return output in self.signal or few or self.excess(output) > 1

    @property
    def keeps(self) -> bool:
        """Whether as many decisions of each output are kept as should be."""
        return all(self.excess(output) <= 1 for output in self.kept)


@dataclass(frozen=True)
class Goal:
    """What an assignment is to reach. roots: the output that each cluster belongs to.

    error: relative, of each cluster, None for any; outputs: of each output, too, and both of other samples (`at_most`).
    decisions: as many as should be kept.
    """

    roots: Sequence[str]
    error: float | None = None
    outputs: bool = False
    decisions: bool = False

    def over(self, measured: Measured, largest: float = _LARGEST) -> Doubles:
        """How many times too large the energy of each cluster's errors is; at most 1 where all is reached."""
        energies = (measured.at_most if self.outputs else measured).energies
        clusters = np.zeros(len(self.roots)) if self.error is None else energies / self.error**2
        return np.maximum(clusters, self._outputs_over(measured, largest))

    def reached(self, measured: Measured) -> bool:
        """Whether nothing is too large."""
        return bool((self.over(measured) <= 1).all())

    def rank(self, measured: Measured, cycles: int) -> tuple[float, int]:
        """The smaller the better: what misses by what is missing, what reaches it by cycles."""
        return max(float(self.over(measured, np.inf).max(initial=0.0)), 1.0), cycles

    def allowed(self, measured: Measured) -> Doubles:
        """Energies of clusters that would reach it, as far as errors of outputs and lost decisions follow them."""
        most = np.full(len(self.roots), np.inf if self.error is None else self.error**2)
        most = most / measured.larger if self.outputs else most
        over = self._outputs_over(measured)
        return np.where(over > 1, np.minimum(most, measured.energies / np.maximum(over, 1)), most)

    def _outputs_over(self, measured: Measured, largest: float = _LARGEST) -> Doubles:
        over = np.zeros(len(self.roots))
        if self.outputs and self.error is not None:
            others = measured.at_most
            over = np.array([(others.error(root) / self.error) ** 2 for root in self.roots])
        if self.decisions:
            over = np.maximum(over, [min(measured.excess(root) ** 2, largest) for root in self.roots])
        return over


def mean(parts: Sequence[Measured]) -> Measured:
    """Of single steps."""

    def total(each: Sequence[Mapping[str, float]]) -> dict[str, float]:
        return {name: sum(part[name] for part in each) for name in each[0]}

    def of_steps(each: Sequence[Mapping[str, float]]) -> Doubles:
        return np.array([list(part.values()) for part in each])

    kept = {name: sum((part.kept[name] for part in parts), Count()) for name in parts[0].kept}
    energies = sum((part.energies / len(parts) for part in parts), np.zeros(len(parts[0].energies)))
    steps = np.array([part.energies for part in parts])
    noises, signals = [p.noise for p in parts], [p.signal for p in parts]
    larger = larger_at_most(steps, np.ones_like(steps))
    noisier = dict(zip(noises[0], larger_at_most(of_steps(noises), of_steps(signals)).tolist()))
    return Measured(energies, total(noises), total(signals), kept, larger, noisier)


def energies_of(outputs: Outputs, wanted: Outputs) -> tuple[dict[str, float], dict[str, float]]:
    """(noise, signal) of the float outputs of one step."""
    floats = [name for name, array in wanted.items() if array.dtype.kind == "f"]
    noise = {name: energy([finite(outputs[name]) - finite(wanted[name])]) for name in floats}
    return noise, {name: energy([finite(wanted[name])]) for name in floats}
