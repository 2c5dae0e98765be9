"""What a choice says: of each layer, and the sentence on the net."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil, sqrt

import numpy as np

from bmcompiler.ir import Operation
from bmcompiler.passes.quantization.choice.aim import MENDED
from bmcompiler.passes.quantization.choice.measured import Measured
from bmcompiler.passes.quantization.choice.search import WORTHWHILE, Found, Search
from bmcompiler.passes.quantization.choice.solve import FLOAT, Option
from bmcompiler.passes.quantization.choice.units import is_layer
from bmcompiler.passes.quantization.choice.weighing import Weighing
from bmcompiler.spelling import spelled
from bmcompiler.text import at_most

_NAMED = 8
"""Layers on the host that are named, at most."""


@dataclass
class Choice:
    """What was decided and measured.

    modes: by layer. in_float: reason by op. errors: what the layer's own integers add to its result, relative. why:
    reason by layer. notes: sentences for the summary. measured: what the assignment does. cycles: of its program,
    and dear: whether accuracy took these beyond what it may cost (`Ways.share`), both where others may be compared.
    offer: tries and says what less error would cost; only the choice that is taken is asked.
    """

    modes: dict[Operation, str] = field(default_factory=dict)
    in_float: dict[Operation, str] = field(default_factory=dict)
    errors: dict[Operation, float] = field(default_factory=dict)
    why: dict[Operation, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    measured: Measured | None = None
    cycles: int | None = None
    dear: bool = False
    offer: Callable[[], str] = lambda: ""

    @property
    def misses(self) -> bool:
        """Whether more decisions are lost than should be, or integers spare less than they should."""
        return self.dear or (self.measured is not None and not self.measured.keeps)

    def or_better(self, other: Choice) -> Choice:
        """The choice that loses fewer decisions; of those that lose as few, about, the quicker one.

        One that is further from float is none where nothing is decided, or where that may make nonsense of outputs.
        """
        mine, theirs = self.measured, other.measured
        if mine is None or theirs is None or self.cycles is None or other.cycles is None:
            return self
        if theirs.worst > (max(mine.worst, MENDED) if mine.decisions.of else mine.worst):
            return self
        lost, less = map(_lost, (mine, theirs))
        if min(lost, less) <= WORTHWHILE * max(lost, less):
            return other if less < lost else self
        return min(self, other, key=lambda each: each.cycles or 0)

    def stays(self, least: int | None) -> bool:
        """Whether this is what `or_better` takes of it and any choice whose programs take `least` cycles or more.

        Where few decisions are lost that should be kept, another one is better by its cycles alone.
        """
        if self.measured is None or self.cycles is None or least is None:
            return True
        return least >= self.cycles and WORTHWHILE * _lost(self.measured) < 1


def _lost(measured: Measured) -> float:
    """How many times more decisions of the worst output are lost than may be, 1 where none are."""
    return max([1.0, *map(measured.excess, measured.kept)])


def told(search: Search, found: Found, weighing: Weighing, *, explains: bool) -> Choice:
    """The choice of an assignment. explains: with the reason for each layer."""
    trials, first = search.trials, search.start
    choice = Choice(dict(trials.fixed), measured=found.measured)
    if search.ways.finer and search.whole is not None:
        choice.cycles, least = trials.cycles(found.chosen), trials.cycles(first.chosen)
        choice.dear = least is not None and least <= search.ways.share * search.whole < (choice.cycles or 0)
    names = [str(cluster) for cluster in trials.reference.clusters.clusters]
    for unit, option in found.chosen.items():
        cheap = first.chosen[unit]
        if option.name == FLOAT:
            if unit.head not in trials.in_float and len(search.problem.options[unit]) > 1:
                choice.in_float.update(dict.fromkeys(unit.ops, _why_float(cheap, first, names)))
            continue
        choice.modes.update(dict.fromkeys(unit.ops, option.name))
        if unit.head not in trials.fixed and unit in weighing.own:
            choice.errors[unit.head] = weighing.relative(unit, option.name)
            choice.why[unit.head] = _why(option, cheap, names) if explains else ""
    choice.notes.append(_sentence(search, found, choice, names) + _decided(search, found))
    choice.offer = partial(_better, search, found)
    return choice


def _sentence(search: Search, found: Found, choice: Choice, names: Sequence[str]) -> str:
    """How many layers have which mode, what that was measured to do, and what it costs."""
    first, problem, on_host = search.start, search.problem, search.ways.on_host
    computing = [op for unit in problem.options for op in unit.ops if is_layer(op)]
    layers = {mode: sum(choice.modes.get(op) == mode for op in computing) for mode in search.ways.modes}
    floats = [op.label for op in choice.in_float if is_layer(op)]
    text = ", ".join(f"{count} {mode}" for mode, count in layers.items() if count) or "none"
    kept = f", {len(floats)} layers in float" if floats else ""
    if floats and on_host:
        kept += f" on the host ({', '.join(floats[:_NAMED])}{', ...' if len(floats) > _NAMED else ''})"
    energies = found.measured.energies
    output = f" (output {names[int(np.argmax(energies))]})" if len(energies) > 1 else ""
    ratio = found.ratio or problem.cycles(found.chosen) / max(problem.cycles(first.chosen), 1)
    return (
        f"quantization modes: {text}{kept}; outputs are at most {found.measured.worst:.2%} from float on "
        f"samples that the choice had not seen{output}, {first.measured.worst:.2%} with the fewest cycles, "
        f"of which the choice takes {ratio:.2f} times"
    )


def _decided(search: Search, found: Found) -> str:
    """Of what outputs decide."""
    now, first = (each.measured.decisions for each in (found, search.start))
    return f"; decisions kept {now.share:.1%} of {now.of:,}, {first.share:.1%} with the fewest cycles" if now.of else ""


def _better(search: Search, found: Found) -> str:
    """What less would be wrong for more cycles, where what is wrong is more than is aimed at."""
    measured = found.measured
    if search.aim.is_cheapest or (search.aim.error_of(measured) <= search.aim.wanted and measured.keeps):
        return _nearest(search, found)
    other = search.next_better(found)
    if other is None:
        return ""
    more = search.problem.cycles(other.chosen) / max(search.problem.cycles(found.chosen), 1) - 1
    return f"; {_promise(other)} for {more:.0%} more cycles: {_option(other)}"


def _nearest(search: Search, found: Found) -> str:
    """What misses what is asked for by least, and what it spares, where only float keeps it."""
    nearest = search.nearest_miss(found)
    if nearest is None:
        return ""
    cycles = search.problem.cycles(found.chosen)
    less = 1 - search.problem.cycles(nearest.chosen) / cycles
    return f"; {_promise(nearest)} for {less:.0%} fewer cycles: {_option(nearest)}"


def _promise(found: Found) -> str:
    return f"at most {at_most(found.measured.promised)} on others"


def _option(found: Found) -> str:
    """What asks for an assignment."""
    return spelled("max_error", max(ceil(found.measured.promised * 1000), 1) / 10)


def _why_float(cheap: Option, first: Found, names: Sequence[str]) -> str:
    if cheap.name == FLOAT:
        return "integers would take more cycles"
    worst = int(np.argmax(cheap.energies / np.maximum(first.measured.energies, 1e-30)))
    return f"integers would add {sqrt(cheap.energies[worst]):.2%} to output {names[worst]}"


def _why(option: Option, cheap: Option, names: Sequence[str]) -> str:
    if not names:
        return "fewest cycles"
    worst = int(np.argmax(option.energies))
    adds = f"adds {sqrt(option.energies[worst]):.2%} to output {names[worst]}"
    if option.name == cheap.name:
        return f"fewest cycles, {adds}"
    return f"{adds}, {cheap.name} would {sqrt(cheap.energies[worst]):.2%}"
