"""Stretches of a net between gathers that put rows into another order: within one, rows may never meet."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from bmcompiler.ir import Function, Operation, Value
from bmcompiler.ir.keys import is_return, is_weight
from bmcompiler.passes.schedule.row_orders import RowOrders


@dataclass(eq=False)
class RowRegion:
    """Ops that read each other's results, with no order of rows between them.

    Attributes:
        ops: in source order. read: values of others that they read.
    """

    ops: list[Operation] = field(default_factory=list)
    read: dict[Value, None] = field(default_factory=dict)


def regions_of(function: Function, rows: RowOrders) -> list[RowRegion]:
    """The regions of a function; none reads what one behind it makes, and else they are in source order."""
    home = _homes(function, rows)
    regions = list(dict.fromkeys(home.values()))
    for op, region in home.items():
        region.ops.append(op)
        inside = {x for x in op.operands if x.op is not None and home.get(x.op) is region}
        region.read |= {x: None for x in op.operands if not is_weight(x) and x not in inside}
    needed = {
        region: {home[maker] for x in region.read for maker in _makers(x, rows) if maker in home} for region in regions
    }
    readers: dict[RowRegion, list[RowRegion]] = {region: [] for region in regions}
    for region, before in needed.items():
        for each in before:
            readers[each].append(region)
    place = {region: number for number, region in enumerate(regions)}
    ready, found = [place[region] for region in regions if not needed[region]], list[RowRegion]()
    heapify(ready)
    while ready:
        region = regions[heappop(ready)]
        found.append(region)
        for reader in readers[region]:
            needed[reader].discard(region)
            if not needed[reader]:
                heappush(ready, place[reader])
    return found


def _homes(function: Function, rows: RowOrders) -> dict[Operation, RowRegion]:
    """The region of each op, in source order: what values connect that have as many orders on their way."""
    levels, leader = dict[Value, int](), dict[Operation, Operation]()

    def first(op: Operation) -> Operation:
        while leader[op] is not op:
            leader[op] = leader[leader[op]]
            op = leader[op]
        return op

    for op in function.ops:
        moving = [value for value in op.operands if not is_weight(value)]
        level = max((levels.get(value, 0) for value in moving), default=0)
        ordered = rows.order(op) is not None
        levels |= dict.fromkeys(op.results, level + ordered)
        if ordered or not op.operands or is_return(op):
            continue
        leader[op] = op
        for value in moving:
            if value.op in leader and levels[value] == level:
                leader[first(value.op)] = first(op)
    regions: dict[Operation, RowRegion] = {}
    return {op: regions.setdefault(first(op), RowRegion()) for op in leader}


def _makers(value: Value, rows: RowOrders) -> list[Operation]:
    """What makes the rows of a value, whatever order they are put into; none where they are an input."""
    while value.op is not None and rows.order(value.op) is not None:
        value = value.op.operands[0]
    return [] if value.op is None else [value.op]
