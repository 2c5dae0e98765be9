"""Which activations stay in local memory between ops, so that they never cross the bus.

A device run is a list of units: ops computed as one tile, or parts of ops that a group of layers computes slice by
slice (`codegen.groups`). A unit leaves its result in local memory, and reads operands that are there in the layout it
wants; so can values that were loaded. The plan walks the units once and decides as a cache with perfect foresight does:
of what is needed again, that with the farthest next use gives way when room is short, first of what global memory has
anyway. Values that gave way, and those that other ops read from global memory, are stored when they are made. Then
every stay gets a local address for its steps, what is loaded for some steps more, so that it arrives while the ops
before compute.

1. An op that is no single tile takes all of local memory: nothing stays across it.
2. An op that works on global memory only (copies) touches no local memory: values stay across it.
3. Such an op is made in local memory only if all its operands are there: copies in global memory may cost nothing.
4. Slices of a value that other groups read are gathered: made in their place in the whole, or copied there. When there
   is no room for the whole, they are stored and read from global memory instead.
5. A box of what is there is read in its place where it lies like a tensor of its own, else a copy of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from bmcompiler.codegen.groups.regions import Mover, inside, whole_of
from bmcompiler.codegen.groups.slices import Unit
from bmcompiler.codegen.groups.steps import AHEAD, NEVER, Copy, Residency, Slot, Stay, Step
from bmcompiler.codegen.groups.uses import Uses
from bmcompiler.codegen.memory import Lifetime, pack, root_of
from bmcompiler.codegen.tiling import AXES, Buffer, Held, Tiler, TileWork
from bmcompiler.ir import Operation, Value

_SHRINK = 0.9
_TRIES = 8
_ORDERS = 60
"""Orders of areas that are tried before the plan takes less of local memory."""
_NEAR = 4
"""Steps ahead for which loads may fill local memory."""


class _NoRoom(Exception):  # noqa: N818
    """The whole of a value cannot be gathered; never leaves this module."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


def plan_residency(
    units: Sequence[Unit],
    blocks: Callable[[Operation], bool],
    read_elsewhere: Callable[[Value], bool],
    tiler: Tiler,
    mover: Mover | None = None,
) -> Residency | None:
    """Plan a run of device ops; None when no placement was found.

    Args:
        units: in order; those of a group slice by slice. All parts of an op have a work.
        blocks: whether an op that is no single tile uses local memory (rule 1).
        read_elsewhere: whether a value is read outside of the run (other runs, outputs of the net).
        mover: copies in local memory; without it a box is only read where just this box was made.
    """
    room, tries, apart = tiler.lane_bytes, _TRIES, set[Value]()
    while tries:
        planner = _Planner(units, blocks, read_elsewhere, tiler, mover, room, apart)
        try:
            found = planner.plan()
        except _NoRoom as full:
            apart.add(full.value)
            continue
        if planner.place() <= tiler.lane_bytes:
            return found
        tries -= 1
        room = int(room * _SHRINK) // tiler.align * tiler.align
    return None


def whole_units(ops: Sequence[Operation], work_of: Callable[[Operation], TileWork | None]) -> list[Unit]:
    """Every op as a unit of its own."""
    return [Unit(op, None, work_of(op), number) for number, op in enumerate(ops)]


class _Planner:
    def __init__(
        self,
        units: Sequence[Unit],
        blocks: Callable[[Operation], bool],
        read_elsewhere: Callable[[Value], bool],
        tiler: Tiler,
        mover: Mover | None,
        room: int,
        apart: set[Value],
    ) -> None:
        self.blocks, self.tiler, self.mover, self.room = blocks, tiler, mover, room
        self.steps = [Step(unit.op, self._fitting(unit), unit.group, unit.slices) for unit in units]
        self.filled: dict[Held, list[Held]] = defaultdict(list)
        self.used = [0] * len(units)
        self.stays: list[Stay] = []
        self.here: dict[Held, Stay] = {}
        self.uses = Uses(units, self.steps, blocks, mover, apart)
        made = {value for unit in units for value in unit.op.results}
        self.in_global = self.uses.in_global | set(filter(read_elsewhere, made))

    def _fitting(self, unit: Unit) -> TileWork | None:
        work = unit.work
        if work is None or unit.box is not None:
            return work and _keyed(unit, work)
        return work if self._size(work) <= self.room else None

    def _size(self, work: TileWork) -> int:
        sizes = [buffer.lane_bytes for buffer in (*work.inputs, *work.outputs)]
        return sum(map(self.tiler.rounded, (*sizes, *work.scratch)))

    def plan(self) -> Residency:
        for index, step in enumerate(self.steps):
            if step.work is None:
                blocked = self.blocks(step.op)
                if blocked:
                    self._make_room(index, self.room, set())
                self.used[index] = self.room if blocked else self._taken()
            else:
                self._step(index, step, step.work)
        for step in self.steps:
            for slot in step.outputs:
                slot.moves = slot.buffer.holds is None or slot.buffer.holds.value in self.in_global
        slots = [slot for step in self.steps for slot in step.outputs]
        kept = {slot.buffer.holds.value for slot in slots if slot.buffer.holds is not None}
        return Residency(self.steps, kept - self.in_global, self.stays)

    # -- the walk ------------------------------------------------------------------------------------------------------
    def _step(self, index: int, step: Step, work: TileWork) -> None:
        while True:
            sources = [self._source(buffer) for buffer in work.inputs]
            places = [self._place_of(buffer) for buffer in work.outputs]
            needed = sum(map(self.tiler.rounded, work.scratch))
            for buffer, source in zip(work.inputs, sources):
                needed += 0 if source is not None and source[1] is not None else self.tiler.rounded(buffer.lane_bytes)
            for buffer, found in zip(work.outputs, places):
                needed += 0 if found is not None and found[1] is not None else self.tiler.rounded(buffer.lane_bytes)
                if found is not None and found[0] not in self.here:
                    needed += self._whole_bytes(found[0])
            wanted = {source[0] for source in sources if source is not None}
            wanted.update(found[0] for found in places if found is not None)
            if self._make_room(index, needed, wanted) or not self._give_up(work, sources, places):
                break
        self.used[index] = self._taken() + needed
        for held, stay in self.here.items():
            if stay.last == index - 1 and held.value in self.in_global:
                stay.last = index  # there is time to store it
        self._have_inputs(index, step, work, sources)
        step.scratch = [self._stay(size, index, index, step.op.label, "scratch") for size in work.scratch]
        fresh = self._have_outputs(index, step, work, places)
        for held in [h for h in self.here if h not in fresh and self.uses.next_use(h, index) == NEVER]:
            del self.here[held]

    def _have_inputs(
        self, index: int, step: Step, work: TileWork, sources: list[tuple[Held, int | None] | None]
    ) -> None:
        for buffer, source in zip(work.inputs, sources):
            held = buffer.holds
            if source is None and held is not None and held in self.here:
                source = held, 0  # an operand that is listed twice
            if source is not None:
                stay = self.here[source[0]]
                stay.last = index
                if source[1] is not None:
                    step.inputs.append(Slot(buffer, stay, False, source[1]))
                    continue
            kind = "weight" if buffer.coefficient else "value"
            label = held.value.op.label if held is not None and held.value.op is not None else step.op.label
            first = index if source is not None else self._arrival(index, buffer)
            own = self._stay(buffer.lane_bytes, first, index, label, kind)
            step.inputs.append(Slot(buffer, own, source is None))
            if source is not None and held is not None and self.mover is not None:
                move = self.mover.move(source[0], held)
                assert move is not None  # `_reaches`
                step.before.append(Copy(move, stay, own))
            if held is not None:
                self.here[held] = own

    def _have_outputs(
        self, index: int, step: Step, work: TileWork, places: list[tuple[Held, int | None] | None]
    ) -> set[Held]:
        """Returns what may stay for a step to be stored while the next one computes."""
        fresh: set[Held] = set()
        for buffer, found in zip(work.outputs, places):
            held, label = buffer.holds, step.op.label
            if found is not None:
                whole, offset = found
                if whole not in self.here:
                    self.here[whole] = self._stay(self._whole_bytes(whole), index, index, label, "value")
                stay = self.here[whole]
                stay.last = index
                self.filled[whole] += [] if held is None else [held]
                if offset is not None:
                    step.outputs.append(Slot(buffer, stay, True, offset))
                    continue
            own = self._stay(buffer.lane_bytes, index, index, label, "value")
            step.outputs.append(Slot(buffer, own, True))
            if found is not None and held is not None and self.mover is not None:
                move = self.mover.move(held, found[0])
                assert move is not None  # `_reaches`
                step.after.append(Copy(move, own, stay))
            if held is not None:
                self.here[held] = own
                if held.value in self.in_global:
                    fresh.add(held)
        return fresh

    def _source(self, buffer: Buffer) -> tuple[Held, int | None] | None:
        """(what holds the content of a buffer, its offset there or None for a copy); None: it must be loaded."""
        held = buffer.holds
        if held is None or held in self.here:
            return None if held is None else (held, 0)
        if self.mover is None:
            return None
        for other in self.here:
            if other.value is held.value and self._holds_already(other, held) and self.uses.reaches(held, other):
                fits = held.box is not None and buffer.lane_bytes == self.mover.lane_bytes(held)
                return other, self.mover.offset(other, held) if fits else None
        return None

    def _holds_already(self, other: Held, held: Held) -> bool:
        """False for a whole in which this part is still missing."""
        if not self.uses.serves(held, other):
            return False
        return (
            other not in self.uses.gathered
            or any(inside(held, part) for part in self.filled[other])
            or self._is_complete(other)
        )

    def _is_complete(self, whole: Held) -> bool:
        made = self.uses.gathered[whole]
        return self.here[whole].last >= made[-1]

    def _place_of(self, buffer: Buffer) -> tuple[Held, int | None] | None:
        """(the whole that a result is gathered in, its offset there or None for a copy)."""
        held = buffer.holds
        if held is None or held.box is None or self.mover is None:
            return None
        whole = whole_of(held)
        if whole not in self.uses.gathered:
            return None
        fits = buffer.lane_bytes == self.mover.lane_bytes(held)
        return whole, self.mover.offset(whole, held) if fits else None

    def _whole_bytes(self, whole: Held) -> int:
        assert self.mover is not None
        return self.tiler.rounded(self.mover.lane_bytes(whole))

    def _arrival(self, index: int, buffer: Buffer) -> int:
        """The earliest step before which what step `index` loads finds room, and global memory has it."""
        size, first, least = self.tiler.rounded(buffer.lane_bytes), index, max(0, index - AHEAD)
        if not buffer.coefficient:
            roots = [buffer.holds.value] if buffer.holds else [root_of(v) for v in self.steps[index].op.operands]
            least = max([least, *(self.uses.made_before(root, index) for root in roots)])
        while first > least and self.used[first - 1] + size <= self._room_ahead(index - first):
            first -= 1
            self.used[first] += size
        return first

    def _room_ahead(self, steps: int) -> int:
        """What may be in use when something is loaded more than so many steps early.

        What comes far ahead leaves a quarter free: near loads shall not wait for it, and first fit wastes some room.
        """
        return self.room if steps < _NEAR else self.room * 3 // 4

    def _make_room(self, index: int, needed: int, wanted: set[Held]) -> bool:
        """Let values go until `needed` bytes fit beside the others; what is `wanted` now stays. False: they do not."""
        taken = self._taken()
        if taken + needed <= self.room:
            return True

        def cheapest_last(held: Held) -> tuple[bool, int, int]:
            return self._is_elsewhere(held), self.uses.next_use(held, index - 1), self.here[held].lane_bytes

        rest = sorted((held for held in self.here if held not in wanted), key=cheapest_last)
        while rest and taken + needed > self.room:
            held = rest.pop()
            taken -= self.tiler.rounded(self.here[held].lane_bytes)
            self._drop(held)
        return taken + needed <= self.room

    def _drop(self, held: Held) -> None:
        if held in self.uses.gathered and not self._is_complete(held):
            raise _NoRoom(held.value)
        if not self._is_elsewhere(held):
            self.in_global.add(held.value)
        del self.here[held]

    def _give_up(
        self,
        work: TileWork,
        sources: list[tuple[Held, int | None] | None],
        places: list[tuple[Held, int | None] | None],
    ) -> bool:
        """Where a step finds no room, do without a whole that it reads or fills; False when there is none."""
        for found in places:
            if found is not None:
                raise _NoRoom(found[0].value)
        around = [s[0] for buffer, s in zip(work.inputs, sources) if s is not None and s[0] != buffer.holds]
        if not around:
            return False
        self._drop(max(around, key=lambda held: self.here[held].lane_bytes))
        return True

    def _is_elsewhere(self, held: Held) -> bool:
        """Whether nothing is lost with what is held: global memory has it, or more of it is here."""
        return (
            _is_weight(held)
            or held.value in self.in_global
            or any(other != held and self._holds_already(other, held) for other in self.here)
        )

    def _taken(self) -> int:
        return sum(self.tiler.rounded(stay.lane_bytes) for stay in self.here.values())

    def _stay(self, lane_bytes: int, first: int, last: int, label: str, kind: str) -> Stay:
        stay = Stay(lane_bytes, first, last, label=label, kind=kind)
        self.stays.append(stay)
        return stay

    # -- addresses -----------------------------------------------------------------------------------------------------
    def place(self) -> int:
        """Give all stays their addresses; returns the bytes per lane they need together."""
        lives = [Lifetime(self.tiler.rounded(stay.lane_bytes), stay.first, stay.last) for stay in self.stays]
        need = pack(lives, 0, self.tiler.align, enough=self.tiler.lane_bytes, tries=_ORDERS)
        for stay, life in zip(self.stays, lives):
            stay.address = life.offset
        return need


def _keyed(unit: Unit, work: TileWork) -> TileWork:
    """The work with a name for each of its coefficients, by which the next slices find them."""
    box = unit.box
    if box is None:
        return work
    inputs = []
    for number, buffer in enumerate(work.inputs):
        if buffer.coefficient and buffer.holds is None:
            where = tuple(box[AXES.index(axis)] for axis in buffer.axes)
            buffer = replace(buffer, holds=Held(unit.op.results[0], ("weight", number, where)))
        inputs.append(buffer)
    return replace(work, inputs=tuple(inputs))


def _is_weight(held: Held) -> bool:
    return isinstance(held.layout, tuple) and held.layout[:1] == ("weight",)


__all__ = ["AHEAD", "Copy", "Residency", "Slot", "Stay", "Step", "plan_residency", "whole_units"]
