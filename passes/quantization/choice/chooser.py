"""Choosing how each unit of a net computes: by what it does to each cluster, against cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bmcompiler.ir import Function, Operation
from bmcompiler.options import Progress
from bmcompiler.passes.quantization.choice.aim import Aim
from bmcompiler.passes.quantization.choice.costs import OptionCosts
from bmcompiler.passes.quantization.choice.programs import Programs, quickest
from bmcompiler.passes.quantization.choice.reference import Reference
from bmcompiler.passes.quantization.choice.search import Found, Search
from bmcompiler.passes.quantization.choice.solve import Problem
from bmcompiler.passes.quantization.choice.summary import Choice, told
from bmcompiler.passes.quantization.choice.trials import Chosen, Lower, Trials
from bmcompiler.passes.quantization.choice.units import is_layer, units
from bmcompiler.passes.quantization.choice.ways import Ways
from bmcompiler.passes.quantization.choice.weighing import Weighing, again
from bmcompiler.target import Target

_PRODUCTS = 80 << 30
"""Products that the measurement of consequences may take, about."""
_VALUES = 96 << 20
"""Values of errors of layers that are held for it, about."""
_SEARCHED = 6 << 30
"""Products of the samples that assignments are tried on, about, before decisions are looked at."""
_FEW = 2
"""Samples that the cheapest assignment is measured on, where it is all that is asked for."""


class Chooser:
    """Numbers behind a choice.

    1. The net is lowered once for each mode. Each unit's own error is measured on what it reads there: its integers
       against the same in float.
    2. These errors are put into the float net, one at a time, and what comes of them is measured in each cluster;
       errors of several units add up as independent noise. Errors of other modes have consequences in proportion.
       Where the cheapest assignment is exact enough this is left out, but if each decision is to be explained.
    3. The cheapest assignment that keeps every cluster within bounds is solved for, and measured on other samples;
       where it is worse than expected, the bounds of the next are narrower by as much. By default, of large nets,
       these are some of those held back; all of them show what was found, and what decisions need.

    The bounds are `Aim`. By default they are ERROR while cycles stay below WORTH times those of the cheapest
    assignment, if that brings much, COARSE while they stay below DEAR times and it is reached, and RUIN at any cost.
    Where programs can be timed, ERROR and COARSE may cost a share of the float program at most (`Ways`), or all
    of it where the cheapest takes more than that share.
    Where float is on the host, it is for RUIN that other modes leave above COARSE, if it brings much more than they
    do, and an error that stays above COARSE is worth no cycles. Decisions that are lost are worth more, too (`Search`).
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
        self.ways, self.programs, self.explains = ways, programs, explains
        self.progress: Progress = progress or (lambda items, label, total: iter(items))
        count = len(reference.steps)
        each = sum(op.products() for op in function.ops) or 1
        layers = sum(map(is_layer, function.ops))
        size = sum(result.type.size for op in function.ops if is_layer(op) for result in op.results) or 1
        affordable = min(int(_PRODUCTS / each / max(1, layers / 2)), _VALUES // size)
        self.tried = range(max(1, min(3, count // 2, affordable)))
        self.held_back = range(len(self.tried), count) if count > len(self.tried) else range(count)
        self.searched = max(_FEW, _SEARCHED // each)

    def choose(
        self,
        aim: Aim,
        fixed: Mapping[Operation, str],
        in_float: Mapping[Operation, str],
        rival: Choice | None = None,
    ) -> Choice:
        """Options for all units. `fixed`: modes that stay; `in_float`: what stays in float anyway, with the reason.

        rival: a choice that is there already; it is returned where the cheapest program shows that it stays.
        """
        modes = self.ways.modes[:1] if aim.is_cheapest else self.ways.modes
        nets = {mode: self.lower({**dict.fromkeys(self.function.ops, mode), **fixed}, in_float) for mode in modes}
        accepted = next(iter(nets.values()))[1]
        parts = units(self.function, accepted)
        costs = OptionCosts(self.function, self.target, self.ways, self.programs, fixed)
        look = self.held_back[: _FEW if aim.is_cheapest else None if aim.given else self.searched]
        trials = Trials(self.lower, self.reference, look, self.programs, costs, fixed, in_float)
        weighing = Weighing(self.reference, self.target, self.tried, fixed, self.progress)
        integer = [unit for unit in parts if unit.head in accepted]
        lows = {mode: low for mode, (low, _) in nets.items()}
        taken = costs.of_units(parts, integer, lows, spare=not self.explains)
        if not aim.is_cheapest and len(modes) > 1:  # which of two as quick ones is more exact
            weighing.measure(integer, taken, lows)
        problem, start = _start(weighing.problem(parts, taken), trials)
        if rival is not None and rival.stays(trials.cycles(start)):
            return rival
        first = trials.measure(start)
        everywhere = trials if aim.is_cheapest else replace(trials, held_back=self.held_back)
        coarse = aim.error_of(first) > aim.wanted or not (aim.is_cheapest or everywhere.measure(start).keeps)
        if coarse and costs.spared and not aim.is_cheapest:  # what accuracy may cost depends on float
            taken = costs.of_units(parts, integer, lows, spare=False)
            problem, start = _start(weighing.problem(parts, taken), trials)
            first = trials.measure(start)
        if not aim.is_cheapest and (self.explains or coarse):
            if not weighing.own:
                weighing.measure(integer, taken, lows)
            problem, start = weighing.weighed(problem, start)
        if weighing.own and coarse and self.ways.on_host:
            problem = costs.in_programs(problem, lows)
            start = again(problem, start)
        search = Search(problem, Found(start, first), trials, self.ways, aim, costs.whole)
        found = search.start
        if not aim.is_cheapest:
            search, found = search.on(self.held_back, search.aimed())
            found = search.decided(found)
        return told(search, found, weighing, explains=self.explains)


def _start(problem: Problem, trials: Trials) -> tuple[Problem, Chosen]:
    """The cheapest assignment, float included; the integers alone where programs cannot be timed."""
    if trials.costs.whole is None:
        return problem, problem.integers()
    problem, start, _ = quickest(problem, trials.timed, trials.costs.seen)
    return problem, start
