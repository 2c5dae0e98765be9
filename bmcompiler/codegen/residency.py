"""Which activations stay in local memory between ops, so that they never cross the bus.

An op that fits local memory as one tile (`DeviceKernel.whole`) can leave its result there, and read operands that are
there in the layout it wants; so can values that were loaded. The plan walks the ops of a device run once and decides as
a cache with perfect foresight does: of what is needed again, that with the farthest next use gives way when room is
short, first of what global memory has anyway. Values that gave way, and those that other ops read from global memory,
are stored when they are made. Then every stay gets a local address for its steps, weights for some steps more, so that
they arrive while the ops before compute.

Weights may come up to AHEAD steps before they are needed.

1. An op that is no single tile takes all of local memory: nothing stays across it.
2. An op that works on global memory only (copies) touches no local memory: values stay across it.
3. Such an op is made in local memory only if all its operands are there: copies in global memory may cost nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bmcompiler.codegen.memory import Lifetime, first_fit, root_of
from bmcompiler.codegen.schedule import Moved
from bmcompiler.codegen.tiling import Buffer, Held, Tiler, TileWork
from bmcompiler.ir import Operation, Value

_SHRINK = 0.9
_TRIES = 8
NEVER = 1 << 30
AHEAD = 4
"""Steps that weights may be loaded before their op."""


@dataclass
class Stay:
    """A buffer in local memory during steps `first` to `last`."""

    lane_bytes: int
    first: int
    last: int
    address: int = -1


@dataclass
class Slot:
    """How a step has one of its buffers: where, and whether it is moved for this step."""

    buffer: Buffer
    stay: Stay
    moves: bool


@dataclass
class Step:
    """An op of a run. `work` is None for ops that do not take part."""

    op: Operation
    work: TileWork | None
    inputs: list[Slot] = field(default_factory=list)
    outputs: list[Slot] = field(default_factory=list)
    scratch: list[Stay] = field(default_factory=list)


@dataclass
class Residency:
    """The plan of a run.

    Attributes:
        steps: one per op, in order. local_only: values that need no global memory.
    """

    steps: list[Step]
    local_only: set[Value] = field(default_factory=set)


def plan_residency(
    ops: Sequence[Operation],
    work_of: Callable[[Operation], TileWork | None],
    blocks: Callable[[Operation], bool],
    read_elsewhere: Callable[[Value], bool],
    tiler: Tiler,
) -> Residency:
    """Plan a run of device ops.

    Args:
        work_of: the op as one tile, None when it is not.
        blocks: whether an op that is no single tile uses local memory (rule 1).
        read_elsewhere: whether a value is read outside of the run (other runs, outputs of the net).
    """
    works = [work_of(op) for op in ops]
    room = tiler.lane_bytes
    for _ in range(_TRIES):
        planner = _Planner(ops, works, blocks, read_elsewhere, tiler, room)
        found = planner.plan()
        if planner.place() <= tiler.lane_bytes:
            return found
        room = int(room * _SHRINK) // tiler.align * tiler.align
    return Residency([Step(op, None) for op in ops])


class _Planner:
    def __init__(
        self,
        ops: Sequence[Operation],
        works: Sequence[TileWork | None],
        blocks: Callable[[Operation], bool],
        read_elsewhere: Callable[[Value], bool],
        tiler: Tiler,
        room: int,
    ) -> None:
        self.steps = [Step(op, work and self._fitting(work, tiler, room)) for op, work in zip(ops, works)]
        self.blocks, self.read_elsewhere, self.tiler, self.room = blocks, read_elsewhere, tiler, room
        self.uses: dict[Held, list[int]] = defaultdict(list)
        self.made: dict[Value, Held | None] = {}
        self.stays: list[Stay] = []
        self.here: dict[Held, Stay] = {}
        self.in_global: set[Value] = set()

    @staticmethod
    def _fitting(work: TileWork, tiler: Tiler, room: int) -> TileWork | None:
        sizes = [buffer.lane_bytes for buffer in (*work.inputs, *work.outputs)]
        return work if sum(map(tiler.rounded, (*sizes, *work.scratch))) <= room else None

    # -- what is read where --------------------------------------------------------------------------------------------
    def plan(self) -> Residency:
        self._find_uses()
        for index, step in enumerate(self.steps):
            if step.work is None:
                if self.blocks(step.op):
                    self._make_room(index, self.room, set())
            else:
                self._step(index, step, step.work)
        for step in self.steps:
            for slot in step.outputs:
                slot.moves = slot.buffer.holds is None or slot.buffer.holds.value in self.in_global
        slots = [slot for step in self.steps for slot in step.outputs]
        kept = {slot.buffer.holds.value for slot in slots if slot.buffer.holds is not None}
        return Residency(self.steps, kept - self.in_global)

    def _find_uses(self) -> None:
        """Uses by layout; what is read in another layout than it is made in is read from global memory."""
        self._leave_copies()
        for step in self.steps:
            outputs = step.work.outputs if step.work else ()
            layouts = {b.holds.value: b.holds for b in outputs if b.holds is not None}
            self.made.update((value, layouts.get(value)) for value in step.op.results)
        for index, step in enumerate(self.steps):
            wanted = [b.holds for b in step.work.inputs if b.holds is not None] if step.work else []
            for held in dict.fromkeys(wanted):
                self.uses[held].append(index)
            operands = [root_of(value) for value in step.op.operands]
            for value in dict.fromkeys(operands):
                made = self.made.get(value)
                if made is None or wanted.count(made) < operands.count(value):
                    self.in_global.add(value)
        self.in_global.update(value for value in self.made if self.read_elsewhere(value))

    def _leave_copies(self) -> None:
        """Rule 3."""
        made: set[Held] = set()
        for step in self.steps:
            if step.work is None:
                continue
            if not self.blocks(step.op) and any(b.holds not in made for b in step.work.inputs):
                step.work = None
            else:
                made.update(b.holds for b in step.work.outputs if b.holds is not None)

    # -- the walk ------------------------------------------------------------------------------------------------------
    def _step(self, index: int, step: Step, work: TileWork) -> None:
        wanted: set[Held] = {buffer.holds for buffer in work.inputs if buffer.holds is not None}
        new = [buffer for buffer in work.inputs if buffer.holds is None or buffer.holds not in self.here]
        sizes = [buffer.lane_bytes for buffer in (*new, *work.outputs)]
        needed = sum(map(self.tiler.rounded, (*sizes, *work.scratch)))
        self._make_room(index, needed, wanted)
        early = self._arrival(index, work)
        for buffer in work.inputs:
            held = buffer.holds
            if held is not None and held in self.here:
                stay = self.here[held]
                stay.last = index
                step.inputs.append(Slot(buffer, stay, False))
                continue
            stay = self._stay(buffer.lane_bytes, early if buffer.coefficient else index, index)
            step.inputs.append(Slot(buffer, stay, True))
            if held is not None:
                self.here[held] = stay
        step.scratch = [self._stay(size, index, index) for size in work.scratch]
        for buffer in work.outputs:
            stay = self._stay(buffer.lane_bytes, index, index)
            step.outputs.append(Slot(buffer, stay, True))
            if buffer.holds is not None:
                self.here[buffer.holds] = stay
        for held in [h for h in self.here if self._next_use(h, index) == NEVER]:
            del self.here[held]

    def _arrival(self, index: int, work: TileWork) -> int:
        """The earliest step before which the weights of step `index` find room."""
        weights = sum(self.tiler.rounded(b.lane_bytes) for b in work.inputs if b.coefficient)
        first = index
        while first > max(0, index - AHEAD):
            before = self.steps[first - 1]
            if before.work is None and self.blocks(before.op):
                break
            then = {id(stay): stay for stay in self.stays if stay.first < first <= stay.last + 1}
            then.update((id(stay), stay) for stay in self.here.values() if stay.first < first)
            if sum(self.tiler.rounded(stay.lane_bytes) for stay in then.values()) + weights > self.room:
                break
            first -= 1
        return first

    def _make_room(self, index: int, needed: int, wanted: set[Held]) -> None:
        """Let values go until `needed` bytes fit beside the others; what is `wanted` now stays."""
        taken = sum(self.tiler.rounded(stay.lane_bytes) for stay in self.here.values())

        def cheapest_last(held: Held) -> tuple[bool, int, int]:
            return held.value in self.in_global, self._next_use(held, index - 1), self.here[held].lane_bytes

        rest = sorted((held for held in self.here if held not in wanted), key=cheapest_last)
        while rest and taken + needed > self.room:
            held = rest.pop()
            taken -= self.tiler.rounded(self.here.pop(held).lane_bytes)
            self.in_global.add(held.value)

    def _next_use(self, held: Held, index: int) -> int:
        return next((use for use in self.uses[held] if use > index), NEVER)

    def _stay(self, lane_bytes: int, first: int, last: int) -> Stay:
        stay = Stay(lane_bytes, first, last)
        self.stays.append(stay)
        return stay

    # -- addresses -----------------------------------------------------------------------------------------------------
    def place(self) -> int:
        """Give all stays their addresses; returns the bytes per lane they need together."""
        lives = [Lifetime(self.tiler.rounded(stay.lane_bytes), stay.first, stay.last) for stay in self.stays]
        first_fit(lives, 0, self.tiler.align)
        for stay, life in zip(self.stays, lives):
            stay.address = life.offset
        return max((life.offset + life.nbytes for life in lives), default=0)


def emit_loads(index: int, at: int, build: Any, step: Step, moved: Moved) -> None:
    """Emit the loads of step number `index` that are due before step `at` computes."""
    for slot in step.inputs:
        if slot.moves and slot.stay.first == at <= index:
            slot.buffer.transfer(build, slot.stay.address)
            moved.loaded += slot.buffer.nbytes
            moved.weights += slot.buffer.nbytes if slot.buffer.coefficient else 0


def emit_work(build: Any, step: Step, moved: Moved) -> None:
    """Emit the computation of a step and the stores of what is read from global memory."""
    assert step.work is not None
    inputs, outputs = ([slot.stay.address for slot in slots] for slots in (step.inputs, step.outputs))
    step.work.compute(build, inputs, outputs, [stay.address for stay in step.scratch])
    for slot in step.outputs:
        if slot.moves:
            slot.buffer.transfer(build, slot.stay.address)
            moved.stored += slot.buffer.nbytes
    moved.tiles = 1
