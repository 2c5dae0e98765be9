"""Where the live ranges of a plan lie in local memory."""

from __future__ import annotations

from bmcompiler.codegen.groups.steps import Residency, Step
from bmcompiler.codegen.groups.timeline import storing_cycles
from bmcompiler.codegen.memory import Lifetime, pack
from bmcompiler.codegen.tiling import Tiler

_ORDERS = 60
"""Orders of areas that are tried before the plan takes less of local memory."""
_LATER = 4
"""Steps for which what is stored keeps its place, at most."""


def give_places(plan: Residency, tiler: Tiler) -> int:
    """Give all live ranges their addresses; returns the bytes per lane they need together.

    What is stored keeps its place until that is done, where there is room: steps that wrote there would wait.
    """
    stored = _stored_until(plan.steps, tiler)
    need = _packed(plan, stored, tiler) if stored else tiler.lane_bytes + 1
    return need if need <= tiler.lane_bytes else _packed(plan, {}, tiler)


def _packed(plan: Residency, stored: dict[int, int], tiler: Tiler) -> int:
    """Places of live ranges, some of which (by id) last until a later step; returns what they need together."""
    ranges = plan.live_ranges
    lives = [
        Lifetime(tiler.rounded(each.lane_bytes), each.first, max(each.last, stored.get(id(each), 0))) for each in ranges
    ]
    need = pack(lives, 0, tiler.align, enough=tiler.lane_bytes, tries=_ORDERS)
    if need <= tiler.lane_bytes or not stored:
        for live_range, life in zip(ranges, lives):
            live_range.address, live_range.last = life.offset, life.last
    return need


def _stored_until(steps: list[Step], tiler: Tiler) -> dict[int, int]:
    """By the id of its live range, the step beside which a store is done, where those right behind it are short.

    Of what lasts until the next step: the rest is stored at once, before that one loads.
    """
    found: dict[int, int] = {}
    for index, step in enumerate(steps):
        for binding in step.outputs:
            waits = binding.moves and binding.live_range.last > index
            until, left = index, storing_cycles(binding, tiler) if waits else 0.0
            for later in steps[index + 1 : index + 1 + _LATER]:
                if left <= 0 or later.work is None:
                    break
                until, left = until + 1, left - later.work.cycles
            if until > binding.live_range.last:
                found[id(binding.live_range)] = max(until, found.get(id(binding.live_range), 0))
    return found
