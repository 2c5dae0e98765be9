"""When what is loaded early is put into the queue of the engine that moves data.

That engine works in order: what is asked for too early delays the copies and stores of the steps before, which others
wait for; what is asked for too late leaves the engine idle, so that steps wait for it in the end. Of two orders that
is taken which ends first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from math import inf

from bmcompiler.codegen.groups.steps import Binding, Residency, reads_any
from bmcompiler.codegen.groups.timeline import Timeline, loading_cycles, storing_cycles
from bmcompiler.codegen.tiling import Tiler

_LONG = 256
"""Part of a plan's time from which on a load is tried at other steps; `_TRIED`: how many there may be in all."""
_TRIED = 2048
_CLEAR = 0.99
"""Part of its time that a plan may take at most with loads at other steps."""


def issue_loads(plan: Residency, times: Callable[[], Timeline], tiler: Tiler) -> None:
    """Order the loads of a plan; `times`: of the plan as it is."""
    early = times()
    issue_between(plan, early, tiler)
    between, kept = times().end, [binding.issue for _, binding in _loads(plan)]
    issue_late(plan, early, tiler)
    if between < times().end:
        for (_, binding), issue in zip(_loads(plan), kept):
            binding.issue = issue


def issue_late(plan: Residency, times: Timeline, tiler: Tiler) -> None:
    """Give every load of a plan the last step at which it still comes in time, by the `times` of loading early.

    Backwards: a load has to be complete when its step begins, and before those after it begin to load.
    """
    begin = inf
    for number in reversed(range(len(plan.steps))):
        for binding in reversed(plan.steps[number].inputs):
            if not binding.moves:
                continue
            begin = min(begin, times.starts[number]) - loading_cycles(binding, tiler)
            latest = bisect_right(times.starts, begin, hi=number + 1) - 1
            binding.issue = min(number, max(binding.live_range.first, latest))


def issue_between(plan: Residency, times: Timeline, tiler: Tiler) -> None:
    """Load what a step reads itself first, and what later ones do while the engine would wait for the step's results.

    times: of the plan, for what steps take.
    """
    moving = computing = 0.0
    done, room, ready = [0.0], _by_room(plan), dict[int, float]()
    ahead: list[tuple[int, int, Binding]] = []
    waiting: list[Binding] = []

    def load(binding: Binding, issue: int) -> None:
        nonlocal moving
        if id(binding) not in ready:
            moving = ready[id(binding)] = max(moving, done[binding.live_range.first]) + loading_cycles(binding, tiler)
            binding.issue = issue

    for index, step in enumerate(plan.steps):
        for entry in room[index]:
            heappush(ahead, entry)
        own = [binding for binding in step.inputs if binding.moves]
        for binding in own:
            load(binding, index)
        for binding in waiting:
            moving = max(moving, computing) + storing_cycles(binding, tiler)
        for _, cycles in times.early[index]:
            moving = max(moving, computing) + cycles
        begin = max([computing, *(ready[id(binding)] - binding.buffer.late for binding in own)])
        first, last = times.moving[index]
        if first:
            begin = max(begin, moving)
            moving = begin + first
        if step.work is not None and step.work.stream is not None:
            computing, moving = step.work.stream.times(begin, moving)
        else:
            computing = begin + times.took[index]
        if last:
            computing = moving = max(computing, moving + last)
        done.append(computing)
        waiting = [binding for binding in step.outputs if binding.moves]
        at = index if index + 1 == len(plan.steps) or _reads(plan, index + 1, waiting) else index + 1
        while ahead and moving < computing:
            load(heappop(ahead)[2], at)


def issue_best(plan: Residency, times: Callable[[], Timeline], tiler: Tiler) -> None:
    """Try other steps for each of the few long loads of a plan, as long as it ends earlier by one.

    The plan stays as it was unless that gains clearly: of what ends about alike, times do not say which is quicker.
    """
    first = least = times().end
    loads = [(number, load) for number, load in _loads(plan) if loading_cycles(load, tiler) * _LONG > least]
    if len(loads) * len(plan.steps) > _TRIED:
        return
    issues, before = [load.issue for _, load in loads], inf
    while least < before:
        before = least
        for number, load in loads:
            best = load.issue
            for step in range(load.live_range.first, number + 1):
                load.issue = step
                end = times().end
                if end < least:
                    least, best = end, step
            load.issue = best
    if least > first * _CLEAR:
        for (_, load), issue in zip(loads, issues):
            load.issue = issue


def _loads(plan: Residency) -> Iterator[tuple[int, Binding]]:
    return ((number, binding) for number, step in enumerate(plan.steps) for binding in step.inputs if binding.moves)


def _by_room(plan: Residency) -> list[list[tuple[int, int, Binding]]]:
    """What is loaded, by the first step at which it has its place; (number of its step, order there, the load)."""
    found: list[list[tuple[int, int, Binding]]] = [[] for _ in plan.steps]
    for order, (number, binding) in enumerate(_loads(plan)):
        found[binding.live_range.first].append((number, order, binding))
    return found


def _reads(plan: Residency, index: int, stores: list[Binding]) -> bool:
    step = plan.steps[index]
    return any(binding.moves and reads_any(step, binding, stores) for binding in step.inputs)
