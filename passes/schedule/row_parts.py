"""Rows of windows in a few parts, whose ops alternate: what one part moves, another one computes beside."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Module, copy_module
from bmcompiler.ir.copying import extract
from bmcompiler.ops.places.index import Gather
from bmcompiler.ops.places.shape import Reshape
from bmcompiler.passes.schedule.row_orders import RowOrders
from bmcompiler.passes.schedule.row_regions import RowRegion
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
    in the stage before. The number of parts is the one that the plan of the layers of so many rows takes the least time
    with, most of which is found with few; of layers that are alike those up to the first of each kind are planned.
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
        chosen = {count: _chosen(module, rows, count, ctx.target) for count in sorted(counts, reverse=True)}
        return PassResult(_cut(module, chosen))


def _chosen(module: Module, rows: RowOrders, count: int, target: Target) -> int:
    """Into how many parts regions of so many rows are cut."""
    samples = list(_samples(module, rows, count))
    taken: dict[int, float] = {}
    for parts in _PARTS if samples else ():
        drafts = [copy_module(sample) for sample in samples]
        if not any([_cut(draft, {count: parts}) for draft in drafts]):
            break
        if not taken:
            taken[1] = _cycles(samples, target)
        taken[parts] = _cycles(drafts, target)
        if taken[parts] >= taken[parts // 2]:
            break
    least = min(taken.values(), default=0.0)
    enough = taken.get(1, 0.0) - _MOST * (taken.get(1, 0.0) - least)
    return next((parts for parts, cycles in taken.items() if cycles <= enough), 1)


def _samples(module: Module, rows: RowOrders, count: int) -> Iterator[Module]:
    """Of each function the regions of so many rows that can be cut, up to the last one that is like none before."""
    for function in module.functions:
        regions = RowStages(module, function, rows, {count: _PARTS[0]}).cut
        forms = [_form(region) for region in regions]
        last = max((forms.index(form) for form in forms), default=-1)
        wanted = {op for region in regions[: last + 1] for op in region.ops}
        wanted |= {op for region in regions[: last + 1] for value in region.read for op in rows.orders_of(value)}
        if wanted:
            yield extract(module, [op for op in function.ops if op in wanted])[0]


def _form(region: RowRegion) -> Hashable:
    """What regions that are alike have in common."""
    return tuple((op.name, op.results[0].type) for op in region.ops if not isinstance(op, Reshape))


def _cycles(modules: Iterable[Module], target: Target) -> float:
    """What modules take; infinite where the target does not say."""
    taken = [target.planned_cycles(function, _LEVEL) for module in modules for function in module.functions]
    return sum(one or 0 for one in taken) if any(one is not None for one in taken) else inf


def _cut(module: Module, parts: Mapping[int, int]) -> bool:
    """Cut regions into parts by the number of their rows; returns whether any is cut."""
    rows, wanted = RowOrders(module), {count: number for count, number in parts.items() if number > 1}
    stages = [RowStages(module, function, rows, wanted) for function in module.functions]
    if not any(each.cut for each in stages):
        return False
    module.functions = [each.rebuilt() if each.cut else each.function for each in stages]
    return True
