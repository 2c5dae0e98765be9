"""Cycles of units from whole programs, which know what an op alone does not: what stays in local memory, what waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import prod

from bmcompiler.analysis.profile import Timing
from bmcompiler.analysis.trial import Trial
from bmcompiler.ir import Block, Module, Quant, TensorType, Value
from bmcompiler.ops import find_op
from bmcompiler.passes.quantization.choice.cut import cheapest
from bmcompiler.passes.quantization.choice.solve import FLOAT, Border, Option, Problem
from bmcompiler.passes.quantization.choice.units import Unit
from bmcompiler.target import Target

Shares = Mapping[Unit, Mapping[str, int]]
"""What the ops of a unit are estimated to take, by the label of their layer: units of one layer share its cycles so."""
_CONVERSIONS = ("quantize", "dequantize")
_JOINED = "+"
"""Between the layers that an op stands for (`Operation.label`)."""
_TRIALS = 4
"""Programs that the search for the cheapest assignment compiles, at most."""
_DEARER = 2.0
"""How many times its cost a conversion is taken to cost after a program where it cost more, at most."""


@dataclass(frozen=True)
class Programs:
    """Times nets, each once. plain: makes the net of which nothing is integers; pass_name: the pass that made them."""

    trial: Trial
    plain: Callable[[], Module]
    pass_name: str
    known: dict[Module, Timing | None] = field(default_factory=dict)

    def timing(self, module: Module) -> Timing | None:
        """Of an integer net."""
        if module not in self.known:
            self.known[module] = self.trial.timing(module, self.pass_name)
        return self.known[module]

    def in_float(self) -> Timing | None:
        """Of the net in float."""
        return self.timing(self.plain())


def unit_cycles(timing: Timing, shares: Shares) -> dict[Unit, int]:
    """What units take in a program, without conversions between integers and float."""
    layers: dict[str, int] = {}
    for layer in timing.layers:
        if layer.kind not in _CONVERSIONS:
            layers[layer.name] = layers.get(layer.name, 0) + layer.cycles
    whole: dict[str, int] = {}
    for parts in shares.values():
        for label, part in parts.items():
            whole[label] = whole.get(label, 0) + part
    taken = _taken(layers, whole)
    return {
        unit: sum(taken[label] * part // max(whole[label], 1) for label, part in parts.items())
        for unit, parts in shares.items()
    }


def _taken(layers: Mapping[str, int], whole: Mapping[str, int]) -> dict[str, int]:
    """Cycles of the layers that are called as in `whole`; those that stand for several share theirs by its numbers."""
    taken = {label: layers.get(label, 0) for label in whole}
    named: dict[str, list[str]] = {}
    for label in whole:
        named.setdefault(label.split(_JOINED)[0], []).append(label)
    for name, cycles in layers.items():
        names = set(name.split(_JOINED))
        if name in whole or len(names) == 1:
            continue
        inside = [one for each in names for one in named.get(each, ()) if names.issuperset(one.split(_JOINED))]
        together = max(sum(whole[label] for label in inside), 1)
        for label in inside:
            taken[label] += cycles * whole[label] // together
    return taken


Seen = Set[tuple[Unit, str]]
"""Options, by unit and name, whose cycles are those of a program."""


def with_cycles(
    problem: Problem, known: Mapping[Unit, tuple[str, int]], conversions: float, before: Seen = frozenset()
) -> Problem:
    """The problem with what a program showed: by unit an option and its cycles.

    Other options of integers change by as much, since what surrounds the layer is the same for them; but not those that
    a program showed before: passes have forms that only one mode gains by. conversions: how many times the estimate
    those between integers and float took.
    """
    options: dict[Unit, Sequence[Option]] = {}
    for unit, each in problem.options.items():
        name, cycles = known[unit]
        more = cycles - next(option.cycles for option in each if option.name == name)
        options[unit] = [
            replace(option, cycles=max(option.cycles + more, 1))
            if option.name == name or (FLOAT not in (option.name, name) and (unit, option.name) not in before)
            else option
            for option in each
        ]
    border = {
        unit: Border(round(each.to_float * conversions), round(each.to_integers * conversions))
        for unit, each in problem.border.items()
    }
    return Problem(options, problem.reads, border)


def quickest(
    problem: Problem, run: Callable[[Mapping[Unit, Option]], tuple[Timing, Shares] | None], before: Seen = frozenset()
) -> tuple[Problem, dict[Unit, Option], int | None]:
    """The cheapest assignment by its program, the problem with the costs seen there, and the cycles of the program.

    Args:
        run: times an assignment; None where that cannot be.
        before: options whose cycles in the problem are those of programs already.
    """
    best: tuple[Problem, dict[Unit, Option], int] | None = None
    tried: list[dict[Unit, str]] = []
    for _ in range(_TRIALS):
        chosen = cheapest(problem)
        names = {unit: option.name for unit, option in chosen.items()}
        found = None if names in tried else run(chosen)
        if found is None:
            break
        tried.append(names)
        timing, shares = found
        seen = unit_cycles(timing, shares)
        estimated = problem.cycles(chosen) - sum(option.cycles for option in chosen.values())
        converting = sum(layer.cycles for layer in timing.layers if layer.kind in _CONVERSIONS)
        dearer = min(max(converting / estimated, 1.0), _DEARER) if estimated else 1.0
        problem = with_cycles(problem, {unit: (names[unit], seen[unit]) for unit in names}, dearer, before)
        before = before | set(names.items())
        if best is None or timing.cycles < best[2]:
            again = {u: next(o for o in problem.options[u] if o.name == name) for u, name in names.items()}
            best = problem, again, timing.cycles
    return best or (problem, cheapest(problem), None)


def border_of(values: Sequence[Value], target: Target | None) -> Border:
    """Conversions of some float values."""
    floats = [value for value in values if value.dtype == "f32"]
    return Border(*(sum(_conversion(kind, value, target) for value in floats) for kind in reversed(_CONVERSIONS)))


def _conversion(kind: str, value: Value, target: Target | None) -> int:
    plain, narrow = TensorType(value.shape), TensorType(value.shape, "i8", Quant(1.0))
    source, result = (plain, narrow) if kind == "quantize" else (narrow, plain)
    for rounding in ("even", "away"):
        attributes = {"rounding": rounding} if kind == "quantize" else {}
        op = find_op(kind)([Value(source, Block(), 0)], attributes, None, ())
        op.result.type = result
        known = None if target is None else target.local_cycles(op) or target.cycles(op)
        if known is not None:
            return known
    return prod(value.shape) * 5 // _BYTES_PER_CYCLE + _SOME


_BYTES_PER_CYCLE = 32
_SOME = 100
"""Bytes that a conversion moves per cycle, and cycles that any takes, where the target says nothing."""
