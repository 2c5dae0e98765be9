"""What a residency plan says of its groups, for reports."""

from __future__ import annotations

from itertools import groupby

from bmcompiler.codegen.groups.steps import Residency, Stay
from bmcompiler.target import GroupInfo, StayInfo


def group_infos(plan: Residency, first: int = 0) -> list[GroupInfo]:
    """The groups of a plan, numbered from `first` on; a stay belongs to the group in which it begins."""
    groups = [(number, list(entries)) for number, entries in groupby(enumerate(plan.steps), lambda e: e[1].group)]
    found = []
    starting: dict[int, list[Stay]] = {}
    for stay in plan.stays:
        starting.setdefault(stay.first, []).append(stay)
    for number, (_, entries) in enumerate(groups):
        steps = [step for _, step in entries]
        span = entries[0][0], entries[-1][0]
        alive = [stay for stay in plan.stays if stay.first <= span[1] and span[0] <= stay.last]
        most = max((stay.address + stay.lane_bytes for stay in alive), default=0)
        stays = [_info(stay) for index in range(span[0], span[1] + 1) for stay in starting.get(index, ())]
        layers = list(dict.fromkeys(step.op.label for step in steps))
        found.append(GroupInfo(first + number, layers, steps[0].slices, most, stays))
    return found


def _info(stay: Stay) -> StayInfo:
    return StayInfo(stay.label, stay.kind, stay.first, stay.last, stay.address, stay.lane_bytes)
