"""When coefficients of a plan arrive: each as early as there is a place for it, and no sooner than it has to.

The walk of `residency` counts bytes, and some are lost in gaps once areas have addresses. Here all else is packed
first; then coefficients get places in the order of steps, each where it can lie the longest before its step. Of both
plans the faster one stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bmcompiler.codegen.groups.banks import move_apart
from bmcompiler.codegen.groups.issue import issue_best, issue_loads
from bmcompiler.codegen.groups.steps import AHEAD, NEVER, Binding, LiveRange, Residency
from bmcompiler.codegen.groups.timeline import Timeline
from bmcompiler.codegen.memory import Lifetime, pack
from bmcompiler.codegen.tiling import Tiler
from bmcompiler.ir import Operation
from bmcompiler.numeric.arrays import Ints

_SMALL = 128
"""Part of a lane up to which coefficients are packed with all else, some steps ahead: they shall cut up no room."""
_SOON = 8
_ORDERS = 20


class _Load(NamedTuple):
    """Coefficients that are loaded for step `at`, not before step `least`."""

    at: int
    least: int
    binding: Binding

    @property
    def area(self) -> LiveRange:
        return self.binding.live_range


def settle(
    plan: Residency, times: Callable[[], Timeline], blocks: Callable[[Operation], bool], tiler: Tiler
) -> Timeline:
    """Decide where coefficients are loaded to, and when everything is; returns the times of the plan.

    Args: times: of the plan as it is. blocks: see `plan_residency`.
    """
    issue_loads(plan, times, tiler)
    first, loads = times(), _loads(plan, blocks)
    places = [(area.first, area.address) for area in plan.live_ranges]
    bindings = [binding for step in plan.steps for binding in step.inputs]
    issues = [binding.issue for binding in bindings]
    if not _move(plan, loads, tiler):
        issue_best(plan, times, tiler)
        return times()
    issue_loads(plan, times, tiler)
    second = times()
    if second.end < first.end:
        issue_best(plan, times, tiler)
        return times()
    for area, place in zip(plan.live_ranges, places):
        area.first, area.address = place
    for binding, issue in zip(bindings, issues):
        binding.issue = issue
    issue_best(plan, times, tiler)
    return times()


def _loads(plan: Residency, blocks: Callable[[Operation], bool]) -> list[_Load]:
    found: dict[int, _Load] = {}
    free = 0  # the step since which no op took all of local memory
    for index, step in enumerate(plan.steps):
        if step.work is None and blocks(step.op):
            free = index + 1
        for binding in step.inputs:
            if binding.moves and binding.buffer.coefficient:
                found.setdefault(id(binding.live_range), _Load(index, max(free, index - AHEAD), binding))
    return list(found.values())


def _move(plan: Residency, loads: Sequence[_Load], tiler: Tiler) -> bool:
    """Give all areas new places, and loads new first steps; False, and nothing changes, where there is no room."""
    small = [load for load in loads if load.area.lane_bytes * _SMALL <= tiler.lane_bytes]
    large = [load for load in loads if load.area.lane_bytes * _SMALL > tiler.lane_bytes]
    moving = {id(load.area) for load in large}
    fixed = [area for area in plan.live_ranges if id(area) not in moving]
    soon = {id(load.area): max(load.area.first, load.at - _SOON) for load in small}
    lives = [Lifetime(tiler.rounded(area.lane_bytes), soon.get(id(area), area.first), area.last) for area in fixed]
    if pack(lives, 0, tiler.align, tries=_ORDERS) > tiler.lane_bytes:
        return False
    before = [(area.first, area.address) for area in plan.live_ranges]
    for area, life in zip(fixed, lives):
        area.first, area.address = life.first, life.offset
    move_apart(plan, tiler, moving)
    lives = [Lifetime(tiler.rounded(area.lane_bytes), area.first, area.last, area.address) for area in fixed]
    gaps = _Gaps(lives, len(large), tiler)
    places = [gaps.place(load) for load in large]
    if any(first > load.at for load, (first, _) in zip(large, places)):
        for area, place in zip(plan.live_ranges, before):
            area.first, area.address = place
        return False
    for load, (first, address) in zip(large, places):
        load.area.first, load.area.address = first, address
    for step in plan.steps:
        for binding in step.inputs:
            binding.issue = binding.live_range.first
    move_apart(plan, tiler)
    return True


class _Gaps:
    """What is free in local memory at which steps: areas in columns, of which the first `count` are there."""

    def __init__(self, lives: Sequence[Lifetime], more: int, tiler: Tiler) -> None:
        self.tiler, self.count = tiler, len(lives)
        self.areas: Ints = np.zeros((4, len(lives) + more), np.int64)
        if lives:
            self.areas[:, : len(lives)] = np.array(
                [(life.first, life.last, life.offset, life.offset + life.nbytes) for life in lives]
            ).T

    def place(self, load: _Load) -> tuple[int, int]:
        """The place from which a load can be there the earliest, and since when: NEVER without one."""
        size, least, until = self.tiler.rounded(load.area.lane_bytes), load.least, load.area.last
        areas = self.areas[:, : self.count]
        _, last, begin, end = areas[:, (areas[0] <= until) & (areas[1] >= least)]
        places = np.array(sorted({0, *end.tolist()}))
        places = places[places + size <= self.tiler.lane_bytes]
        meets = (begin < places[:, None] + size) & (end > places[:, None])
        since = np.where(meets, np.where(last >= load.at, NEVER, last + 1), least).max(axis=1, initial=least)
        if not len(places):
            return NEVER, 0
        best = int(since.argmin())
        first, address = int(since[best]), int(places[best])
        self.areas[:, self.count] = first, until, address, address + size
        self.count += 1
        return first, address
