"""When what is loaded early is put into the queue of the engine that moves data.

That engine works in order: what is asked for too early delays the copies and stores of the steps before, which others
wait for. So a load is issued as late as it can be without a step having to wait for it.
"""

from __future__ import annotations

from bisect import bisect_right
from math import inf

from bmcompiler.codegen.groups.steps import Residency
from bmcompiler.codegen.groups.timeline import Timeline, loading_cycles
from bmcompiler.codegen.tiling import Tiler


def issue_late(plan: Residency, times: Timeline, tiler: Tiler) -> None:
    """Give every load of a plan the last step at which it still comes in time, by the `times` of loading early.

    Backwards: a load has to be complete when its step begins, and before those after it begin to load.
    """
    begin = inf
    for number in reversed(range(len(plan.steps))):
        for slot in reversed(plan.steps[number].inputs):
            if not slot.moves:
                continue
            begin = min(begin, times.starts[number]) - loading_cycles(slot, tiler)
            latest = bisect_right(times.starts, begin, hi=number + 1) - 1
            slot.issue = min(number, max(slot.live_range.first, latest))
