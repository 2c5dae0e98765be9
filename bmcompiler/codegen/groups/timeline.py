"""When the stripes of a plan of residency compute: two engines that work in order, a step or transfer at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bmcompiler.codegen.groups.banks import shared_cycles
from bmcompiler.codegen.groups.regions import LocalCopier
from bmcompiler.codegen.groups.steps import (
    Binding,
    Residency,
    Step,
    copies_by_step,
    needed_by,
    portions_by_step,
    stored_by,
)
from bmcompiler.codegen.kernels import DeviceKernel
from bmcompiler.codegen.memory import Hosts, root_of
from bmcompiler.codegen.tiling import Tiler
from bmcompiler.ir import Operation, Value

HIDDEN = 0.2
"""Part of the time of a transfer that counts although it runs beside computation: plans should also move little."""


@dataclass
class Timeline:
    """Estimated cycles of a plan.

    Attributes:
        starts, ends: when each step begins to compute, and has. end: when all is stored. moved: bytes over the bus.
        took: cycles of each step with nothing to wait for. moving: of these the first and the last ones, for which it
            needs the engine that moves data. early: before each step, numbers of the steps that are begun, with cycles.
    """

    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    moving: list[tuple[float, float]] = field(default_factory=list)
    early: list[Sequence[tuple[int, float]]] = field(default_factory=list)
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


class _Load(NamedTuple):
    """A load of a plan: its number among these, the cycles it takes, and what it needs in global memory."""

    number: int
    binding: Binding
    cycles: float
    reads: frozenset[Value]


class _Fixed(NamedTuple):
    """What no order of loads and no address changes of a step.

    Attributes:
        alone: cycles of an op that has no tile. tile: of one that takes always the same.
        loads: numbers of its loads, with the cycles of its work before each is needed.
        stores: cycles of each. stored: values that loads may have to wait for.
        portions: numbers of the steps that are begun before it, with cycles. moving: see `Timeline`.
        copying: cycles of the copies around it.
    """

    alone: float | None
    tile: float | None
    loads: Sequence[tuple[int, float]]
    stores: Sequence[float]
    stored: frozenset[Value]
    portions: Sequence[tuple[int, float]]
    moving: tuple[float, float]
    copying: float


class Clock:
    """The times of a plan whose loads may be issued at other steps, and whose areas may get other addresses.

    Args: estimate: what an op tiled by itself takes, in cycles.
    """

    def __init__(
        self, plan: Residency, estimate: Callable[[Operation], int], tiler: Tiler, copier: LocalCopier | None
    ) -> None:
        self._steps, self._bank_bytes, self._moved = plan.steps, tiler.bank_bytes, 0.0
        self._loads: list[_Load] = []
        self._fixed: list[_Fixed] = []
        copies = copies_by_step(plan.steps)
        for step, early, ahead in zip(plan.steps, portions_by_step(plan.steps), copies):
            alone = estimate(step.op) if step.work is None else None
            portions = [(number, plan.steps[number].portion(portion).cycles) for number, portion in early]
            portions += [(number, copier.cycles(copy.strided)) for number, copy in ahead if copier is not None]
            stores = [binding for binding in step.outputs if binding.moves]
            loads = [binding for binding in step.inputs if binding.moves]
            first = len(self._loads)
            self._loads += [
                _Load(first + i, load, loading_cycles(load, tiler), needed_by(step, load))
                for i, load in enumerate(loads)
            ]
            self._fixed.append(
                _Fixed(
                    alone,
                    _tile_cycles(step),
                    [(first + i, load.buffer.late) for i, load in enumerate(loads)],
                    [storing_cycles(store, tiler) for store in stores],
                    stored_by(stores),
                    portions,
                    _moving(step, copier),
                    _copying(step, copier),
                )
            )
            self._moved += sum(binding.buffer.nbytes for binding in (*loads, *stores))
            self._moved += 0 if alone is None else _moved_alone(step.op, alone, tiler)

    def __call__(self) -> Timeline:
        """With loads and addresses as they are now."""
        found = Timeline(moved=self._moved)
        found.moving, found.early = [one.moving for one in self._fixed], [one.portions for one in self._fixed]
        moving = computing = 0.0
        ready, joined, due = [0.0] * len(self._loads), dict[int, float](), self._due()
        before: _Fixed | None = None
        stored = 0.0  # when what the step before stores, behind the loads of the next one, is made
        done = [0.0]  # when the steps before each one have computed: what lay in the place of a load is needed no more
        for index, fixed in enumerate(self._fixed):
            if fixed.alone is not None or _meets(before, due[index]):
                moving, before = _stored(before, stored, moving), None
            if fixed.alone is not None:
                found.starts.append(max(moving, computing))
                found.took.append(fixed.alone)
                moving = computing = found.starts[-1] + fixed.alone
                done.append(computing)
            for load in due[index]:
                moving = ready[load.number] = max(moving, done[load.binding.live_range.first]) + load.cycles
            moving, before = _stored(before, stored, moving), None
            for number, cycles in fixed.portions:
                moving = joined[number] = max(moving, computing) + cycles
            if fixed.alone is not None:
                continue
            begin = max([computing, joined.get(index, 0.0), *(ready[number] - late for number, late in fixed.loads)])
            first, last = fixed.moving
            if first:
                begin = max(begin, moving)
                moving = begin + first
            found.starts.append(begin)
            if fixed.tile is not None:
                computing = begin + fixed.tile
            else:
                computing, moving = _computed(self._steps[index], begin, moving)
            computing += fixed.copying + shared_cycles(self._steps[index], self._bank_bytes)
            found.took.append(computing - begin)
            if last:
                computing = moving = max(computing, moving + last)
            done.append(computing)
            before, stored = fixed, computing
        found.ends, found.end = done[1:], max(_stored(before, stored, moving), computing)
        return found

    def _due(self) -> list[list[_Load]]:
        """What is loaded before each step computes, in the order of the steps that need it."""
        found: list[list[_Load]] = [[] for _ in self._fixed]
        for load in self._loads:
            found[load.binding.issue].append(load)
        return found


def _meets(step: _Fixed | None, loads: Sequence[_Load]) -> bool:
    """Whether any of the loads needs what a step stores."""
    return step is not None and any(not step.stored.isdisjoint(load.reads) for load in loads)


def _stored(step: _Fixed | None, since: float, moving: float) -> float:
    """When the bus is free that has to store what a step has made, which is there since then."""
    for cycles in () if step is None else step.stores:
        moving = max(moving, since) + cycles
    return moving


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


def _tile_cycles(step: Step) -> float | None:
    """What a step takes, where neither addresses nor the bus change that."""
    work = step.work
    return work.cycles if work is not None and work.stream is None and not work.below and not step.early else None


def _moving(step: Step, copier: LocalCopier | None) -> tuple[float, float]:
    """Cycles that a step needs the engine that moves data for: when it begins, and when it ends."""
    if copier is None or not (step.before or step.after):
        return step.transfers, 0
    before, after = (sum(copier.transfers(copy.strided) for copy in copies) for copies in (step.own_copies, step.after))
    return step.transfers + before, after


def _copying(step: Step, copier: LocalCopier | None) -> float:
    """Cycles of the copies around a step."""
    if copier is None or not (step.before or step.after):
        return 0
    return sum(copier.cycles(copy.strided) for copy in (*step.own_copies, *step.after))
