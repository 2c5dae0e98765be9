"""Which activations stay in local memory between ops, so that they never cross the bus.

A device run is a list of stripes: ops computed as one tile, or parts of ops that a group of layers computes slice by
slice (`codegen.groups`). A stripe leaves its result in local memory, and reads operands that are there in the layout it
wants; so can values that were loaded. The plan walks the stripes once and decides as a cache with perfect foresight: of
what is needed again, that with the farthest next use gives way when room is short, first of what global memory has
anyway. Values that gave way, and those that other ops read from global memory, are stored when they are made. Then
every live range gets a local address for its steps, what is loaded for some more, so that it arrives while the ops
before compute.

1. An op that is no single tile takes all of local memory: nothing stays across it.
2. An op that works on global memory only (copies) touches no local memory: values stay across it.
3. Such an op is made in local memory only if all its operands are there: copies in global memory may cost nothing.
4. Slices of a value that other groups read are gathered: made in their place in the whole, or copied there. When there
   is no room for the whole, they are stored and read from global memory instead.
5. A box of what is there is read in its place where it lies like a tensor of its own, else a copy of it; so is a
   whole in another layout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from bmcompiler.codegen.groups.banks import move_apart
from bmcompiler.codegen.groups.places import give_places
from bmcompiler.codegen.groups.regions import LocalCopier, StridedCopy, inside, whole_of
from bmcompiler.codegen.groups.slices import WEIGHT, Stripe
from bmcompiler.codegen.groups.steps import (
    AHEAD,
    NEVER,
    Binding,
    Copy,
    Held,
    LiveRange,
    Residency,
    Step,
    WalkMark,
    sources,
)
from bmcompiler.codegen.groups.uses import Reachable, Uses
from bmcompiler.codegen.tiling import Buffer, Contents, Tiler, TileWork
from bmcompiler.ir import Operation, Value

_SHRINK = 0.9
_TRIES = 8
_SLACK = 2
"""How many times what is done early the steps take beside which it is done: it waits for loads before it."""
_NEAR = 4
"""Steps ahead for which loads may fill local memory."""


class _NoRoom(Exception):  # noqa: N818
    """The whole of a value cannot be gathered; never leaves this module."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


def plan_residency(
    stripes: Sequence[Stripe],
    blocks: Callable[[Operation], bool],
    read_elsewhere: Callable[[Value], bool],
    tiler: Tiler,
    copier: LocalCopier | None = None,
    hopeless: Callable[[Residency], bool] = lambda plan: False,
    reachable: Reachable | None = None,
) -> Residency | None:
    """Plan a run of device ops; None when no placement was found, or none is worth it.

    Args:
        stripes: in order; those of a group slice by slice. All parts of an op have a work.
        blocks: whether an op that is no single tile uses local memory (rule 1).
        read_elsewhere: whether a value is read outside of the run (other runs, outputs of the net).
        copier: copies in local memory; without it a box is only read where just this box was made.
        hopeless: whether a plan needs no addresses, for it costs too much wherever its areas are.
        reachable: what is found out of layouts, for plans of the same ops with the same copier.
    """
    room, tries, apart = tiler.lane_bytes, _TRIES, set[Value]()
    reachable = {} if reachable is None else reachable
    while tries:
        found = _Planner(stripes, blocks, read_elsewhere, tiler, copier, room, apart, reachable).plan()
        if hopeless(found):
            return None
        if give_places(found, tiler) <= tiler.lane_bytes:
            move_apart(found, tiler)
            return found
        tries -= 1
        room = int(room * _SHRINK) // tiler.align * tiler.align
    return None


def whole_stripes(ops: Sequence[Operation], work_of: Callable[[Operation], TileWork | None]) -> list[Stripe]:
    """Every op as a stripe of its own."""
    return [Stripe(op, None, work_of(op), number) for number, op in enumerate(ops)]


class _Planner:
    def __init__(
        self,
        stripes: Sequence[Stripe],
        blocks: Callable[[Operation], bool],
        read_elsewhere: Callable[[Value], bool],
        tiler: Tiler,
        copier: LocalCopier | None,
        room: int,
        apart: set[Value],
        reachable: Reachable,
    ) -> None:
        self.blocks, self.tiler, self.copier, self.room = blocks, tiler, copier, room
        self.steps = [Step(stripe.op, self._fitting(stripe), stripe.group, stripe.slices) for stripe in stripes]
        self.filled: dict[Contents, list[Contents]] = defaultdict(list)
        self.used = [0] * len(stripes)
        self.live_ranges: list[LiveRange] = []
        self.here: dict[Contents, LiveRange] = {}
        self.uses = Uses(stripes, self.steps, blocks, copier, apart, reachable)
        self.marks: dict[int, WalkMark] = {}
        made = {value for stripe in stripes for value in stripe.op.results}
        self.in_global = self.uses.in_global | set(filter(read_elsewhere, made))

    def _fitting(self, stripe: Stripe) -> TileWork | None:
        work = stripe.work
        fits = work is None or stripe.box is not None or self._size(work) <= self.room
        return work if fits else None

    def _size(self, work: TileWork) -> int:
        sizes = [buffer.lane_bytes for buffer in (*work.inputs, *work.outputs)]
        return sum(map(self.tiler.rounded, (*sizes, *work.scratch)))

    def plan(self) -> Residency:
        index = 0
        while index < len(self.steps):
            try:
                self._walk(index, self.steps[index])
                index += 1
            except _NoRoom as full:
                index = self._without(full.value)
        for step in self.steps:
            for binding in step.outputs:
                binding.moves = binding.buffer.contents is None or binding.buffer.contents.value in self.in_global
        bindings = [binding for step in self.steps for binding in step.outputs]
        kept = {binding.buffer.contents.value for binding in bindings if binding.buffer.contents is not None}
        return Residency(self.steps, kept - self.in_global, self.live_ranges)

    # -- the walk ------------------------------------------------------------------------------------------------------
    def _walk(self, index: int, step: Step) -> None:
        if index in self.uses.begins:
            lasts, filled = [each.last for each in self.live_ranges], {h: [*parts] for h, parts in self.filled.items()}
            self.marks[index] = WalkMark([*self.used], lasts, {**self.here}, filled, {*self.in_global})
        if step.work is not None:
            self._step(index, step, step.work)
            return
        blocked = self.blocks(step.op)
        if blocked:
            self._make_room(index, self.room, set())
        self.used[index] = self.room if blocked else self._taken()

    def _without(self, value: Value) -> int:
        """Do without the whole of a value; returns the first step that makes some of it, before which nothing changes.

        What is loaded for later steps may have come earlier: all that the walk changes is as it was then.
        """
        first = self.uses.leave_apart(value)
        mark = self.marks[first]
        self.used, self.here = [*mark.used], {**mark.here}
        self.filled = defaultdict(list, {whole: [*parts] for whole, parts in mark.filled.items()})
        self.in_global = mark.in_global | (self.uses.apart & self.uses.in_global)
        del self.live_ranges[len(mark.lasts) :]
        for live_range, last in zip(self.live_ranges, mark.lasts):
            live_range.last = last
        self.steps[first:] = [Step(step.op, step.work, step.group, step.slices) for step in self.steps[first:]]
        return first

    def _step(self, index: int, step: Step, work: TileWork) -> None:
        while True:
            sources = [self._source(buffer) for buffer in work.inputs]
            places = [self._place_of(buffer) for buffer in work.outputs]
            needed = sum(map(self.tiler.rounded, work.scratch))
            for buffer, source in zip(work.inputs, sources):
                needed += 0 if source is not None and source.inside else self.tiler.rounded(buffer.lane_bytes)
            for buffer, found in zip(work.outputs, places):
                needed += 0 if found is not None and found.inside else self.tiler.rounded(buffer.lane_bytes)
                if found is not None and found.by not in self.here:
                    needed += self._whole_bytes(found.by)
            wanted = {source.by for source in sources if source is not None}
            wanted.update(found.by for found in places if found is not None)
            if self._make_room(index, needed, wanted) or not self._give_up(work, sources, places):
                break
        self.used[index] = self._taken() + needed
        for contents, live_range in self.here.items():
            if live_range.last == index - 1 and contents.value in self.in_global:
                live_range.last = index  # there is time to store it
        self._have_inputs(index, step, work, sources)
        step.scratch = [self._live_range(size, index, index, step.op.label, "scratch") for size in work.scratch]
        fresh = self._have_outputs(index, step, work, places)
        for contents in [h for h in self.here if h not in fresh and self.uses.next_use(h, index) == NEVER]:
            del self.here[contents]

    def _have_inputs(self, index: int, step: Step, work: TileWork, sources: list[Held | None]) -> None:
        for buffer, source in zip(work.inputs, sources):
            contents = buffer.contents
            if source is None and contents is not None and contents in self.here:
                source = Held(contents, 0)  # an operand that is listed twice
            if source is not None:
                live_range = self.here[source.by]
                live_range.last = index
                if source.offset is not None:
                    step.inputs.append(Binding(buffer, live_range, False, source.offset))
                    continue
            kind = "weight" if buffer.coefficient else "value"
            label = contents.value.op.label if contents is not None and contents.value.op is not None else step.op.label
            if source is None or contents is None or self.copier is None:
                own = self._live_range(buffer.lane_bytes, self._arrival(index, buffer), index, label, kind)
            else:
                strided = self.copier.copy(source.by, contents)
                assert strided is not None, "`_reaches` found the copy"
                first = self._copied_ahead(index, strided, contents, live_range)
                own = self._live_range(buffer.lane_bytes, first, index, label, kind)
                step.ahead |= {len(step.before): first} if first < index else {}
                step.before.append(Copy(strided, live_range, own))
            step.inputs.append(Binding(buffer, own, source is None))
            if contents is not None:
                self.here[contents] = own

    def _have_outputs(self, index: int, step: Step, work: TileWork, places: list[Held | None]) -> set[Contents]:
        """Returns what may stay for a step to be stored while the next one computes."""
        fresh: set[Contents] = set()
        for buffer, found in zip(work.outputs, places):
            contents, label = buffer.contents, step.op.label
            if found is not None:
                whole = found.by
                if whole not in self.here:
                    self.here[whole] = self._live_range(self._whole_bytes(whole), index, index, label, "value")
                live_range = self.here[whole]
                live_range.last = index
                self.filled[whole] += [] if contents is None else [contents]
                if found.offset is not None:
                    step.outputs.append(Binding(buffer, live_range, True, found.offset))
                    continue
            first = self._early_portions(index, step, work, buffer) if found is None else index
            own = self._live_range(buffer.lane_bytes, first, index, label, "value")
            step.outputs.append(Binding(buffer, own, True))
            if found is not None and contents is not None and self.copier is not None:
                strided = self.copier.copy(contents, found.by)
                assert strided is not None, "`_reaches` found the copy"
                step.after.append(Copy(strided, own, live_range))
            if contents is not None:
                self.here[contents] = own
                if contents.value in self.in_global:
                    fresh.add(contents)
        return fresh

    def _source(self, buffer: Buffer) -> Held | None:
        """What holds the content of a buffer; None: it must be loaded."""
        contents = buffer.contents
        if contents is None or contents in self.here:
            return None if contents is None else Held(contents, 0)
        if self.copier is None:
            return None
        for other in self.here:
            holds = other.value is contents.value and self._holds_already(other, contents)
            if holds and self.uses.reaches(contents, other):
                fits = buffer.lane_bytes == self.copier.lane_bytes(contents)
                return Held(other, self.copier.offset(other, contents) if fits else None)
        return None

    def _holds_already(self, other: Contents, contents: Contents) -> bool:
        """False for a whole in which this part is still missing."""
        if not self.uses.serves(contents, other):
            return False
        return (
            other not in self.uses.gathered
            or any(inside(contents, part) for part in self.filled[other])
            or self._is_complete(other)
        )

    def _is_complete(self, whole: Contents) -> bool:
        return self.here[whole].last >= self.uses.gathered[whole][-1]

    def _place_of(self, buffer: Buffer) -> Held | None:
        """The whole that a result is gathered in."""
        contents = buffer.contents
        if contents is None or contents.box is None or self.copier is None:
            return None
        whole = whole_of(contents)
        if whole not in self.uses.gathered:
            return None
        fits = buffer.lane_bytes == self.copier.lane_bytes(contents)
        return Held(whole, self.copier.offset(whole, contents) if fits else None)

    def _whole_bytes(self, whole: Contents) -> int:
        assert self.copier is not None, "boxes are asked for where the chip has a copier"
        return self.tiler.rounded(self.copier.lane_bytes(whole))

    def _arrival(self, index: int, buffer: Buffer) -> int:
        """The earliest step before which what step `index` loads finds room, and global memory has it."""
        size, least = self.tiler.rounded(buffer.lane_bytes), max(0, index - AHEAD)
        if not buffer.coefficient:
            roots = sources(self.steps[index].op, buffer)
            least = max([least, *(self.uses.made_before(root, index) for root in roots)])
        return self._place_ahead(index, least, size)

    def _place_ahead(self, index: int, least: int, size: int) -> int:
        """The first step, of those from `least` on, since which there is room for what step `index` needs."""
        first = index
        while first > least and self.used[first - 1] + size <= self._room_ahead(index - first):
            first -= 1
            self.used[first] += size
        return first

    def _early_portions(self, index: int, step: Step, work: TileWork, result: Buffer) -> int:
        """Do portions of a work while others compute, if its result has room; returns the step since when it has."""
        made: dict[int, int] = {}
        for number, (portion, binding) in enumerate(zip(work.portions, step.inputs)):
            contents = binding.buffer.contents
            ready = 0 if contents is None else self.uses.made_before(contents.value, index)
            if portion.transfers and binding.live_range.first < ready < index:  # what is loaded or copied comes later
                made[number] = ready
        least = self._begun(index, min(made.values(), default=index), sum(work.portions[n].cycles for n in made))
        first = self._place_ahead(index, least, self.tiler.rounded(result.lane_bytes))
        step.early = {number: max(first, ready) for number, ready in made.items() if max(first, ready) < index}
        return first

    def _copied_ahead(self, index: int, strided: StridedCopy, contents: Contents, source: LiveRange) -> int:
        """The step before which something is copied for step `index`, by the engine that moves data: others compute."""
        assert self.copier is not None, "it found the copy"
        ready, size = self.uses.made_before(contents.value, index), self.tiler.rounded(strided.target_bytes)
        if not self.copier.transfers(strided) or not source.first < ready < index:
            return index
        return self._place_ahead(index, self._begun(index, ready, self.copier.cycles(strided)), size)

    def _begun(self, index: int, ready: int, cycles: float) -> int:
        """The last step from `ready` on since which steps before `index` compute long enough to do so much beside."""
        hidden, least = 0.0, index
        while least > ready and hidden < _SLACK * cycles:
            least -= 1
            hidden += 0 if (work := self.steps[least].work) is None else work.cycles
        return least

    def _room_ahead(self, steps: int) -> int:
        """What may be in use when something is loaded more than so many steps early.

        What comes far ahead leaves a quarter free: near loads shall not wait for it, and first fit wastes some room.
        """
        return self.room if steps < _NEAR else self.room * 3 // 4

    def _make_room(self, index: int, needed: int, wanted: set[Contents]) -> bool:
        """Let values go until `needed` bytes fit beside the others; what is `wanted` now stays. False: they do not."""
        taken = self._taken()
        if taken + needed <= self.room:
            return True

        def cheapest_last(contents: Contents) -> tuple[bool, int, int]:
            return self._is_elsewhere(contents), self.uses.next_use(contents, index - 1), self.here[contents].lane_bytes

        rest = sorted((contents for contents in self.here if contents not in wanted), key=cheapest_last)
        while rest and taken + needed > self.room:
            contents = rest.pop()
            taken -= self.tiler.rounded(self.here[contents].lane_bytes)
            self._drop(contents)
        return taken + needed <= self.room

    def _drop(self, contents: Contents) -> None:
        if contents in self.uses.gathered and not self._is_complete(contents):
            raise _NoRoom(contents.value)
        if not self._is_elsewhere(contents):
            self.in_global.add(contents.value)
        del self.here[contents]

    def _give_up(self, work: TileWork, sources: list[Held | None], places: list[Held | None]) -> bool:
        """Where a step finds no room, do without a whole that it reads or fills; False when there is none."""
        for found in places:
            if found is not None:
                raise _NoRoom(found.by.value)
        around = [s.by for buffer, s in zip(work.inputs, sources) if s is not None and s.by != buffer.contents]
        if not around:
            return False
        self._drop(max(around, key=lambda contents: self.here[contents].lane_bytes))
        return True

    def _is_elsewhere(self, contents: Contents) -> bool:
        """Whether nothing is lost with what is held: global memory has it, or more of it is here."""
        layout = contents.layout
        return (
            (isinstance(layout, tuple) and layout[:1] == (WEIGHT,))
            or contents.value in self.in_global
            or any(other != contents and self._holds_already(other, contents) for other in self.here)
        )

    def _taken(self) -> int:
        return sum(self.tiler.rounded(live_range.lane_bytes) for live_range in self.here.values())

    def _live_range(self, lane_bytes: int, first: int, last: int, label: str, kind: str) -> LiveRange:
        live_range = LiveRange(lane_bytes, first, last, label=label, kind=kind)
        self.live_ranges.append(live_range)
        return live_range


__all__ = ["AHEAD", "Binding", "Copy", "LiveRange", "Residency", "Step", "plan_residency", "whole_stripes"]
