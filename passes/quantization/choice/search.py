"""The bound kept by measuring: assignments solved for, tried, and solved for again until what is measured is in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmcompiler.passes.quantization.choice.aim import MARGIN, MENDED, RUIN, Aim
from bmcompiler.passes.quantization.choice.solve import FLOAT, Problem, solve
from bmcompiler.passes.quantization.choice.trials import Chosen, Measured, Trials
from bmcompiler.passes.quantization.choice.ways import COARSE, DEAR, ERROR, WORTH, Ways

_WORTHWHILE = 0.7
"""Part of the error of the cheapest assignment that has to go for a dearer one that misses what is aimed at."""
_TRIALS = 4
"""Measured assignments after the first, at most."""
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

    whole: cycles of the program in float, where it was timed.
    """

    problem: Problem
    start: Found
    trials: Trials
    ways: Ways
    aim: Aim
    whole: int | None

    def found(self) -> Found:
        """The assignment that is taken."""
        return self._affordable() if self.ways.on_host else self._quick_enough()

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
        taken, best = min(tried, key=lambda each: (each[1].measured.worst > RUIN, each[0]))
        if taken >= whole and all(any(o.name == FLOAT for o in each) for each in self.problem.options.values()):
            plain = {u: next(o for o in each if o.name == FLOAT) for u, each in self.problem.options.items()}
            return Found(plain, Measured(np.zeros_like(best.measured.energies)))
        return best

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
        problem, first = self.problem, self.start
        least = problem.cycles(first.chosen)
        times: Callable[[float], float] = lambda factor: (1 + (factor - 1) / dearer) * least  # noqa: E731
        if self.aim.given:
            most = float("inf") if self.aim.cycles is None else times(self.aim.cycles)
            return self._aimed(problem, first, self.aim.wanted, most)
        cheap = problem.without(FLOAT) if self.ways.on_host else problem
        found = self._aimed(cheap, first, ERROR, min(times(WORTH), limit))
        worst, before = found.measured.worst, first.measured.worst
        most = COARSE if self.ways.on_host else float("inf")
        if worst > most or (worst > ERROR * MARGIN and worst > _WORTHWHILE * before):
            found = first
        if found.measured.worst > COARSE:
            finer = self._aimed(cheap, found, COARSE, min(times(DEAR), limit))
            if finer.measured.worst <= COARSE * MARGIN:
                return finer
        finer = found
        if self.ways.on_host and found.measured.worst > RUIN:
            finer = self._aimed(cheap, found, MENDED, float("inf"))
            problem = problem.without(*self.ways.modes[1:])
        for most in (limit, float("inf")):
            if found.measured.worst > RUIN:
                found = self._aimed(problem, found, MENDED, most)
        # the host has to take as much of the error away as any dearer form, where that is coarse without it
        worst, without = found.measured.worst, finer.measured.worst
        enough = without <= COARSE * MARGIN or worst > _WORTHWHILE * without
        return finer if without <= RUIN and enough else found

    def _aimed(self, problem: Problem, start: Found, error: float, most_cycles: float) -> Found:
        """From an assignment to one whose clusters all are within `error`, as cycles allow."""
        bound, best, now = error**2, start, start
        wanted = np.full(len(start.measured.energies), bound)
        for _ in range(_TRIALS):
            measured = now.measured.energies
            if (measured <= bound).all():
                break
            expected = sum((o.energies for o in now.chosen.values()), np.zeros(len(measured)))
            # narrower by what was underestimated; never wider than what a first order can know
            wanted = np.minimum(wanted, bound * np.clip(expected / np.maximum(measured, 1e-12), 1e-3, 1.0))
            solved = solve(problem, start.chosen, wanted, most_cycles)
            if solved == now.chosen:
                if most_cycles < float("inf"):
                    break
                wanted = wanted / 2
                continue
            now = Found(solved, self.trials.measure(solved))
            if now.measured.worst < best.measured.worst:
                best = now
            wanted = np.where(now.measured.energies > bound, wanted * 0.7, wanted)
        return best
