"""Choosing how each unit of a net computes: by what it does to each output group, against cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.ir import Function, Operation, Value
from bmcompiler.passes.quantization.base import Rules
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.choice.cost import cycles, macs
from bmcompiler.passes.quantization.choice.reference import Errors, Reference, energy
from bmcompiler.passes.quantization.choice.solve import FLOAT, Option, Problem, solve
from bmcompiler.passes.quantization.choice.units import Unit, is_layer, units
from bmcompiler.target import Target

Lower = Callable[[Mapping[Operation, str], Mapping[Operation, str]], tuple[Building[Any], set[Operation]]]
"""(mode by op, reason by op that stays in float) -> the integer net and the ops that became integers."""
Progress = Callable[[Iterable[Any], str, int], Iterator[Any]]
ERROR, WORTH = 0.02, 1.25
"""Relative error of an output group that is aimed at unless told otherwise, while it costs at most WORTH times the
cycles of the cheapest assignment."""
COARSE, DEAR = 0.1, 1.5
"""Relative error of an output group that is worth DEAR times the cycles of the cheapest, if that gets rid of it."""
RUIN, MENDED = 0.75, 0.5
"""Relative error of an output group above which cycles do not matter, and below which it is brought then."""
_WORTHWHILE = 0.7
"""Part of the error of the cheapest assignment that has to go for a dearer one that misses what is aimed at."""
_PRODUCTS = 100 << 30
"""Products that the measurement of consequences may take, about."""
_TRIALS = 4
"""Measured assignments after the first, at most."""
_MARGIN = 1.1
"""What may be missing to a bound when all trials are used up."""


@dataclass
class Choice:
    """What was decided and measured.

    modes: by layer. in_float: reason by op. errors: what the layer's own integers add to its result, relative. why:
    reason by layer. notes: sentences for the summary.
    """

    modes: dict[Operation, str] = field(default_factory=dict)
    in_float: dict[Operation, str] = field(default_factory=dict)
    errors: dict[Operation, float] = field(default_factory=dict)
    why: dict[Operation, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ways:
    """What a scheme can do with a layer.

    rules: of the scheme. modes: the forms of an integer layer, the first one where nothing can be measured.
    float_cycles: of an op that stays in float. worth: how many times the cycles of the cheapest assignment an exact one
    may take by default; dear: one that rids the net of a coarse error. steep: whether exp and the like are better in
    float.
    """

    rules: Rules
    modes: Sequence[str]
    float_cycles: Callable[[Operation, Target | None], int] = cycles
    worth: float = WORTH
    dear: float = DEAR
    steep: bool = True


@dataclass(frozen=True)
class Aim:
    """What is wanted: error of the worst output group, cycles over those of the cheapest; None: the default."""

    error: float | None = None
    cycles: float | None = None


Chosen = Mapping[Unit, Option]


class Chooser:
    """Numbers behind a choice.

    1. The net is lowered once for each mode. Each unit's own error is measured on what it reads there: its integers
       against the same in float.
    2. These errors are put into the float net, one at a time, and what comes of them is measured in each output group;
       errors of several units add up as independent noise. Errors of other modes have consequences in proportion.
    3. The cheapest assignment that keeps every group within bounds is solved for, and measured on other samples; where
       it is worse than expected, the bounds of the next are narrower by as much.

    The bounds are `Aim`. By default they are ERROR while cycles stay below WORTH times those of the cheapest
    assignment, if that brings much, COARSE while they stay below DEAR times and it is reached, and RUIN at any cost.
    """

    def __init__(
        self,
        function: Function,
        reference: Reference,
        lower: Lower,
        target: Target | None,
        ways: Ways,
        progress: Progress | None = None,
    ) -> None:
        self.function, self.reference, self.lower, self.target = function, reference, lower, target
        self.ways, self.modes = ways, ways.modes
        self.progress: Progress = progress or (lambda items, label, total: iter(items))
        count = len(reference.steps)
        each = sum(map(macs, function.ops)) or 1
        self.tried = range(max(1, min(3, count // 2, int(_PRODUCTS / each / max(1, len(self._layers()) / 2)))))
        self.held_back = range(len(self.tried), count) if count > len(self.tried) else range(count)

    def _layers(self) -> list[Operation]:
        return [op for op in self.function.ops if is_layer(op)]

    def choose(self, aim: Aim, fixed: Mapping[Operation, str], in_float: Mapping[Operation, str]) -> Choice:
        """Options for all units. `fixed`: modes that stay; `in_float`: what stays in float anyway, with the reason."""
        nets = {mode: self.lower({**dict.fromkeys(self.function.ops, mode), **fixed}, in_float) for mode in self.modes}
        accepted = next(iter(nets.values()))[1]
        parts = units(self.function, accepted)
        self.own: dict[Unit, dict[str, float]] = {}
        self.fixed, self.nets = fixed, nets
        problem = self._problem(parts, nets, accepted)
        start = problem.cheapest()
        first = self._measure(start, in_float)
        chosen, found = self._within(problem, start, first, aim, in_float)
        return self._told(problem, chosen, start, first, found, in_float)

    # -- steps 1 and 2 -----------------------------------------------------------------------------------------------
    def _problem(
        self, parts: Sequence[Unit], nets: Mapping[str, tuple[Building[Any], set[Operation]]], accepted: set[Operation]
    ) -> Problem:
        integer = [unit for unit in parts if unit.head in accepted]
        errors = {
            mode: self.reference.own_errors(low, integer, self.tried)
            for mode, (low, _) in self.progress(nets.items(), "measuring layers", len(nets))
        }
        cheap: dict[Unit, str] = {}
        costs: dict[Unit, dict[str, int]] = {}
        for unit in integer:
            costs[unit] = {mode: self._cost(unit, nets[mode][0]) for mode in self._modes_of(unit, nets)}
            cheap[unit] = min(costs[unit], key=lambda mode: (costs[unit][mode], energy(errors[mode][unit])))
        base: Errors = {unit: errors[cheap[unit]][unit] for unit in integer}
        consequences = self.reference.consequences(base, self.tried, self.progress)
        nothing = np.zeros(len(self.reference.groups.groups))
        options: dict[Unit, list[Option]] = {}
        for unit in parts:
            plain = sum(self.ways.float_cycles(op, self.target) for op in unit.ops)
            options[unit] = [] if unit.head in self.fixed else [Option(FLOAT, plain, nothing)]
            for mode, cost in costs.get(unit, {}).items():
                part = energy(errors[mode][unit]) / max(energy(base[unit]), 1e-30)
                options[unit].append(Option(mode, cost, consequences[unit] * part))
        self.own = {u: {mode: energy(errors[mode][u]) for mode in costs[u]} for u in integer}
        return self._connected(parts, options)

    def _connected(self, parts: Sequence[Unit], options: Mapping[Unit, Sequence[Option]]) -> Problem:
        made = {value: unit for unit in parts for value in unit.results}
        reads = {u: list(dict.fromkeys(made[v] for v in u.operands if v in made)) for u in parts}
        return Problem(options, reads, {unit: sum(map(self._border, unit.results)) for unit in parts})

    def _border(self, value: Value) -> int:
        """Cycles of a conversion between float and integers: about those of an element-wise float op."""
        return prod(value.shape) * 5 // _BYTES_PER_CYCLE + _SOME if value.type.is_float else 0

    def _modes_of(self, unit: Unit, nets: Mapping[str, tuple[Building[Any], set[Operation]]]) -> list[str]:
        """Modes that a unit has of its own; any one of them where they all are the same."""
        if unit.head in self.fixed:
            return [self.fixed[unit.head]] if self.fixed[unit.head] in nets else list(nets)[:1]
        has = [
            mode
            for mode, (low, _) in nets.items()
            if any(op.attributes.get("mode") == mode for op in low.made[unit.head])
        ]
        return has or list(nets)[:1]

    def _cost(self, unit: Unit, low: Building[Any]) -> int:
        return sum(cycles(op, self.target) for old in unit.ops for op in low.made[old] if op.operands)

    # -- step 3 --------------------------------------------------------------------------------------------------------
    def _measure(self, chosen: Chosen, in_float: Mapping[Operation, str]) -> NDArray[np.float64]:
        modes = {op: o.name for unit, o in chosen.items() for op in unit.ops if o.name != FLOAT}
        floats = {op: "" for unit, o in chosen.items() for op in unit.ops if o.name == FLOAT}
        low, _ = self.lower({**modes, **self.fixed}, {**floats, **in_float})
        return self.reference.output_errors(low, self.held_back)

    def _within(
        self, problem: Problem, start: Chosen, first: NDArray[np.float64], aim: Aim, in_float: Mapping[Operation, str]
    ) -> tuple[Chosen, NDArray[np.float64]]:
        """The assignment that `aim` asks for, and its measured errors."""
        least = problem.cycles(start)
        if aim.error is not None:
            most = float("inf") if aim.cycles is None else aim.cycles * least
            return self._aimed(problem, start, first, aim.error, most, in_float)
        if aim.cycles is not None:
            return self._aimed(problem, start, first, 1e-4, aim.cycles * least, in_float)
        chosen, found = self._aimed(problem, start, first, ERROR, self.ways.worth * least, in_float)
        worst, before = (sqrt(each.max(initial=0.0)) for each in (found, first))
        if worst > ERROR * _MARGIN and worst > _WORTHWHILE * before:
            chosen, found = start, first
        if sqrt(found.max(initial=0.0)) > COARSE:
            finer = self._aimed(problem, chosen, found, COARSE, self.ways.dear * least, in_float)
            if sqrt(finer[1].max(initial=0.0)) <= COARSE * _MARGIN:
                return finer
        if sqrt(found.max(initial=0.0)) > RUIN:
            chosen, found = self._aimed(problem, chosen, found, MENDED, float("inf"), in_float)
        return chosen, found

    def _aimed(
        self,
        problem: Problem,
        start: Chosen,
        measured: NDArray[np.float64],
        error: float,
        most_cycles: float,
        in_float: Mapping[Operation, str],
    ) -> tuple[Chosen, NDArray[np.float64]]:
        """From an assignment with measured energies to one whose groups are all within `error`, as far as cycles go."""
        bound, best = error**2, (dict(start), measured)
        wanted = np.full(len(measured), bound)
        now: Chosen = start
        for _ in range(_TRIALS):
            if (measured <= bound).all():
                break
            expected = sum((o.energies for o in now.values()), np.zeros(len(measured)))
            # narrower by what was underestimated; never wider than what a first order can know
            wanted = np.minimum(wanted, bound * np.clip(expected / np.maximum(measured, 1e-12), 1e-3, 1.0))
            solved = solve(problem, start, wanted, most_cycles)
            if solved == now:
                if most_cycles < float("inf"):
                    break
                wanted = wanted / 2
                continue
            now, measured = solved, self._measure(solved, in_float)
            if measured.max(initial=0.0) < best[1].max(initial=0.0):
                best = dict(now), measured
            wanted = np.where(measured > bound, wanted * 0.7, wanted)
        return best

    def _told(
        self,
        problem: Problem,
        chosen: Chosen,
        start: Chosen,
        first: NDArray[np.float64],
        found: NDArray[np.float64],
        in_float: Mapping[Operation, str],
    ) -> Choice:
        """What to say of each layer, and of the net."""
        choice = Choice(dict(self.fixed))
        names = [str(group) for group in self.reference.groups.groups]
        for unit, option in chosen.items():
            cheap = start[unit]
            if option.name == FLOAT:
                if unit.head in in_float or cheap.name == FLOAT:
                    continue
                worst = int(np.argmax(cheap.energies / np.maximum(first, 1e-30)))
                reason = f"integers would add {sqrt(cheap.energies[worst]):.2%} to output {names[worst]}"
                choice.in_float.update(dict.fromkeys(unit.ops, reason))
                continue
            for op in unit.ops:
                choice.modes[op] = option.name
            if unit.head not in self.fixed:
                choice.errors[unit.head] = self._relative(unit, option.name)
                choice.why[unit.head] = self._why(option, cheap, names)
        choice.notes.append(self._summary(choice, first, found, problem.cycles(start), problem.cycles(chosen)))
        return choice

    def _relative(self, unit: Unit, mode: str) -> float:
        return sqrt(self.own[unit][mode] / max(self.reference.energy_of(unit, self.tried), 1e-30))

    def _why(self, option: Option, cheap: Option, names: Sequence[str]) -> str:
        if not names:
            return "fewest cycles"
        worst = int(np.argmax(option.energies))
        adds = f"adds {sqrt(option.energies[worst]):.2%} to output {names[worst]}"
        if option.name == cheap.name:
            return f"fewest cycles, {adds}"
        return f"{adds}, {cheap.name} would {sqrt(cheap.energies[worst]):.2%}"

    def _summary(
        self, choice: Choice, first: NDArray[np.float64], found: NDArray[np.float64], least: int, cost: int
    ) -> str:
        layers = [op for op in choice.modes if is_layer(op)]
        counts = {mode: sum(choice.modes[op] == mode for op in layers) for mode in self.modes}
        text = ", ".join(f"{count} {mode}" for mode, count in counts.items() if count) or "none"
        floats = sum(is_layer(op) for op in choice.in_float)
        kept = f", {floats} layers in float" if floats else ""
        worst = ""
        if len(found) > 1:
            worst = f" (output {self.reference.groups.groups[int(np.argmax(found))]})"
        return (
            f"quantization modes: {text}{kept}; outputs are at most {sqrt(found.max(initial=0.0)):.2%} from float on "
            f"samples that the choice had not seen{worst}, {sqrt(first.max(initial=0.0)):.2%} with the fewest cycles, "
            f"of which the choice takes {cost / max(least, 1):.2f} times"
        )


_BYTES_PER_CYCLE = 32
_SOME = 100
"""Bytes that a conversion moves per cycle, and cycles that any takes: it orders choices, nothing else."""
