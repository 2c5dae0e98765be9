"""Rows of windows in a few parts, whose ops alternate: what one part moves, another one computes beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Module, copy_module
from bmcompiler.ops.places.index import Gather
from bmcompiler.passes.schedule.row_orders import RowOrders
from bmcompiler.passes.schedule.row_stages import RowStages
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.target import Target

_PARTS = (2, 4, 8)
_LEVEL = 1
"""Of the groups whose cycles decide: they are found in a third of the time of the best ones, and differ alike."""
_MOST = 0.85
"""Part of what the quickest parts gain that will do for fewer ones: small parts fill lanes less."""


@dataclass(frozen=True)
class RowParts(Pass):
    """Layers of windows (Swin) in parts of their rows: what one moves, is loaded or stored while another one computes.

    1. ops between gathers that put rows into another order, with products, each of which makes a part of its rows from
       the same part of what it reads : the ops of each part, on gathers of its rows, and a concatenation of what others
       read
    2. ops that do the same with each row, behind a gather of what rule 1 cut : the same, a part for all neighbouring
       rows that come from one part

    Ops of one part are in stages, which begin with products by weights; while one part is in a stage, the next one is
    in the stage before. The number of parts is the one that the plan of all layers takes the least time with, for each
    number of rows, the most first.
    """

    name = "row-parts"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        if ctx.target is None or not any(isinstance(op, Gather) for op in module.walk()):
            return PassResult(False)
        rows = RowOrders(module)
        counts = {order.size for op in module.walk() if (order := rows.order(op)) is not None}
        chosen: dict[int, int] = {}
        for count in sorted(counts, reverse=True):
            chosen[count] = _chosen(module, chosen, count, ctx.target)
        return PassResult(_cut(module, chosen))


def _chosen(module: Module, before: Mapping[int, int], count: int, target: Target) -> int:
    """Into how many parts regions of so many rows are cut, beside those `before`."""
    taken: dict[int, float] = {}
    for parts in _PARTS:
        draft = copy_module(module)
        if not _cut(draft, {**before, count: parts}, count):
            break
        if not taken:
            taken[1] = _cycles(module, before, target)
        taken[parts] = _cycles(draft, {}, target)
        if taken[parts] >= taken[parts // 2]:
            break
    least = min(taken.values(), default=0.0)
    enough = taken.get(1, 0.0) - _MOST * (taken.get(1, 0.0) - least)
    return next((parts for parts, cycles in taken.items() if cycles <= enough), 1)


def _cycles(module: Module, parts: Mapping[int, int], target: Target) -> float:
    """What a module takes in such parts; infinite where the target does not say."""
    draft = copy_module(module)
    _cut(draft, parts)
    taken = [target.planned_cycles(function, _LEVEL) for function in draft.functions]
    return sum(one or 0 for one in taken) if any(one is not None for one in taken) else inf


def _cut(module: Module, parts: Mapping[int, int], count: int | None = None) -> bool:
    """Cut regions into parts by the number of their rows; returns whether any is cut, of `count` rows where given."""
    rows, wanted = RowOrders(module), {count: number for count, number in parts.items() if number > 1}
    stages = [RowStages(module, function, rows, wanted) for function in module.functions]
    found = {each for one in stages for each in one.found}
    if not found or (count is not None and count not in found):
        return False
    module.functions = [each.rebuilt() if each.found else each.function for each in stages]
    return True
