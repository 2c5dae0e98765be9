"""Estimated cycles of a residency plan: two engines that work in order, one step or transfer after the other."""

from __future__ import annotations

from collections.abc import Callable

from bmcompiler.codegen.groups.regions import Mover
from bmcompiler.codegen.groups.steps import AHEAD, Residency, Slot, Step
from bmcompiler.codegen.tiling import Tiler
from bmcompiler.ir import Operation

HIDDEN = 0.2
"""Part of the time of a transfer that counts although it runs beside computation: plans should also move little."""


def plan_cycles(plan: Residency, estimate: Callable[[Operation], int], tiler: Tiler, mover: Mover | None) -> float:
    """Cycles until the last store. `estimate` says what an op tiled by itself takes."""
    moving = computing = moved = 0.0
    ready: dict[int, float] = {}
    waiting: list[tuple[float, Slot]] = []

    def transfer(slot: Slot, after: float) -> float:
        nonlocal moving, moved
        moved += slot.buffer.nbytes
        moving = max(moving, after) + slot.buffer.nbytes / tiler.bytes_per_cycle + tiler.tile_cycles / 2
        return moving

    for index, step in enumerate(plan.steps):
        if step.work is None:
            moving = computing = max(moving, computing) + estimate(step.op)
        for later in plan.steps[index : index + AHEAD + 1]:
            for slot in later.inputs:
                if slot.moves and slot.stay.first == index:
                    ready[id(slot)] = transfer(slot, 0.0)
        for after, slot in waiting:
            transfer(slot, after)
        waiting = []
        if step.work is None:
            continue
        start = max([computing, *(ready[id(slot)] for slot in step.inputs if slot.moves)])
        computing = start + _cycles(step, mover)
        waiting = [(computing, slot) for slot in step.outputs if slot.moves]
    for after, slot in waiting:
        transfer(slot, after)
    return max(moving, computing) + HIDDEN * moved / tiler.bytes_per_cycle


def _cycles(step: Step, mover: Mover | None) -> float:
    assert step.work is not None
    copies = sum(mover.cycles(copy.move) for copy in (*step.before, *step.after)) if mover is not None else 0
    return step.work.cycles + copies
