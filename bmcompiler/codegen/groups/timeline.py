"""When the stripes of a plan of residency compute: two engines that work in order, a step or transfer at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bmcompiler.codegen.groups.banks import shared_cycles
from bmcompiler.codegen.groups.regions import LocalCopier
from bmcompiler.codegen.groups.steps import Binding, Residency, Step, loads_by_issue, portions_by_step, reads_any
from bmcompiler.codegen.kernels import DeviceKernel
from bmcompiler.codegen.memory import Hosts, root_of
from bmcompiler.codegen.tiling import Tiler
from bmcompiler.ir import Operation

HIDDEN = 0.2
"""Part of the time of a transfer that counts although it runs beside computation: plans should also move little."""


@dataclass
class Timeline:
    """Estimated cycles of a plan.

    Attributes:
        starts, ends: when each step begins to compute, and has. end: when all is stored. moved: bytes over the bus.
        took: cycles of each step with nothing to wait for. moving: of these the first and the last ones, for which it
            needs the engine that moves data.
    """

    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    moving: list[tuple[float, float]] = field(default_factory=list)
    end: float = 0.0
    moved: float = 0.0

    def cost(self, tiler: Tiler) -> float:
        """What plans are compared by, cycles."""
        return self.end + HIDDEN * self.moved / tiler.bytes_per_cycle


def alone_cycles(kernel: DeviceKernel[Any], op: Operation, hosts: Hosts, tiler: Tiler) -> int:
    """What an op takes that has no tile in a plan: what it copies, or all that it does tiled by itself.

    Args: hosts: values that are made or read in their place in others (`memory.parts_of_others`).
    """
    if not kernel.uses_local_memory(op):
        return round(2 * _copied(op, hosts) / tiler.bytes_per_cycle)
    return kernel.estimate(op) or sum(value.type.nbytes for value in (*op.operands, *op.results)) // 16


def _copied(op: Operation, hosts: Hosts) -> int:
    """Bytes that an op copies in global memory: parts of other values that are made or read in their place are not."""
    parts = {"concat": op.operands, "split": op.results, "slice": op.results}.get(op.short_name)
    if parts is None:
        return sum(value.type.nbytes for value in op.results)
    return sum(value.type.nbytes for value in parts if root_of(value) not in hosts)


def loading_cycles(binding: Binding, tiler: Tiler) -> float:
    """Cycles that a load keeps the bus."""
    return tiler.bus.load(binding.buffer) / tiler.bytes_per_cycle + binding.buffer.loads * tiler.tile_cycles / 2


def storing_cycles(binding: Binding, tiler: Tiler) -> float:
    """Cycles that a store keeps the bus."""
    return tiler.bus.store(binding.buffer) / tiler.bytes_per_cycle + tiler.tile_cycles / 2


def timeline(
    plan: Residency, estimate: Callable[[Operation], int], tiler: Tiler, copier: LocalCopier | None
) -> Timeline:
    """The times of a plan. `estimate` says what an op tiled by itself takes, in cycles."""
    found = Timeline()
    moving = computing = 0.0
    ready: dict[int, float] = {}
    joined: dict[int, float] = {}
    waiting: list[tuple[float, Binding]] = []
    loads, early = loads_by_issue(plan.steps), portions_by_step(plan.steps)
    done = [0.0]  # when the steps before each one have computed: what lay in the place of a load is needed no more

    def transfer(binding: Binding, after: float, cycles: float) -> float:
        nonlocal moving
        found.moved += binding.buffer.nbytes
        moving = max(moving, after) + cycles
        return moving

    def store_waiting() -> None:
        for after, binding in waiting:
            transfer(binding, after, storing_cycles(binding, tiler))
        waiting.clear()

    for index, step in enumerate(plan.steps):
        if step.work is None or (waiting and _reads(plan, loads[index], [binding for _, binding in waiting])):
            store_waiting()
        if step.work is None:
            found.starts.append(max(moving, computing))
            alone = estimate(step.op)
            found.took.append(alone)
            found.moving.append((0, 0))
            moving = computing = found.starts[-1] + alone
            found.moved += _moved_alone(step.op, alone, tiler)
            done.append(computing)
        for _, binding in loads[index]:
            ready[id(binding)] = transfer(binding, done[binding.live_range.first], loading_cycles(binding, tiler))
        store_waiting()
        for number, portion in early[index]:
            moving = joined[number] = max(moving, computing) + plan.steps[number].portion(portion).cycles
        if step.work is None:
            continue
        begin = max(
            [computing, *(ready[id(binding)] - binding.buffer.late for binding in step.inputs if binding.moves)]
        )
        begin = max(begin, joined.get(index, 0.0))
        first, last = _moving(step, copier)
        if first:
            begin = max(begin, moving)
            moving = begin + first
        found.starts.append(begin)
        computing, moving = _computed(step, begin, moving)
        computing += _copying(step, copier) + shared_cycles(step, tiler.bank_bytes)
        found.took.append(computing - begin)
        found.moving.append((first, last))
        if last:
            computing = moving = max(computing, moving + last)
        done.append(computing)
        waiting = [(computing, binding) for binding in step.outputs if binding.moves]
    store_waiting()
    found.ends, found.end = done[1:], max(moving, computing)
    return found


def least_cost(plan: Residency, estimate: Callable[[Operation], int], tiler: Tiler) -> float:
    """What a plan costs at least, in whatever order it loads and wherever its areas are."""
    computing = moving = nbytes = 0.0
    for step in plan.steps:
        if step.work is None:
            alone = estimate(step.op)
            computing, moving = computing + alone, moving + alone
            nbytes += _moved_alone(step.op, alone, tiler)
            continue
        loads, stores = ([binding for binding in bindings if binding.moves] for bindings in (step.inputs, step.outputs))
        nbytes += sum(binding.buffer.nbytes for binding in (*loads, *stores))
        computing += step.work.cycles - step.early_cycles
        moving += sum(loading_cycles(binding, tiler) for binding in loads)
        moving += step.work.transfers + sum(storing_cycles(binding, tiler) for binding in stores)
    return max(computing, moving) + HIDDEN * nbytes / tiler.bytes_per_cycle


def _reads(plan: Residency, loads: list[tuple[int, Binding]], stores: list[Binding]) -> bool:
    """Whether what is loaded for steps, by their numbers, needs what these store."""
    return any(reads_any(plan.steps[number], binding, stores) for number, binding in loads)


def _moved_alone(op: Operation, cycles: float, tiler: Tiler) -> float:
    """Bytes over the bus of an op that is no part of the plan: its operands and results, unless there is no time."""
    return min(sum(value.type.nbytes for value in (*op.operands, *op.results)), cycles * tiler.bytes_per_cycle)


def _computed(step: Step, start: float, moving: float) -> tuple[float, float]:
    """When a step has computed that starts so, and when the bus is free."""
    assert step.work is not None, "steps without work compute nothing"
    if step.work.stream is not None:
        return step.work.stream.times(start, moving)
    cycles = step.work.cycles
    if step.work.below:
        addresses = [[area.address for area in areas] for areas in (step.outputs, step.scratch)]
        cycles = step.work.placed_cycles(*addresses)
    return start + cycles - step.early_cycles, moving


def _moving(step: Step, copier: LocalCopier | None) -> tuple[float, float]:
    """Cycles that a step needs the engine that moves data for: when it begins, and when it ends."""
    if copier is None or not (step.before or step.after):
        return step.transfers, 0
    before, after = (sum(copier.transfers(copy.strided) for copy in copies) for copies in (step.before, step.after))
    return step.transfers + before, after


def _copying(step: Step, copier: LocalCopier | None) -> float:
    """Cycles of the copies around a step."""
    if copier is None or not (step.before or step.after):
        return 0
    return sum(copier.cycles(copy.strided) for copy in (*step.before, *step.after))
