"""Cycles of the options of units: estimates of their ops, moved to what units take in whole programs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from math import frexp
from typing import Any

from bmcompiler.ir import Function, Operation
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.choice.cost import cycles
from bmcompiler.passes.quantization.choice.programs import Programs, border_of, unit_cycles
from bmcompiler.passes.quantization.choice.solve import FLOAT, Problem
from bmcompiler.passes.quantization.choice.units import Unit
from bmcompiler.passes.quantization.choice.ways import Ways
from bmcompiler.target import Target

Nets = Mapping[str, Building[Any]]
"""Integer nets by the mode that their layers have."""
_FULL = 1.1
"""Cycles of a program over those of its least bytes, up to which no other can be much faster."""


class OptionCosts:
    """Cycles by unit and option. whole: those of the float program, once known; spared: it was not asked for.

    seen: the options whose cycles are those of a program. fixed: modes of layers that stay.
    """

    def __init__(
        self,
        function: Function,
        target: Target | None,
        ways: Ways,
        programs: Programs | None,
        fixed: Mapping[Operation, str],
    ) -> None:
        self.function, self.target, self.ways = function, target, ways
        self.programs, self.fixed = programs, fixed
        self.whole: int | None = None
        self.seen: Set[tuple[Unit, str]] = frozenset()
        self.spared = False
        self._known: dict[Hashable, int] = {}

    def of_units(
        self, parts: Sequence[Unit], integer: Sequence[Unit], nets: Nets, *, spare: bool
    ) -> dict[Unit, dict[str, int]]:
        """Of float and of each mode. Inputs and outputs of the net are float: units that read or make them convert.

        spare: the float program is not timed where the integers take as long as their bytes alone, of which float has
        more; whatever the costs of float are then, integers are as quick.
        """
        plain = {unit: self.plain(unit) for unit in parts}
        narrow = {u: {mode: self.narrow(u, nets[mode]) for mode in self._modes_of(u, nets)} for u in integer}
        costs = {unit: {FLOAT: sum(plain[unit].values())} for unit in parts}
        for unit in integer:
            costs[unit] |= {mode: sum(found.values()) for mode, found in narrow[unit].items()}
        firsts = {unit: next(iter(found)) for unit, found in narrow.items()}
        shares = {unit: narrow[unit][firsts[unit]] if unit in firsts else plain[unit] for unit in parts}
        programs = self.programs if self.ways.timed else None
        low = None if programs is None else programs.timing(next(iter(nets.values())).module)
        self.spared = spare and low is not None and low.cycles <= _FULL * low.traffic_bound
        whole = None if programs is None or self.spared else programs.in_float()
        if whole is not None and low is not None:
            self.whole = whole.cycles
            self.seen = {*firsts.items(), *((unit, FLOAT) for unit in parts)}
            seen, other = unit_cycles(low, shares), unit_cycles(whole, plain)
            for unit in parts:
                costs[unit][FLOAT] = other[unit]
            for unit in integer:
                more = seen[unit] - costs[unit][firsts[unit]]
                costs[unit] |= {mode: max(costs[unit][mode] + more, 1) for mode in narrow[unit]}
        for unit in integer if self.ways.timed else ():
            inputs = border_of([v for v in unit.operands if v in self.function.arguments], self.target).to_integers
            outputs = border_of([v for v in unit.results if v in self.function.returned], self.target).to_float
            costs[unit] |= {mode: costs[unit][mode] + inputs + outputs for mode in narrow[unit]}
        return costs

    def in_programs(self, problem: Problem, nets: Nets) -> Problem:
        """The problem with what units took in the program of each net, all layers of which have one mode."""
        found: dict[tuple[Unit, str], int] = {}
        for mode, low in nets.items():
            timing = None if self.programs is None else self.programs.timing(low.module)
            if timing is not None:
                has = [unit for unit, each in problem.options.items() if any(o.name == mode for o in each)]
                taken = unit_cycles(timing, {unit: self.narrow(unit, low) for unit in has})
                found |= {(unit, mode): cycles for unit, cycles in taken.items()}
        options = {
            unit: [replace(option, cycles=max(found.get((unit, option.name), option.cycles), 1)) for option in each]
            for unit, each in problem.options.items()
        }
        return replace(problem, options=options)

    def plain(self, unit: Unit) -> dict[str, int]:
        """Estimates of a unit in float, by the label of the layer."""
        return _by_label((op.label, self.ways.float_cycles(op, self.target)) for op in unit.ops)

    def narrow(self, unit: Unit, low: Building[Any]) -> dict[str, int]:
        """Estimates of a unit in an integer net."""
        return _by_label((old.label, self._cycles(op)) for old in unit.ops for op in low.made[old] if op.operands)

    def _cycles(self, op: Operation) -> int:
        """Estimate of an integer op; of those that are alike but for their numbers the target is asked once."""
        kind = _kind(op)
        if kind not in self._known:
            self._known[kind] = cycles(op, self.target)
        return self._known[kind]

    def _modes_of(self, unit: Unit, nets: Nets) -> list[str]:
        """Modes that a unit has of its own; any one of them where they all are the same."""
        if unit.head in self.fixed:
            return [self.fixed[unit.head]] if self.fixed[unit.head] in nets else list(nets)[:1]
        has = [mode for mode, low in nets.items() if low.in_mode(unit.head, mode)]
        return has or list(nets)[:1]


def _kind(op: Operation) -> Hashable:
    """What estimates of an op look at: of factors only whether they are more than a shift, and whether above 1."""
    attributes = tuple(
        (name, (frexp(value)[0] != 0.5, value > 1) if isinstance(value, float) else value)
        for name, value in op.attributes.items()
        if "." not in name or name == PLACE_CPU
    )
    operands = tuple((v.shape, v.dtype, op.operands.index(v), v.op and v.op.name) for v in op.operands)
    return op.name, attributes, operands, tuple((v.shape, v.dtype) for v in op.results)


def _by_label(costs: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for label, cost in costs:
        found[label] = found.get(label, 0) + max(cost, 1)
    return found
