"""What a residency plan says of its groups, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod

from bmcompiler.codegen.groups.steps import LiveRange, Residency, Step
from bmcompiler.target import GroupInfo, LiveRangeInfo


def group_infos(plan: Residency, first: int = 0) -> list[GroupInfo]:
    """The groups of a plan, numbered from `first` on; a live range belongs to the group in which it begins.

    Layers that are not sliced are one group as long as a value stays in local memory from one to the next.
    """
    numbers = _numbers(plan.steps)
    groups = [(number, list(entries)) for number, entries in groupby(enumerate(plan.steps), lambda e: numbers[e[0]])]
    found = []
    starting: dict[int, list[LiveRange]] = {}
    for life in plan.live_ranges:
        starting.setdefault(life.first, []).append(life)
    for number, (_, entries) in enumerate(groups):
        steps = [step for _, step in entries]
        span = entries[0][0], entries[-1][0]
        alive = [life for life in plan.live_ranges if life.first <= span[1] and span[0] <= life.last]
        most = max((life.address + life.lane_bytes for life in alive), default=0)
        live_ranges = [_info(life) for index in range(span[0], span[1] + 1) for life in starting.get(index, ())]
        layers = list(dict.fromkeys(step.op.label for step in steps))
        found.append(GroupInfo(first + number, layers, steps[0].slices, most, live_ranges))
    return found


def _numbers(steps: Sequence[Step]) -> list[int]:
    """Of each step, the first step of its group."""
    spans: dict[int, tuple[int, int]] = {}
    for index, step in enumerate(steps):
        for binding in (*step.inputs, *step.outputs):
            if not binding.buffer.coefficient:
                first, _ = spans.setdefault(id(binding.live_range), (index, index))
                spans[id(binding.live_range)] = first, index
    joined = {index for first, last in spans.values() for index in range(first + 1, last + 1)}
    found: list[int] = []
    for index, step in enumerate(steps):
        before = steps[index - 1] if index else None
        same = before is not None and step.group == before.group
        live_ranges = before is not None and index in joined and prod(step.slices) == prod(before.slices) == 1
        found.append(found[-1] if same or live_ranges else index)
    return found


def _info(life: LiveRange) -> LiveRangeInfo:
    return LiveRangeInfo(life.label, life.kind, life.first, life.last, life.address, life.lane_bytes)
