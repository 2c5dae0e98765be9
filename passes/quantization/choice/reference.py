"""The float net on samples: what integers do to each part of it, and what that does to the outputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from bmcompiler.evaluation.decisions import AUTO, decisions
from bmcompiler.files.carried import Carried
from bmcompiler.interpreter import Compute, evaluate_op, run_function
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.numeric.arrays import Array, Doubles
from bmcompiler.options import Judged, Progress
from bmcompiler.parallel.task import InlinePool, Pool
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.choice.clusters import Clusters, looked_at
from bmcompiler.passes.quantization.choice.measured import Measured, energies_of, mean
from bmcompiler.passes.quantization.choice.remembered import Remembered
from bmcompiler.passes.quantization.choice.tasks import (
    BEFORE,
    Inputs,
    RunStep,
    Weigh,
    array_of,
    computed,
    energy,
    finite,
    judged_whole,
    real,
    values_of,
    watched,
)
from bmcompiler.passes.quantization.choice.units import Unit
from bmcompiler.passes.quantization.look import Look

Errors = dict[Unit, list[Array]]
"""What a unit's own integers add to its first result, one array per step."""


_MOST = 128
"""Errors that are put into the float net one at a time, more of them in runs of neighbours."""
_PRODUCTS = 32 << 30
"""Products that these runs have together in a step, about: of large nets there are fewer, but `_LEAST`."""
_LEAST = 16
_TINY = 1e-30


class Reference:
    """The float net on some steps of samples, in the processes of `pool`. All arrays are real values."""

    def __init__(
        self,
        module: Module,
        function: Function,
        steps: Sequence[Inputs],
        pool: Pool | None = None,
        look: Look | None = None,
        metric: Judged = AUTO,
    ) -> None:
        """look: what was seen of these steps, if they have run. metric: what outputs decide (`decisions`)."""
        self.module, self.function, self.steps, self.look = module, function, steps, look
        self.pool = pool or InlinePool()
        self.watched, self.returned = watched(function), computed(function)
        self.whole = judged_whole(function, len(steps))
        seen = map(self._watch, steps) if look is None else look.outputs.values()
        steps_seen = list(seen)
        self.outputs = [self._thinned(each) for each in steps_seen]
        self.wanted = [{name: each[value] for name, value in self.returned.items()} for each in steps_seen]
        self.judge = decisions(function, self.wanted, metric)
        self.clusters = Clusters(self.outputs, self.judge.least)
        self.energies: dict[Unit, float] = {}
        self.remembered = Remembered()
        self._measured: WeakKeyDictionary[Building[Any], dict[int, Measured]] = WeakKeyDictionary()

    def _watch(self, step: Inputs) -> dict[Value, Array]:
        seen: dict[Value, Array] = {}
        wanted = {*self.watched.values(), *self.returned.values()}

        def observe(value: Value, array: Array) -> None:
            if value in wanted:
                seen[value] = array if value in self.whole else looked_at(array)

        run_function(self.module, self.function, step, observe)
        return seen

    def own_errors(self, low: Building[Any], units: Sequence[Unit], steps: Sequence[int]) -> Errors:
        """The difference that the integers of each unit alone make, on what the unit reads in the integer net.

        Rounding of operands counts where a unit reads them in another format than they have. `low`: the integer net.
        """
        found: Errors = {unit: [] for unit in units}

        def compare(unit: Unit, seen: Mapping[Value, Array]) -> None:
            exact = self._compute(unit, seen)
            wrong = finite(seen[unit.results[0]]) - finite(_within(low, unit, exact))
            found[unit].append(np.where(np.isfinite(exact), wrong, 0))
            self.energies[unit] = energy([finite(exact)])

        for k in steps:
            _run_by_unit(low, self.steps[k], units, compare, self.remembered.computing(low, k))
        return found

    def _compute(self, unit: Unit, values: Mapping[Value, Array]) -> Array:
        """The first result of a unit in float."""
        known = dict(values)
        for op in unit.ops:
            known.update(zip(op.results, evaluate_op(op, [array_of(self.module, v, known) for v in op.operands])))
        return known[unit.results[0]]

    def consequences(
        self, errors: Errors, steps: Sequence[int], progress: Progress | None = None
    ) -> dict[Unit, Doubles]:
        """What each unit's own error does to each cluster: energies as of `Clusters.energies`, mean of the steps.

        One run of the float net per step, and for each unit of what comes behind it; in the processes of the pool. Of
        more units than are affordable, neighbours are disturbed together (`_together`): work grows with the net, not
        with its square. They share what comes of it by their errors, each relative to its result.
        """
        places = {op: place for place, op in enumerate(self.function.ops)}
        runs = sorted(_together(self.function, list(errors)), key=lambda run: places[run[0].head])
        work = [(number, run) for number in range(len(steps)) for run in runs]
        parts = ((steps[number], {places[u.ops[-1]]: errors[u][number] for u in run}) for number, run in work)
        counted = self.pool.run(Weigh(self._carried(self.function), self.clusters, self.steps), enumerate(parts))
        found = dict(counted if progress is None else progress(counted, "weighing layers", len(work)))
        total = {unit: np.zeros(len(self.clusters.clusters)) for unit in errors}
        for place, (number, run) in enumerate(work):
            energies, results = found[place]
            self.energies.update(zip(run, results))
            noise = [energy([errors[unit][number]]) / max(whole, _TINY) for unit, whole in zip(run, results)]
            for unit, each in zip(run, noise):
                total[unit] += energies * each / max(sum(noise), _TINY) / len(steps)
        return total

    def energy_of(self, unit: Unit, steps: Sequence[int]) -> float:
        """Energy of the first result of a unit, about, over some steps; known once its own errors are."""
        return self.energies[unit] * len(steps)

    @property
    def roots(self) -> list[str]:
        """The output that each cluster belongs to."""
        names = sorted(self.function.output_names, key=len, reverse=True)
        watched_outputs = [cluster.output for cluster in self.clusters.clusters]
        return [next(n for n in names if o == n or o.startswith(f"{n}{BEFORE}")) for o in watched_outputs]

    def output_errors(self, low: Building[Any], steps: Sequence[int]) -> Doubles:
        """Energies of the errors of an integer net in each cluster, mean of the steps."""
        return self.measured(low, steps).energies

    def measured(self, low: Building[Any], steps: Sequence[int]) -> Measured:
        """What an integer net does to the outputs in the steps."""
        known = self._measured.setdefault(low, {})
        known.update(self._measure(low, [k for k in steps if k not in known]))
        return mean([known[k] for k in steps]) if steps else Measured(np.zeros(len(self.clusters.clusters)))

    def _measure(self, low: Building[Any], steps: Sequence[int]) -> dict[int, Measured]:
        """The same by step."""
        places = {value: place for place, value in enumerate(values_of(low.new))}
        old = dict.fromkeys((*self.watched.values(), *self.returned.values()))
        news = {value: low.ints.get(value) or low.reals.get(value) for value in old}
        known = {value: places[new] for value, new in news.items() if new is not None}
        whole = [value in self.whole for value in known]
        task = RunStep(self._carried(low.new, low.module), list(known.values()), whole)
        fed = (_fed(low, self.steps[k]) for k in steps)
        if type(self.pool) is InlinePool:  # another one may have its own reasons to see all parts
            computing = [self.remembered.computing(low, k) for k in steps]
            found = dict(enumerate(task.looked(low.module, *each) for each in zip(fed, computing)))
        else:
            found = dict(self.pool.run(task, enumerate(fed)))
        return {k: self._judged(k, dict(zip(known, found[number]))) for number, k in enumerate(steps)}

    def _judged(self, step: int, found: Mapping[Value, Array]) -> Measured:
        watched, wanted = self.outputs[step], self.wanted[step]
        inner = {**watched, **self._thinned(found)}
        outer = {name: found.get(value, wanted[name]) for name, value in self.returned.items()}
        noise, signal = energies_of(*map(self.judge.bounded, (outer, wanted)))
        return Measured(self.clusters.energies(inner, watched), noise, signal, self.judge.count(outer, wanted))

    def _thinned(self, seen: Mapping[Value, Array]) -> dict[str, Array]:
        """What errors of clusters are told by, as far as it was seen."""
        parts = {name: value for name, value in self.watched.items() if value in seen}
        return {name: looked_at(seen[v]) if v in self.whole else seen[v] for name, v in parts.items()}

    def _carried(self, function: Function, module: Module | None = None) -> Carried:
        whole = Module([function])
        whole.weights = (module or self.module).weights
        return Carried(whole)


def _together(function: Function, units: Sequence[Unit]) -> list[list[Unit]]:
    """Units whose errors are put into the net in one run: neighbours that compute alike for readers alike.

    A sum that all goes through has other consequences than a layer of a branch.
    """
    behind = max(1, sum(op.products() for op in function.ops) // 2)  # products behind a unit, on average
    size = max(1, -(-len(units) // min(_MOST, max(_LEAST, _PRODUCTS // behind))))
    alike: dict[Hashable, list[Unit]] = {}
    for unit in units:
        readers = {op.short_name for result in unit.results for op in result.users}
        alike.setdefault((unit.head.short_name, *sorted(readers)), []).append(unit)
    return [some[k : k + size] for some in alike.values() for k in range(0, len(some), size)]


def _run_by_unit(
    low: Building[Any],
    inputs: Inputs,
    units: Sequence[Unit],
    look: Callable[[Unit, Mapping[Value, Array]], None],
    compute: Compute,
) -> None:
    """Let each unit look at what it reads and makes, values of the old function as the new one computes them.

    It does so as soon as these are there; what no other is still to look at is dropped.
    """
    olds: dict[Value, dict[Value, None]] = {}
    asked: dict[Unit, set[Value]] = {unit: set() for unit in units}
    waiting: dict[Value, dict[Unit, None]] = {}
    for unit in units:
        for old in (*unit.operands, *unit.results):
            new = low.ints.get(old) or low.reals[old]
            olds.setdefault(new, {})[old] = None
            waiting.setdefault(new, {})[unit] = None
            asked[unit].add(new)
    missing = {unit: len(news) for unit, news in asked.items()}
    seen: dict[Value, Array] = {}

    def observe(new: Value, array: Array) -> None:
        if new not in waiting:
            return
        seen.update(dict.fromkeys(olds[new], real(new, array)))
        for unit in list(waiting[new]):
            missing[unit] -= 1
            if missing[unit]:
                continue
            look(unit, seen)
            for each in asked[unit]:
                del waiting[each][unit]
                if not waiting[each]:
                    for old in olds[each]:
                        del seen[old]

    run_function(low.module, low.new, _fed(low, inputs), observe, compute=compute)


def _fed(low: Building[Any], inputs: Inputs) -> dict[str, Array]:
    """A step as the inputs of the integer net."""
    return {
        name: array if v.type.quant is None else low.integers(array, low.format_of(v))
        for (name, array), v in zip(inputs.items(), low.new.arguments)
    }


def _within(low: Building[Any], unit: Unit, exact: Array) -> Array:
    """A float result as far as the integer form has to make it: bounds of an activation behind it saturate here."""
    value = unit.results[0]
    new = low.ints.get(value)
    users: list[Operation] = value.users
    if new is None or len(users) != 1 or not (users[0].short_name == "relu" or users[0] in low.plan.saturating):
        return exact
    limits = np.iinfo(new.type.numpy)
    return np.clip(exact, *(real(new, np.array([bound])) for bound in (limits.min, limits.max)))
