"""Choosing how each unit of a net computes: by what it does to each cluster, against cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.analysis.profile import Timing
from bmcompiler.ir import Function, Operation
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.choice.aim import MARGIN, MENDED, RUIN, Aim
from bmcompiler.passes.quantization.choice.costs import OptionCosts
from bmcompiler.passes.quantization.choice.programs import Programs, Shares, border_of, quickest
from bmcompiler.passes.quantization.choice.reference import Errors, Reference
from bmcompiler.passes.quantization.choice.solve import FLOAT, Option, Problem, solve
from bmcompiler.passes.quantization.choice.summary import summary
from bmcompiler.passes.quantization.choice.tasks import energy
from bmcompiler.passes.quantization.choice.units import Unit, is_layer, units
from bmcompiler.passes.quantization.choice.ways import COARSE, DEAR, ERROR, WORTH, Ways
from bmcompiler.target import Target

Lower = Callable[[Mapping[Operation, str], Mapping[Operation, str]], tuple[Building[Any], set[Operation]]]
"""(mode by op, reason by op that stays in float) -> the integer net and the ops that became integers."""
Progress = Callable[[Iterable[Any], str, int], Iterator[Any]]
_WORTHWHILE = 0.7
"""Part of the error of the cheapest assignment that has to go for a dearer one that misses what is aimed at."""
_PRODUCTS = 100 << 30
"""Products that the measurement of consequences may take, about."""
_FEW = 2
"""Samples that the cheapest assignment is measured on, where it is all that is asked for."""
_TRIALS = 4
"""Measured assignments after the first, at most."""
_DEARER = 1.2
"""How many times dearer estimates become after a program that took too long, at least."""


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


Chosen = Mapping[Unit, Option]


class Chooser:
    """Numbers behind a choice.

    1. The net is lowered once for each mode. Each unit's own error is measured on what it reads there: its integers
       against the same in float.
    2. These errors are put into the float net, one at a time, and what comes of them is measured in each cluster;
       errors of several units add up as independent noise. Errors of other modes have consequences in proportion.
       Where the cheapest assignment is exact enough this is left out, but if each decision is to be explained.
    3. The cheapest assignment that keeps every cluster within bounds is solved for, and measured on other samples;
       where it is worse than expected, the bounds of the next are narrower by as much.

    The bounds are `Aim`. By default they are ERROR while cycles stay below WORTH times those of the cheapest
    assignment, if that brings much, COARSE while they stay below DEAR times and it is reached, and RUIN at any cost.
    Where programs can be timed, ERROR and COARSE may cost a share of the float program at most (`Ways`), or all
    of it where the cheapest takes more than that share.
    Where float is on the host, it is for RUIN that other modes leave above COARSE, if it brings much more than they
    do, and an error that stays above COARSE is worth no cycles.
    """

    def __init__(
        self,
        function: Function,
        reference: Reference,
        lower: Lower,
        target: Target | None,
        ways: Ways,
        progress: Progress | None = None,
        programs: Programs | None = None,
        *,
        explains: bool = False,
    ) -> None:
        self.function, self.reference, self.lower, self.target = function, reference, lower, target
        self.ways, self.modes, self.programs, self.explains = ways, ways.modes, programs, explains
        self.progress: Progress = progress or (lambda items, label, total: iter(items))
        count = len(reference.steps)
        each = sum(op.products() for op in function.ops) or 1
        self.own: dict[Unit, dict[str, float]] = {}
        self.taken: float | None = None
        self.cheap: dict[Unit, tuple[str, list[NDArray[Any]]]] = {}
        self.tried = range(max(1, min(3, count // 2, int(_PRODUCTS / each / max(1, len(self._layers()) / 2)))))
        self.held_back = range(len(self.tried), count) if count > len(self.tried) else range(count)

    def _layers(self) -> list[Operation]:
        return [op for op in self.function.ops if is_layer(op)]

    def choose(self, aim: Aim, fixed: Mapping[Operation, str], in_float: Mapping[Operation, str]) -> Choice:
        """Options for all units. `fixed`: modes that stay; `in_float`: what stays in float anyway, with the reason."""
        modes = self.modes[:1] if aim.is_cheapest else self.modes
        self.held_back = self.held_back[:_FEW] if aim.is_cheapest else self.held_back
        nets = {mode: self.lower({**dict.fromkeys(self.function.ops, mode), **fixed}, in_float) for mode in modes}
        accepted = next(iter(nets.values()))[1]
        parts = units(self.function, accepted)
        self.fixed, self.in_float = fixed, in_float
        self.costs = OptionCosts(self.function, self.target, self.ways, self.programs, fixed)
        integer = [unit for unit in parts if unit.head in accepted]
        lows, of_units = {mode: low for mode, (low, _) in nets.items()}, self.costs.of_units
        costs = of_units(parts, integer, lows, spare=not self.explains)
        if not aim.is_cheapest and len(modes) > 1:  # which of two as quick ones is more exact
            self._measure_own(integer, costs, nets)
        problem, start = self._start(self._problem(parts, costs))
        first = self._measure(start)
        coarse = bool((first > aim.wanted**2).any())
        if coarse and self.costs.spared and not aim.is_cheapest:  # what accuracy may cost depends on float
            costs = of_units(parts, integer, lows, spare=False)
            problem, start = self._start(self._problem(parts, costs))
            first = self._measure(start)
        if not aim.is_cheapest and (self.explains or coarse):
            if not self.own:
                self._measure_own(integer, costs, nets)
            problem, start = self._weighed(problem, start)
        if self.own and coarse and self.ways.on_host:
            problem = self.costs.in_programs(problem, lows)
            start = _again(problem, start)
        find = self._affordable if self.ways.on_host else self._quick_enough
        chosen, found = (start, first) if aim.is_cheapest else find(problem, start, first, aim)
        return self._told(problem, chosen, start, first, found)

    # -- steps 1 and 2 -----------------------------------------------------------------------------------------------
    def _measure_own(
        self,
        integer: Sequence[Unit],
        costs: Mapping[Unit, Mapping[str, int]],
        nets: Mapping[str, tuple[Building[Any], set[Operation]]],
    ) -> None:
        """What the integers of each unit add to its own result."""
        errors = {
            mode: self.reference.own_errors(low, integer, self.tried)
            for mode, (low, _) in self.progress(nets.items(), "measuring layers", len(nets))
        }
        for unit in integer:
            own = self.own[unit] = {mode: energy(errors[mode][unit]) for mode in costs[unit] if mode != FLOAT}
            mode = min(own, key=lambda mode: (costs[unit][mode], own[mode]))
            self.cheap[unit] = mode, errors[mode][unit]

    def _problem(self, parts: Sequence[Unit], costs: Mapping[Unit, Mapping[str, int]]) -> Problem:
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
        return Problem(options, reads, {unit: border_of(unit.results, self.target) for unit in parts})

    def _weighed(self, problem: Problem, start: Chosen) -> tuple[Problem, Chosen]:
        """The same with what each mode of a unit adds to each cluster."""
        base: Errors = {unit: errors for unit, (_, errors) in self.cheap.items()}
        consequences = self.reference.consequences(base, self.tried, self.progress)

        def weighed(unit: Unit, option: Option) -> Option:
            if unit not in consequences or option.name == FLOAT:
                return option
            own = self.own[unit]
            part = own[option.name] / max(own[self.cheap[unit][0]], 1e-30)
            return replace(option, energies=consequences[unit] * part)

        options = {unit: [weighed(unit, option) for option in each] for unit, each in problem.options.items()}
        again = Problem(options, problem.reads, problem.border)
        return again, _again(again, start)

    # -- step 3 --------------------------------------------------------------------------------------------------------
    def _lowered(self, chosen: Chosen) -> Building[Any]:
        modes = {op: o.name for unit, o in chosen.items() for op in unit.ops if o.name != FLOAT}
        floats = {op: "" for unit, o in chosen.items() for op in unit.ops if o.name == FLOAT}
        return self.lower({**modes, **self.fixed}, {**floats, **self.in_float})[0]

    def _measure(self, chosen: Chosen) -> NDArray[np.float64]:
        return self.reference.output_errors(self._lowered(chosen), self.held_back)

    def _timed(self, chosen: Chosen) -> tuple[Timing, Shares] | None:
        """The program of an assignment, and how units share its layers."""
        low = self._lowered(chosen)
        timing = None if self.programs is None else self.programs.timing(low.module)
        if timing is None:
            return None
        costs = self.costs
        return timing, {u: costs.plain(u) if o.name == FLOAT else costs.narrow(u, low) for u, o in chosen.items()}

    def _start(self, problem: Problem) -> tuple[Problem, Chosen]:
        """The cheapest assignment, float included; the integers alone where programs cannot be timed."""
        if self.costs.whole is None:
            return problem, problem.integers()
        problem, start, _ = quickest(problem, self._timed)
        return problem, start

    def _quick_enough(
        self, problem: Problem, start: Chosen, first: NDArray[np.float64], aim: Aim
    ) -> tuple[Chosen, NDArray[np.float64]]:
        """What `aim` asks for; by default in at most its share of the float program, or all of it where no integers do.

        Where no program takes as little, it is the quickest of those that were tried. All in float is the answer where
        it is as quick.
        """
        least, whole = problem.cycles(start), self.costs.whole
        if whole is None:
            return self._within(problem, start, first, aim, float("inf"))
        share = self.ways.share * whole
        most = limit = float(share if least <= share else whole)
        tried: list[tuple[int, Chosen, NDArray[np.float64]]] = []
        for _ in range(_TRIALS):
            chosen, found = self._within(problem, start, first, aim, limit)
            timed = self._timed(chosen)
            if timed is None:
                return chosen, found
            taken, again = timed[0].cycles, any(chosen == other for _, other, _ in tried)
            tried.append((taken, chosen, found))
            if aim.given or taken <= most or chosen == start or again:
                break
            limit = min(limit, problem.cycles(chosen)) * min(most / taken, 0.99)
        ruined = [sqrt(found.max(initial=0.0)) > RUIN for _, _, found in tried]
        best = min(range(len(tried)), key=lambda k: (ruined[k], tried[k][0]))
        taken, chosen, found = tried[best]
        if taken >= whole and all(any(o.name == FLOAT for o in each) for each in problem.options.values()):
            plain = {u: next(o for o in each if o.name == FLOAT) for u, each in problem.options.items()}
            return plain, np.zeros_like(found)
        return chosen, found

    def _affordable(
        self, problem: Problem, start: Chosen, first: NDArray[np.float64], aim: Aim
    ) -> tuple[Chosen, NDArray[np.float64]]:
        """What `aim` asks for, in a program that takes no longer than it allows; the cheapest where none does.

        Estimates decide; after a program that takes more they count as much more as they were wrong there.
        """
        least, dearer = problem.cycles(start), 1.0
        base: int | None = None
        for _ in range(_TRIALS):
            chosen, found = self._within(problem, start, first, aim, float("inf"), dearer)
            most = aim.most(first, found)
            unknown = any(o.name == FLOAT != start[unit].name for unit, o in chosen.items())
            if chosen == start or unknown or most == float("inf"):
                return chosen, found
            base, taken = base or self._program(start), self._program(chosen)
            if base is None or taken is None:
                return chosen, found
            if taken <= most * base:
                self.taken = taken / base
                return chosen, found
            more = problem.cycles(chosen) / least - 1
            dearer = max(dearer * _DEARER, (taken / base - 1) / max(more, 1e-3))
        return start, first

    def _program(self, chosen: Chosen) -> int | None:
        """Cycles of the program of an assignment."""
        timing = None if self.programs is None else self.programs.timing(self._lowered(chosen).module)
        return None if timing is None else timing.cycles

    def _within(
        self,
        problem: Problem,
        start: Chosen,
        first: NDArray[np.float64],
        aim: Aim,
        limit: float,
        dearer: float = 1.0,
    ) -> tuple[Chosen, NDArray[np.float64]]:
        """The assignment that `aim` asks for, and its measured errors.

        limit: cycles that accuracy may cost. dearer: how many times its estimate accuracy costs.
        """
        least = problem.cycles(start)
        times: Callable[[float], float] = lambda factor: (1 + (factor - 1) / dearer) * least  # noqa: E731
        if aim.given:
            most = float("inf") if aim.cycles is None else times(aim.cycles)
            return self._aimed(problem, start, first, aim.wanted, most)
        cheap = problem.without(FLOAT) if self.ways.on_host else problem
        chosen, found = self._aimed(cheap, start, first, ERROR, min(times(WORTH), limit))
        worst, before = (sqrt(each.max(initial=0.0)) for each in (found, first))
        most = COARSE if self.ways.on_host else float("inf")
        if worst > most or (worst > ERROR * MARGIN and worst > _WORTHWHILE * before):
            chosen, found = start, first
        if sqrt(found.max(initial=0.0)) > COARSE:
            finer = self._aimed(cheap, chosen, found, COARSE, min(times(DEAR), limit))
            if sqrt(finer[1].max(initial=0.0)) <= COARSE * MARGIN:
                return finer
        finer = chosen, found
        if self.ways.on_host and sqrt(found.max(initial=0.0)) > RUIN:
            finer = self._aimed(cheap, chosen, found, MENDED, float("inf"))
            problem = problem.without(*self.modes[1:])
        for most in (limit, float("inf")):
            if sqrt(found.max(initial=0.0)) > RUIN:
                chosen, found = self._aimed(problem, chosen, found, MENDED, most)
        # the host has to take as much of the error away as any dearer form, where that is coarse without it
        worst, without = (sqrt(each.max(initial=0.0)) for each in (found, finer[1]))
        enough = without <= COARSE * MARGIN or worst > _WORTHWHILE * without
        return finer if without <= RUIN and enough else (chosen, found)

    def _aimed(
        self,
        problem: Problem,
        start: Chosen,
        measured: NDArray[np.float64],
        error: float,
        most_cycles: float,
    ) -> tuple[Chosen, NDArray[np.float64]]:
        """From an assignment with measured energies to one whose clusters all are within `error`, as cycles allow."""
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
            now, measured = solved, self._measure(solved)
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
    ) -> Choice:
        """What to say of each layer, and of the net."""
        choice = Choice(dict(self.fixed))
        names = [str(cluster) for cluster in self.reference.clusters.clusters]
        for unit, option in chosen.items():
            cheap = start[unit]
            if option.name == FLOAT:
                if unit.head in self.in_float or len(problem.options[unit]) == 1:
                    continue
                if cheap.name == FLOAT:
                    choice.in_float.update(dict.fromkeys(unit.ops, "integers would take more cycles"))
                    continue
                worst = int(np.argmax(cheap.energies / np.maximum(first, 1e-30)))
                reason = f"integers would add {sqrt(cheap.energies[worst]):.2%} to output {names[worst]}"
                choice.in_float.update(dict.fromkeys(unit.ops, reason))
                continue
            for op in unit.ops:
                choice.modes[op] = option.name
            if unit.head not in self.fixed and unit in self.own:
                choice.errors[unit.head] = self._relative(unit, option.name)
                choice.why[unit.head] = self._why(option, cheap, names) if self.explains else ""
        ratio = self.taken or problem.cycles(chosen) / max(problem.cycles(start), 1)
        layers = {mode: sum(choice.modes.get(op) == mode for op in self._layers()) for mode in self.modes}
        floats = [op.label for op in choice.in_float if is_layer(op)]
        output = names[int(np.argmax(found))] if len(found) > 1 else ""
        errors = [sqrt(each.max(initial=0.0)) for each in (found, first)]
        choice.notes.append(summary(layers, floats, errors, output, ratio, on_host=self.ways.on_host))
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


def _again(problem: Problem, chosen: Chosen) -> Chosen:
    """An assignment with the options of another problem."""
    return {u: next(o for o in problem.options[u] if o.name == option.name) for u, option in chosen.items()}
