"""What it costs to compute a run of consecutive ops as one group: cycles and bytes of a slice in the middle.

The figures of ops whose results fit as a whole follow from the same formula with one slice. Estimates, not promises:
the residency planner decides what stays where.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from bmcompiler.codegen.groups.parts import Part, Parts
from bmcompiler.codegen.groups.regions import RANK, LocalCopier, four_axes, joined
from bmcompiler.codegen.groups.repeats import Repeats
from bmcompiler.codegen.groups.slices import ONE, PartOf, Slices, cuts, reads
from bmcompiler.codegen.groups.stripes import readers_of
from bmcompiler.codegen.groups.timeline import HIDDEN
from bmcompiler.codegen.memory import is_view
from bmcompiler.codegen.tiling import Box, Contents, Tiler, TileWork
from bmcompiler.ir import Operation, Value

MOST_OPS = 48
"""Ops of a group with slices."""
_COUNTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)
_SPARE = 0.9
"""Part of local memory that can be filled: areas do not pack without gaps."""
_STEP_CYCLES = 150
"""Start of a step's commands, which makes more slices cost more."""
STARTING_OPS = 4
"""Ops of a group at the start of a run that is cut for its loads alone: nothing computes before the first one."""


@dataclass(frozen=True)
class Kernels:
    """What is asked of a chip's kernels.

    Attributes:
        whole: an op as one tile. part: a box of its result. estimate: cycles of an op tiled by itself.
        blocks: whether an op that is no single tile takes all of local memory.
    """

    whole: Callable[[Operation], TileWork | None]
    part: PartOf
    estimate: Callable[[Operation], int]
    blocks: Callable[[Operation], bool]


@dataclass
class SegmentCosts:
    """Cycles of computing, bytes that move, and transfers, of a segment.

    copies: of the cycles those that keep the bus. waits: cycles of the bus with nothing beside.
    """

    compute: float = 0.0
    nbytes: float = 0.0
    transfers: int = 0
    copies: float = 0.0
    waits: float = 0.0

    def time(self, tiler: Tiler) -> float:
        """Cycles, the shorter of both being mostly hidden."""
        moving = self.nbytes / tiler.bytes_per_cycle + self.transfers * tiler.tile_cycles / 2
        compute = self.compute - self.copies
        hidden = min(compute, moving)
        return self.copies + max(compute, moving) + HIDDEN * hidden + (1 - HIDDEN) * min(self.waits, hidden)


@dataclass
class _Growing:
    """A group that ends before op `end`, as it grows towards the front: figures of the slice in the middle."""

    needs: dict[Value, Box]
    made: set[Value] = field(default_factory=set)
    cycles: float = 0.0
    copies: float = 0.0
    """Of the cycles those that keep the bus."""
    outer: dict[Value, int] = field(default_factory=dict)
    """Bytes that a slice reads of values from before the group."""
    outer_lane: dict[Value, int] = field(default_factory=dict)
    outer_loads: dict[Value, int] = field(default_factory=dict)
    """Bytes per lane of the same, and commands that load it."""
    weight_lane: int = 0
    weight_bytes: int = 0
    transfers: int = 0
    live: list[int] = field(default_factory=list)
    """Bytes per lane at each step, the last step first."""
    steps: list[float] = field(default_factory=list)
    """Cycles of each step."""
    position: dict[Operation, int] = field(default_factory=dict)
    outputs: list[Value] = field(default_factory=list)
    closed: set[Value] = field(default_factory=set)
    """Values that the group cannot make: an op reads them in another layout."""


class Segments:
    """Costs of all segments of one device run.

    Args:
        read_elsewhere: whether a value is read outside of the run.
        room: bytes per lane that groups may fill.
    """

    def __init__(
        self,
        ops: Sequence[Operation],
        kernels: Kernels,
        read_elsewhere: Callable[[Value], bool],
        tiler: Tiler,
        copier: LocalCopier,
    ) -> None:
        self.ops = [op for op in ops if not is_view(op)]
        self.kernels, self.read_elsewhere, self.tiler, self.copier = kernels, read_elsewhere, tiler, copier
        self.room = int(tiler.lane_bytes * _SPARE)
        self.index = {op: i for i, op in enumerate(self.ops)}
        self.works = [kernels.whole(op) for op in self.ops]
        self.made_at = {value: i for i, op in enumerate(self.ops) for value in op.results}
        self.reads = [reads(op, self.made_at) for op in self.ops]
        self.readers = {value: sorted(self._reading(value)) for value in self.made_at}
        self.sizes = self._whole_sizes()
        self._known: dict[int, dict[int, tuple[float, Slices]]] = {}
        self._alike: dict[Hashable, int] = {}
        self.part_of = Parts(self.ops, self.reads, kernels.part, tiler)

    def _reading(self, value: Value) -> Iterator[int]:
        return (self.index[user] for user in set(readers_of(value)) if user in self.index)

    def _whole_sizes(self) -> dict[Value, int]:
        """Bytes per lane of every value as a whole."""
        found: dict[Value, int] = {}
        for value in self.made_at:
            if value.type.rank == RANK:
                n, c, h, w = value.shape
                found[value] = self.tiler.rounded(self.copier.lane_bytes(Contents(value, (n, c, h * w))))
        for work in self.works:
            for buffer in (*work.inputs, *work.outputs) if work is not None else ():
                if (
                    buffer.contents is not None
                    and buffer.contents.box is None
                    and buffer.contents.value in self.made_at
                ):
                    found[buffer.contents.value] = self.tiler.rounded(buffer.lane_bytes)
        return found

    @cached_property
    def crossing(self) -> list[list[Value]]:
        """Before each op, the values that were made and are still read."""
        found: list[list[Value]] = [[] for _ in range(len(self.ops) + 1)]
        for value, made in self.made_at.items():
            for position in range(made + 1, (self.readers[value] or [made])[-1] + 1):
                found[position].append(value)
        return found

    @cached_property
    def heavy(self) -> list[bool]:
        """Whether an op, with all that is alive beside it, exceeds local memory."""
        return [self._is_heavy(i) for i in range(len(self.ops))]

    def _is_heavy(self, index: int) -> bool:
        work = self.works[index]
        if work is None:
            return self.kernels.blocks(self.ops[index])
        beside = sum(self.sizes.get(value, 0) for value in self.crossing[index] if value not in self.reads[index])
        return self._need(work) + beside > self.room

    @cached_property
    def _repeats(self) -> Repeats:
        wholes = [None if work is None else self.part_of.figures(i, work) for i, work in enumerate(self.works)]
        return Repeats(
            self.ops, self.made_at, self.readers, self.read_elsewhere, self.sizes, wholes, self.heavy, self.copier
        )

    @property
    def worth_cutting(self) -> bool:
        """Whether any group may be better than its ops alone."""
        return any(self.heavy) or self._starts_with_loads

    @cached_property
    def _starts_with_loads(self) -> bool:
        """Whether the first op reads something that is no constant, as it has to: nothing was made before."""
        work = self.works[0]
        return work is not None and any(not buffer.coefficient for buffer in work.inputs)

    def _need(self, work: TileWork) -> int:
        sizes = [buffer.lane_bytes for buffer in (*work.inputs, *work.outputs)]
        return sum(map(self.tiler.rounded, (*sizes, *work.scratch)))

    def groups(self, spans: Iterable[tuple[int, int, Slices]]) -> list[tuple[list[Operation], Slices]]:
        """The ops of spans."""
        return [(self.ops[start:end], slices) for start, end, slices in spans]

    # -- costs ---------------------------------------------------------------------------------------------------------
    def alone(self, index: int) -> float:
        """Cycles of an op that is no part of a group with slices."""
        op, work = self.ops[index], self.works[index]
        read = self.reads[index]
        over = [value for value in self.crossing[index + 1] if self.made_at[value] < index and value not in read]
        costs = SegmentCosts()
        if work is None:
            if not self.kernels.blocks(op):
                costs.nbytes = 2 * sum(value.type.nbytes for value in op.results)
                return costs.time(self.tiler)
            costs.nbytes = 2.0 * sum(value.type.nbytes for value in over)
            return self.kernels.estimate(op) + costs.time(self.tiler)
        growing = _Growing({})
        part = self.part_of.figures(index, work)
        growing.cycles, growing.copies = part.cycles, part.transfers
        _add_inputs(growing, part)
        growing.outputs = [v for v in op.results if self.readers[v] or self.read_elsewhere(v)]
        return self._finished(growing, ONE, (index, index + 1), part.need)

    def ending_at(self, end: int) -> dict[int, tuple[float, Slices]]:
        """By first op, the cheapest group with slices that ends before op `end`, with its slices."""
        if end in self._known:
            return self._known[end]
        best = self._known[end] = {}
        first = max(0, end - MOST_OPS)
        if not any(self.heavy[first:end]) and not (self._starts_with_loads and end <= STARTING_OPS):
            return best
        if first > 0:  # nothing that a group at the start of the run alone has
            other = self._alike.setdefault(self._repeats.key(first, end, self.crossing[end]), end)
            if other != end:
                best.update((start + end - other, found) for start, found in self._known[other].items())
                return best
        for slices in self._candidates(end):
            self._grow(end, slices, first, best)
        return best

    def _candidates(self, end: int) -> Iterator[Slices]:
        """Slices along n first, then along n and h; along c for a single op, along w where rows lie in lanes."""
        op = self.ops[end - 1]
        if len(op.results) != 1:
            return
        n, c, h, w = four_axes(op.results[0].shape)
        images, lanes, rows, columns = self.copier.grain(op.results[0])
        groups = -(-n // images)
        yield from ((k, 1, 1, 1) for k in (2, 3, 4, 6, 8, 16, 32) if k < groups)
        if groups > 1:
            yield groups, 1, 1, 1
        yield from ((groups, 1, k, 1) for k in _COUNTS if k <= -(-h // rows))
        if self.heavy[end - 1]:
            yield from ((1, k, 1, 1) for k in _COUNTS if k <= -(-c // lanes))
        if columns > 1:
            yield from ((1, 1, 1, k) for k in _COUNTS if k <= -(-w // columns))

    def _grow(self, end: int, slices: Slices, first: int, best: dict[int, tuple[float, Slices]]) -> None:
        """Take the groups with these slices that end before op `end` where they cost less than the best so far.

        No group costs less than its ops compute, so that what waits beside is left out where these take as long.
        """
        growing, some_heavy, count = _Growing({}), False, prod(slices)
        for start in range(end - 1, (end - 2 if slices[1] > 1 else first - 1), -1):
            if not self._prepend(growing, start, end, slices):
                return
            some_heavy |= self.heavy[start] or (start == 0 and self._starts_with_loads and end <= STARTING_OPS)
            peak = max(growing.live)
            if peak > self.room:
                return
            known = best.get(start)
            if not some_heavy or (known is not None and growing.cycles * count >= known[0]):
                continue
            cost = self._finished(growing, slices, (start, end), peak)
            if known is None or cost < known[0]:
                best[start] = cost, slices

    def _prepend(self, growing: _Growing, start: int, end: int, slices: Slices) -> bool:
        """Let a group begin with one op more; False when that op cannot be cut so."""
        op = self.ops[start]
        if len(op.results) != 1:
            return False
        value = op.results[0]
        if value in growing.closed:
            return False
        readers = self.readers[value]
        if self.read_elsewhere(value) or (readers and readers[-1] >= end):
            share = self._middle(value, slices)
            if share is None:
                return False
            growing.outputs.append(value)
            contents = growing.needs.get(value)
            growing.needs[value] = share if contents is None else joined(share, contents)
        box = growing.needs.get(value)
        part = None if box is None else self.part_of(start, box)
        if part is None:
            return False
        growing.made.add(value)
        growing.outer.pop(value, None)
        growing.outer_loads.pop(value, None)
        for read, needed in part.boxes:
            known = growing.needs.get(read)
            growing.needs[read] = needed if known is None else joined(known, needed)
        growing.closed |= part.unsaid
        growing.cycles += part.cycles + _STEP_CYCLES
        growing.copies += part.transfers
        _add_inputs(growing, part)
        step = len(growing.live)
        growing.position[op] = step
        growing.live.append(part.need)
        growing.steps.append(part.cycles)
        inner = [r for r in readers if start < r < end]
        used = {growing.position[self.ops[r]] for r in inner}
        if used:
            for later in range(min(used), step):
                growing.live[later] += 0 if later in used else part.size
        return True

    def _middle(self, value: Value, slices: Slices) -> Box | None:
        """The largest share of a value, of equal ones that with most neighbours; None where shares are empty."""
        found = []
        for size, count, grain in zip(four_axes(value.shape), slices, self.copier.grain(value)):
            parts = cuts(size, count, grain)
            if any(lo == hi for lo, hi in parts):
                return None
            found.append(max(parts, key=lambda part: (part[1] - part[0], -abs(part[0] + part[1] - size))))
        return tuple(found)

    def _finished(self, growing: _Growing, slices: Slices, span: tuple[int, int], peak: int) -> float:
        """Cycles of the group, with what it lets stay, and what has to go for it."""
        start, end = span
        count = prod(slices)
        parts = slices[1] * slices[3]
        weights = growing.weight_bytes * parts
        loads = growing.transfers * parts + count * sum(growing.outer_loads.values())
        costs = SegmentCosts(growing.cycles * count, weights, loads, growing.copies * count)
        keep: list[tuple[float, int]] = []
        sliced = count > 1
        for value, nbytes in growing.outer.items():
            if value in growing.made:
                continue
            made = self.made_at.get(value)
            again = nbytes * (1 if parts > 1 else count)
            if made is None:
                costs.nbytes += again
            else:
                own = 0 if not sliced else self.sizes.get(value, self.room)
                keep.append((again + value.type.nbytes, own))
        for value in growing.outputs:
            if self.read_elsewhere(value):
                costs.nbytes += value.type.nbytes
            if self.readers[value] and self.readers[value][-1] >= end:
                keep.append((2.0 * value.type.nbytes, self.sizes.get(value, self.room) if sliced else 0))
        costs.waits = self._waits(growing, count, start)
        read = set(growing.outer)
        over = (v for v in self.crossing[end] if self.made_at[v] < start and v not in read)
        keep += [(2.0 * v.type.nbytes, self.sizes.get(v, self.room)) for v in over]
        free = self.room - peak
        for bus, size in sorted(keep, key=lambda entry: entry[1] / max(1.0, entry[0])):
            if size <= free:
                free -= size
            else:
                costs.nbytes += bus
        if count > 1 and parts == 1 and growing.weight_lane > free:
            costs.nbytes += growing.weight_bytes * (count - 1) * (1 - max(0, free) / growing.weight_lane)
        return costs.time(self.tiler)

    def _waits(self, growing: _Growing, count: int, start: int) -> float:
        """Cycles in which nothing computes, for slices cannot be loaded before there is room beside those before."""
        cycles = lane = 0.0
        for value, nbytes in growing.outer.items():
            if value not in self.made_at:
                cycles += nbytes / self.tiler.bytes_per_cycle + growing.outer_loads[value] * self.tiler.tile_cycles / 2
                lane += growing.outer_lane[value]
        beside = 0.0
        for live, step in zip(growing.live, growing.steps):
            if live + lane > self.room:
                break
            beside += step
        return cycles * (start == 0) + max(0.0, cycles - beside) * (count - 1)


def _add_inputs(growing: _Growing, part: Part) -> None:
    commands, weight_lane, weight_bytes = part.weights
    growing.transfers += commands
    growing.weight_lane += weight_lane
    growing.weight_bytes += weight_bytes
    for value, nbytes, lane_bytes, loads in part.loads:
        growing.outer[value] = max(growing.outer.get(value, 0), nbytes)
        growing.outer_lane[value] = lane_bytes
        growing.outer_loads[value] = loads
