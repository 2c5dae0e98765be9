"""The bound kept by measuring: assignments solved for, tried, and solved for again until what is measured is in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bmcompiler.numeric.arrays import Doubles
from bmcompiler.passes.quantization.choice.aim import MARGIN, MENDED, RUIN, Aim
from bmcompiler.passes.quantization.choice.measured import Goal, Measured
from bmcompiler.passes.quantization.choice.solve import FLOAT, Option, Problem, eased, solve
from bmcompiler.passes.quantization.choice.stretch import float_stretch
from bmcompiler.passes.quantization.choice.trials import Chosen, Trials
from bmcompiler.passes.quantization.choice.ways import COARSE, DEAR, ERROR, WORTH, Ways

WORTHWHILE = 0.7
"""Part of the error of the cheapest assignment that has to go for a dearer one that misses what is aimed at."""
_TRIALS = 4
"""Measured assignments after the first, at most."""
_BACK = 3
"""Measured assignments besides, between one that misses and a much dearer one that does not."""
_NEAR = 1.1
"""How many times the cycles of one that misses are not much dearer."""
_TIGHTER = 0.7
"""By what bounds become narrower at the least after an assignment that missed."""
_LEAST = 1e-16
"""Energy of errors that is none: sums of energies are not more exact."""
_HALVED = 8
"""How often bounds are halved where they ask for nothing new."""
_PROGRAMS = 2
"""Programs that the search for what keeps decisions compiles, at most."""
_NOTABLE = 2.0
"""How many times the error that is asked for is worth a word, where only float keeps it."""
_FINER = 0.4
"""Part of the error that the next better assignment is to leave."""
_DEARER = 1.2
"""How many times dearer estimates become after a program that took too long, at least."""


@dataclass(frozen=True)
class Found:
    """An assignment, what it does, and how many times the cycles of the cheapest its program takes, where known."""

    chosen: Chosen
    measured: Measured
    ratio: float | None = None


@dataclass(frozen=True)
class Search:
    """From the cheapest assignment, and what it does, to what `aim` asks for.

    whole: cycles of the program in float, where it was timed. quick: the same search on fewer steps, where this one is
    on all of them.
    """

    problem: Problem
    start: Found
    trials: Trials
    ways: Ways
    aim: Aim
    whole: int | None
    tried: list[Found] = field(default_factory=list)
    quick: Search | None = None

    def aimed(self) -> Found:
        """What `aim` asks for, but for decisions."""
        return self._affordable() if self.ways.on_host else self._quick_enough()

    def on(self, steps: Sequence[int], found: Found) -> tuple[Search, Found]:
        """The search on other steps, and an assignment measured there."""
        if steps == self.trials.held_back:
            return self, found
        trials = replace(self.trials, held_back=steps)
        other = replace(self, trials=trials, tried=[], quick=self)
        return replace(other, start=other._measured(self.start)), other._measured(found)

    def _measured(self, found: Found) -> Found:
        """The same assignment on the steps of this search."""
        return replace(found, measured=self.trials.measure(found.chosen))

    def decided(self, found: Found) -> Found:
        """An assignment, or by default one that keeps decisions that it loses."""
        return found if self.aim.given or found.measured.keeps else self._deciding(found)

    def next_better(self, found: Found) -> Found | None:
        """What takes more cycles than an assignment and makes much less wrong: of those tried, or one more try.

        Both on the fewer steps, where there are such.
        """
        if self.quick is not None:
            return self.quick.next_better(self.quick._measured(found))

        def better(other: Found) -> bool:
            lost, less = (1 - each.measured.decisions.share for each in (found, other))
            nearer = other.measured.worst <= WORTHWHILE * found.measured.worst
            gains = less <= WORTHWHILE * lost if lost > 0 else nearer
            return gains and self.problem.cycles(other.chosen) > self.problem.cycles(found.chosen)

        if not any(map(better, self.tried)):
            goal = Goal(self.trials.reference.roots, found.measured.worst * _FINER)
            allowed = np.full(len(goal.roots), (goal.error or 0.0) ** 2)
            solved = self._other(self._cheap, found.chosen, found.chosen, allowed, float("inf"), ease=True)
            if solved is not None:
                self._tried(solved)
        return min(filter(better, self.tried), key=lambda each: self.problem.cycles(each.chosen), default=None)

    def _deciding(self, found: Found) -> Found:
        """An assignment that keeps the decisions that should be, in a program quicker than float; or the best tried.

        Where float is on the host, or nothing can be timed, whatever keeps more of them in integers is quicker; where
        few are lost, in DEAR times the cycles of the cheapest at most. Where many are, all in the finest form is tried,
        too: what single layers do to the outputs tells little then. Where any integers lose more than they keep, the
        host computes what keeps them.
        """
        goal = Goal(self.trials.reference.roots, decisions=True)
        taken = None if self.whole is None else self.trials.cycles(found.chosen)
        if taken is None or self.whole is None:
            few = 1 - found.measured.decisions.share <= COARSE
            most = DEAR * self.problem.cycles(self.start.chosen) if few else float("inf")
            best = self._worth(found, self._aimed(self._cheap, found, goal, most), DEAR)
            if self.ways.on_host and not few and not best.measured.keeps:
                best = self._worth(best, self._finest(found), DEAR)
            if not self.ways.on_host or best.measured.decisions.share >= RUIN:
                return best
            return self._worth(best, self._aimed(self.problem, best, goal, float("inf")))
        best, limit = found, self.problem.cycles(found.chosen) * self.whole / taken
        wider: float | None = None
        for _ in range(_PROGRAMS):
            before = len(self.tried)
            aimed = self._aimed(self.problem, found, goal, limit)
            finer = self._worth(found, aimed) if wider is None or aimed.measured.keeps else best
            needed = self.trials.cycles(finer.chosen)
            if needed is not None and needed >= self.whole:
                limit = self.problem.cycles(finer.chosen) * 0.9
                continue
            best = finer
            wider = None if finer.measured.keeps else self._limit_by(self.tried[before:], self.whole)
            if wider is None or wider <= _NEAR * limit:
                break
            limit = wider
        return best

    def _finest(self, found: Found) -> Found:
        """An assignment with all that is in integers in the last of their forms, where it has that."""
        forms = {u: [o for o in each if o.name == self.ways.modes[-1]] for u, each in self.problem.options.items()}
        finest = {unit: (*forms[unit], option)[0] for unit, option in found.chosen.items()}
        return found if finest == found.chosen else self._tried(finest)

    def _limit_by(self, tried: Sequence[Found], whole: int) -> float | None:
        """Estimated cycles of what takes `whole`, by the program of the dearest assignment: much in float, as it is."""
        dearest = max(tried, key=lambda each: self.problem.cycles(each.chosen), default=None)
        taken = None if dearest is None else self.trials.cycles(dearest.chosen)
        return None if dearest is None or taken is None else self.problem.cycles(dearest.chosen) * whole / taken

    def _worth(self, found: Found, finer: Found, most: float = WORTH) -> Found:
        """A dearer assignment where much fewer decisions are lost.

        It costs `most` times as much at most where few were lost, and it misses, too.
        """
        if finer.measured.keeps:
            return finer
        lost, less = (1 - each.measured.decisions.share for each in (found, finer))
        cheap = self.problem.cycles(finer.chosen) <= most * self.problem.cycles(found.chosen)
        return finer if less <= WORTHWHILE * lost and (cheap or lost > COARSE) else found

    @property
    def _cheap(self) -> Problem:
        """The options that cost cycles of the chip only."""
        return self.problem.without(FLOAT) if self.ways.on_host else self.problem

    def _quick_enough(self) -> Found:
        """What `aim` asks for; by default in at most its share of the float program, or all of it where no integers do.

        Where no program takes as little, it is the quickest of those that were tried. All in float is the answer where
        it is as quick.
        """
        least, whole = self.problem.cycles(self.start.chosen), self.whole
        if whole is None:
            return self._within(float("inf"))
        share = self.ways.share * whole
        most = limit = float(share if least <= share else whole)
        tried: list[tuple[int, Found]] = []
        for _ in range(_TRIALS):
            found = self._within(limit)
            taken = self.trials.cycles(found.chosen)
            if taken is None:
                return found
            again = any(found.chosen == other.chosen for _, other in tried)
            tried.append((taken, found))
            if self.aim.given or taken <= most or found.chosen == self.start.chosen or again:
                break
            limit = min(limit, self.problem.cycles(found.chosen)) * min(most / taken, 0.99)
        taken, best = min(tried, key=lambda each: (self._ruined(each[1]), each[0]))
        missed = self.aim.cycles is None and self._misses(best)
        if missed or (taken >= whole and all(map(_float_of, self.problem.options.values()))):
            return self._all_integers(share) or self._all_float(best)
        return best

    def _misses(self, found: Found) -> bool:
        """Whether an assignment is further from float than was asked for, with all trials used up."""
        return self.aim.error is not None and found.measured.promised > self.aim.error * MARGIN

    def _all_float(self, found: Found) -> Found:
        """All in float, where every unit has that, but for integers that spare cycles within what is asked for.

        Else an assignment that was found.
        """
        plain = {unit: _float_of(each) for unit, each in self.problem.options.items()}
        chosen = {unit: option for unit, option in plain.items() if option is not None}
        if len(chosen) < len(plain):
            return found
        near = self._eased(chosen, self.aim.error) if self.aim.error is not None else None
        if near is not None and self.aim.error_of(near.measured) <= self.aim.wanted and self._quicker_than_float(near):
            return near
        return Found(chosen, self.trials.measure(chosen))

    def nearest_miss(self, found: Found) -> Found | None:
        """What misses what is asked for by least, and is quicker, where nothing but float keeps it."""
        if not self.aim.given or any(option.name != FLOAT for option in found.chosen.values()):
            return None
        self._eased(found.chosen, self.aim.wanted * MARGIN)
        cycles = self.problem.cycles
        missed = [each for each in self.tried if cycles(each.chosen) < cycles(found.chosen)]
        error: Callable[[Found], float] = lambda each: self.aim.error_of(each.measured)  # noqa: E731
        nearest = min(missed, key=lambda each: (error(each), cycles(each.chosen)), default=None)
        return nearest if nearest is not None and error(nearest) <= _NOTABLE * self.aim.wanted else None

    def _quicker_than_float(self, found: Found) -> bool:
        taken = self.trials.cycles(found.chosen)
        return taken is not None and self.whole is not None and taken < self.whole

    def _eased(self, chosen: Chosen, error: float) -> Found | None:
        """What spares cycles of an assignment by errors that are expected to be within one; None without any."""
        larger = self.start.measured.larger if self.aim.error is not None else 1.0
        solved = eased(self.problem, chosen, np.full(len(self.start.measured.energies), error**2) / larger)
        return None if solved == chosen else self._tried(solved)

    def _all_integers(self, most: float) -> Found | None:
        """The integers alone, where they ruin and miss nothing and their program takes at most so many cycles.

        Estimates may miss them: conversions that a mixture shares, or is spared, are seen in its program alone.
        """
        chosen = self.problem.integers()
        taken = self.trials.cycles(chosen)
        found = None if taken is None or taken > most else Found(chosen, self.trials.measure(chosen))
        return None if found is None or self._ruined(found) or self._misses(found) else found

    def _affordable(self) -> Found:
        """What `aim` asks for, in a program that takes no longer than it allows; the cheapest where none does.

        Estimates decide; after a program that takes more they count as much more as they were wrong there.
        """
        start = self.start.chosen
        least, dearer = self.problem.cycles(start), 1.0
        base: int | None = None
        for _ in range(_TRIALS):
            found = self._within(float("inf"), dearer)
            most = self.aim.most(self.start.measured.worst, found.measured.worst)
            unknown = any(o.name == FLOAT != start[unit].name for unit, o in found.chosen.items())
            if found.chosen == start or unknown or most == float("inf"):
                return found
            base, taken = base or self.trials.cycles(start), self.trials.cycles(found.chosen)
            if base is None or taken is None:
                return found
            if taken <= most * base:
                return Found(found.chosen, found.measured, taken / base)
            more = self.problem.cycles(found.chosen) / least - 1
            dearer = max(dearer * _DEARER, (taken / base - 1) / max(more, 1e-3))
        return self.start

    def _within(self, limit: float, dearer: float = 1.0) -> Found:
        """The assignment that `aim` asks for.

        limit: cycles that accuracy may cost. dearer: how many times its estimate accuracy costs.
        """
        problem, first, roots = self.problem, self.start, self.trials.reference.roots
        least = problem.cycles(first.chosen)
        times: Callable[[float], float] = lambda factor: (1 + (factor - 1) / dearer) * least  # noqa: E731
        if self.aim.given:
            most = float("inf") if self.aim.cycles is None else times(self.aim.cycles)
            return self._aimed(problem, first, Goal(roots, self.aim.wanted, outputs=self.aim.error is not None), most)
        cheap = self._cheap
        found = self._aimed(cheap, first, Goal(roots, ERROR), min(times(WORTH), limit))
        worst, before = found.measured.worst, first.measured.worst
        most = COARSE if self.ways.on_host else float("inf")
        if worst > most or (worst > ERROR * MARGIN and worst > WORTHWHILE * before):
            found = first
        if found.measured.worst > COARSE:
            finer = self._aimed(cheap, found, Goal(roots, COARSE), min(times(DEAR), limit))
            if finer.measured.worst <= COARSE * MARGIN:
                return finer
        finer = found
        if self.ways.on_host and self._ruined(found):
            finer = self._aimed(cheap, found, Goal(roots, MENDED), float("inf"))
            problem = problem.without(*self.ways.modes[1:])
        for most in (limit, float("inf")):
            if self._ruined(found):
                found = self._aimed(problem, found, Goal(roots, MENDED), most)
        if self.ways.on_host and self._ruined(found):
            found = self._mended(found)
        # the host has to take as much of the error away as any dearer form, where that is coarse without it
        worst, without = found.measured.worst, finer.measured.worst
        enough = without <= COARSE * MARGIN or worst > WORTHWHILE * without
        return finer if not self._ruined(finer) and enough else found

    def _mended(self, found: Found) -> Found:
        """An assignment with what ruins it in float, where estimates do not tell what that is."""
        chosen = float_stretch(self.problem, found.chosen, lambda each: not self._ruined(self._tried(each)))
        return found if chosen is None else Found(chosen, self.trials.measure(chosen))

    def _ruined(self, found: Found) -> bool:
        """Whether integers make nonsense of what users see."""
        measured = found.measured
        seen = [measured.shows(root) for root in self.trials.reference.roots]
        return bool((measured.energies[seen] > RUIN**2).any())

    def _aimed(self, problem: Problem, start: Found, goal: Goal, most_cycles: float) -> Found:
        """From an assignment to one that reaches a goal as measured, as cycles allow; the best one that was tried.

        Bounds are for what is expected of a cluster: what may be measured, narrower by what was underestimated. They
        stay where they do: an output that keeps its decisions within them may need them. Where they were too narrow,
        and cost much, they are sought between the last that missed and the first that did not.
        By default what is within ERROR of float and was tried on the way is worth what it always is.
        """
        best, tried, ease = start, list[Found](), self.aim.given
        now = start
        missed, cycles = start.chosen, problem.cycles
        wide = wanted = _expected(start.chosen, len(goal.roots))
        narrow: Doubles | None = None
        for trial in range(_TRIALS + _BACK):
            reached = goal.reached(now.measured)
            if reached:
                if now is start or cycles(now.chosen) <= _NEAR * cycles(missed):
                    break
                narrow = wanted
            else:
                missed, wide = now.chosen, wanted
            if narrow is not None:
                wanted = _between(wide, narrow)
            elif trial >= _TRIALS:
                break
            else:
                measured = now.measured.energies
                # never wider than what a first order can know
                narrower = np.clip(_expected(now.chosen, len(measured)) / np.maximum(measured, 1e-12), 1e-3, 1.0)
                allowed = np.where(goal.over(now.measured) > 1, wanted * _TIGHTER, wanted) if trial else np.inf
                wanted = np.minimum(allowed, goal.allowed(now.measured) * narrower)
            solved = self._other(problem, start.chosen, now.chosen, wanted, most_cycles, ease=ease)
            if solved is None:
                break
            now = self._tried(solved)
            tried.append(now)
            best = min(best, now, key=lambda each: goal.rank(each.measured, cycles(each.chosen)))
        if self.aim.given or goal.decisions or best.measured.worst <= ERROR:
            return best
        worth = WORTH * cycles(best.chosen)
        exact = [each for each in tried if each.measured.worst <= ERROR and cycles(each.chosen) <= worth]
        return min(exact, key=lambda each: cycles(each.chosen), default=best)

    def _other(
        self, problem: Problem, start: Chosen, now: Chosen, wanted: Doubles, most_cycles: float, *, ease: bool
    ) -> Chosen | None:
        """An assignment within bounds other than the one before; None where cycles, or all there is, allow none."""
        for _ in range(_HALVED):
            bounds = np.maximum(wanted, _LEAST)
            solved = solve(problem, start, bounds, most_cycles)
            if ease:
                solved = eased(problem, solved, bounds)
            if solved != now:
                return solved
            if (_expected(solved, len(wanted)) > wanted).any():
                return None
            wanted = wanted / 2
        return None

    def _tried(self, chosen: Chosen) -> Found:
        found = Found(chosen, self.trials.measure(chosen))
        self.tried.append(found)
        return found


def _float_of(options: Sequence[Option]) -> Option | None:
    return next((option for option in options if option.name == FLOAT), None)


def _between(wide: Doubles, narrow: Doubles) -> Doubles:
    """Geometric means of bounds; the lower one where the other is infinite: nothing was expected to miss it."""
    known = np.isfinite(wide) & np.isfinite(narrow)
    roots = (np.sqrt(np.where(known, each, 0.0)) for each in (wide, narrow))
    return np.where(known, np.multiply(*roots), np.minimum(wide, narrow))


def _expected(chosen: Chosen, clusters: int) -> Doubles:
    """Energies of errors that are expected of an assignment, by cluster."""
    return sum((option.energies for option in chosen.values()), np.zeros(clusters))
