"""Which layers are computed together, and in how many slices.

1. level 0: no groups
2. level 1: greedy. From an op that exceeds local memory on, a group grows as long as it fits; it ends where it saves
   most against its ops computed alone.
3. level 2: dynamic programming over the topological order: the cheapest way to reach each op, by a group that ends
   there or by the op alone. Then ops that load feature maps in a layout of their own are cut along their rows where
   that is faster: a part is loaded while the one before it computes.

Costs are those of `segments`. What was found is used where the residency planner's own estimate agrees (`timeline`).
At level 2 they are changed one by one while that estimate falls (`refine`). Ops of many weights are then cut along
their channels where that is faster: the parts of weights find places earlier than the whole, and leave theirs one after
the other (`ahead`).
Where the images of a batch follow each other, all this is found for the first one (`images`).

What the residency planner makes of groups of one device run; what is asked twice is planned once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import inf
from typing import Any

from bmcompiler.codegen.groups.ahead import settle
from bmcompiler.codegen.groups.images import Group, images_of, repeated
from bmcompiler.codegen.groups.issue import issue_loads
from bmcompiler.codegen.groups.refine import Span, refined
from bmcompiler.codegen.groups.regions import RANK, LocalCopier, four_axes, whole_box
from bmcompiler.codegen.groups.segments import MOST_OPS, STARTING_OPS, Kernels, Segments
from bmcompiler.codegen.groups.slices import ONE, cuts
from bmcompiler.codegen.groups.stripes import Grouped, KnownStripes, stripes_of
from bmcompiler.codegen.groups.structure import structure_of
from bmcompiler.codegen.groups.timeline import Clock, alone_cycles, least_cost
from bmcompiler.codegen.groups.uses import Reachable
from bmcompiler.codegen.kernels import DeviceKernel
from bmcompiler.codegen.memory import parts_of_others, root_of
from bmcompiler.codegen.partition import Segment, partition
from bmcompiler.codegen.pictures import reads_picture
from bmcompiler.codegen.residency import Residency, plan_residency
from bmcompiler.codegen.tiling import Tiler, TileWork
from bmcompiler.ir import Function, Operation
from bmcompiler.target import Target


class Plans:
    """Cycles of one device run in groups.

    Attributes:
        outside: values that are read outside of the run.
        settled: the plan in the groups that were chosen, where all loads of it are where they will be.
    """

    def __init__(self, segment: Segment, kernels: Kernels, tiler: Tiler, copier: LocalCopier) -> None:
        self.segment, self.kernels, self.tiler, self.copier = segment, kernels, tiler, copier
        self.outside = {root_of(value) for value in segment.outputs()}
        self.settled: Residency | None = None
        self._stripes = KnownStripes(segment.ops)
        self._cycles: dict[tuple[object, ...], float] = {}
        self._reachable: Reachable = {}

    def cycles(self, groups: Sequence[Group], most: float = inf) -> float:
        """What the run takes; infinite where that is `most` or more."""
        key = tuple((*ops, slices) for ops, slices in groups)
        if key not in self._cycles:
            plan = self._plan(groups, most)
            if plan is None:
                self._cycles[key] = inf
            else:
                times = Clock(plan, self.kernels.estimate, self.tiler, self.copier)
                issue_loads(plan, times, self.tiler)
                self._cycles[key] = times().cost(self.tiler)
        return self._cycles[key]

    def settles(self, groups: Sequence[Group], most: float = inf) -> float:
        """The same, once all loads are where they will be; below `most` its plan is the one that is settled."""
        plan = self._plan(groups, most)
        if plan is None:
            return inf
        times = Clock(plan, self.kernels.estimate, self.tiler, self.copier)
        cycles = settle(plan, times, self.kernels.blocks, self.tiler).cost(self.tiler)
        self.settled = plan if cycles < most else self.settled
        return cycles

    def _plan(self, groups: Sequence[Group], most: float = inf) -> Residency | None:
        ops, kernels, outside = self.segment.ops, self.kernels, self.outside.__contains__
        stripes = stripes_of(
            ops, _grouped(groups), kernels.whole, kernels.part, outside, self.copier.grain, self._stripes
        )

        def hopeless(plan: Residency) -> bool:
            return least_cost(plan, kernels.estimate, self.tiler) >= most

        return plan_residency(stripes, kernels.blocks, outside, self.tiler, self.copier, hopeless, self._reachable)


_HEAVY, _EARLY = 8, 16
"""Parts of a lane from which on the weights of an op are many, and those of one whose loads nothing hides, as nothing
that takes long is before it; `_PARTS`: that parts of them take.
"""
_PARTS, _FEWEST = 26, 4
"""`_FEWEST`: parts of weights, so that the first is there early enough to be worth it."""
_SETTLED = 1024
"""Ops in the plans of a run that are made to see what it takes without groups of ops of many weights."""
_ROUGH = 1 / 256
"""Part of its cycles that an estimate of a run may be off by: who is cut more often must save as much."""
_LONG, _BANDS, _IMAGES = 4096, 4, 8
"""Cycles of loads from which on an op is cut for them, and into how many parts of rows and of images."""


def ungrouped(segments: Segments) -> list[Span]:
    """Every op alone."""
    return [(i, i + 1, ONE) for i in range(len(segments.ops))]


def greedy(segments: Segments) -> list[Span]:
    """Level 1."""
    spans: list[Span] = []
    start, count = 0, len(segments.ops)
    while start < count:
        best: Span = (start, start + 1, ONE)
        saved = 0.0
        alone = segments.alone(start)
        if segments.heavy[start]:
            for end in range(start + 1, min(count, start + MOST_OPS) + 1):
                alone += segments.alone(end - 1) if end > start + 1 else 0.0
                found = segments.ending_at(end).get(start)
                if found is None:
                    break
                if alone - found[0] > saved:
                    saved, best = alone - found[0], (start, end, found[1])
        spans.append(best)
        start = best[1]
    return spans


def cheapest(segments: Segments) -> list[Span]:
    """Level 2."""
    count = len(segments.ops)
    cost, before = [0.0] + [inf] * count, [(0, ONE)] * (count + 1)
    for end in range(1, count + 1):
        cost[end], before[end] = cost[end - 1] + segments.alone(end - 1), (end - 1, ONE)
        for start, (cycles, slices) in segments.ending_at(end).items():
            if cost[start] + cycles < cost[end]:
                cost[end], before[end] = cost[start] + cycles, (start, slices)
    spans: list[Span] = []
    end = count
    while end:
        start, slices = before[end]
        spans.append((start, end, slices))
        end = start
    return spans[::-1]


def total(segments: Segments, spans: Sequence[Span]) -> float:
    """Cycles of all groups by the cost that they were chosen by."""
    return sum(
        segments.alone(start) if slices == ONE else segments.ending_at(end)[start][0] for start, end, slices in spans
    )


def choose_groups(function: Function, target: Target, tiler: Tiler, copier: LocalCopier, level: int) -> list[Group]:
    """The groups of more than one slice among the device ops of a function, in order."""
    found: list[Group] = []
    kernels, structure = _kernels(function, target, tiler), cache(lambda: structure_of(function))
    for segment in partition(function, target) if level else ():
        if segment.device:
            run = Plans(segment, kernels, tiler, copier)
            groups = _groups(run, level, refine=level > 1)
            if run.settled is not None:
                target.settled_plans.put(structure(), segment.ops, _grouped(groups), run.settled)
            found += groups
    return found


def _grouped(groups: Sequence[Group]) -> Grouped:
    return {op: (number, slices) for number, (ops, slices) in enumerate(groups) for op in ops}.get


def planned_cycles(function: Function, target: Target, tiler: Tiler, copier: LocalCopier, level: int) -> float | None:
    """What the device takes of a function in the groups of a level before these are refined; None: it has no part."""
    segments = [segment for segment in partition(function, target) if segment.device]
    if not segments:
        return None
    kernels = _kernels(function, target, tiler)
    runs = [Plans(segment, kernels, tiler, copier) for segment in segments]
    return sum(run.cycles(_groups(run, level)) for run in runs)


def _groups(run: Plans, level: int, refine: bool = False) -> list[Group]:
    images = images_of(run.segment.ops)
    if images:
        first = Plans(run.segment.only(images[0]), run.kernels, run.tiler, run.copier)
        return repeated(_groups(first, level, refine), images)
    segments = Segments(run.segment.ops, run.kernels, run.outside.__contains__, run.tiler, run.copier)
    if not segments.worth_cutting:
        return []

    def planned(spans: Sequence[Span], most: float = inf) -> float:
        return run.cycles(segments.groups(spans), most)

    methods = (ungrouped, greedy, cheapest)[: level + 1]
    tried = [[span for span in method(segments) if span[2] != ONE] for method in methods]
    least, _, spans = min((planned(spans), number, spans) for number, spans in enumerate(tried))
    if refine:
        for other in _starting(segments, spans):
            cycles = planned(other, least)
            if cycles < least:
                least, spans = cycles, other
        spans, least = refined(spans, least, planned, len(segments.ops))
    best = segments.groups(spans)
    longer = [*([group] for group in _own_loads(segments, best)), list(_own_images(segments, best))]
    for more in filter(None, longer) if level > 1 else ():
        cycles = run.cycles([*best, *more], least)
        if cycles < least:
            best, least = [*best, *more], cycles
    return _with_shared_weights(run, segments, best) if level > 1 else best


def _with_shared_weights(run: Plans, segments: Segments, groups: list[Group]) -> list[Group]:
    """The groups alone, or with ops of many weights, or of some that nothing hides as well: as the run takes least.

    Groups that hold such ops were chosen as if these could not be cut: each is left out where that takes less.
    """
    works = dict(zip(segments.ops, segments.works))
    heavy = [group for group in groups if any(_is_heavy(works.get(op), segments.tiler) for op in group[0])]
    tried = list(_sharing(segments, groups))
    if not heavy and not tried:
        return groups
    best, least, kept = groups, run.settles(groups), groups
    for left_out in (None, *heavy[: _SETTLED // len(segments.ops)]) if least < inf else ():
        fewer = [group for group in kept if group is not left_out]
        for each in tried if left_out is None else (fewer, *_sharing(segments, fewer)):
            clear = least * (1 - _ROUGH)
            cycles = run.settles(each, clear)
            if cycles < clear:
                best, least, kept = each, cycles, fewer
    return best


def _sharing(segments: Segments, groups: list[Group]) -> Iterator[list[Group]]:
    """The groups and ops of many weights, or also of some."""
    more = [list(_shared_weights(segments, groups, first)) for first in (_HEAVY, _EARLY)]
    yield from ([*groups, *each] for number, each in enumerate(more) if each and each not in more[:number])


def _starting(segments: Segments, spans: Sequence[Span]) -> Iterator[list[Span]]:
    """Spans with a group of the first ops, which read a picture, in place of what they have of these.

    All waits for what a run loads first: what these ops cost each for itself does not say that.
    """
    pictures = sum(map(reads_picture, segments.ops[:STARTING_OPS]))
    for end in range(2, pictures + 1):
        found = segments.ending_at(end).get(0)
        if found is not None:
            yield [(0, end, found[1]), *(span for span in spans if span[0] >= end)]


def _shared_weights(segments: Segments, groups: Sequence[Group], first: int) -> Iterator[Group]:
    """Ops whose weights take much of local memory, each as a group that is cut along its channels.

    Where rows lie in lanes it is cut along their columns.
    """
    taken, heavy, fewest = {op for ops, _ in groups for op in ops}, first, 1 if first == _HEAVY else _FEWEST
    for op, work in zip(segments.ops, segments.works):
        if work is None or op in taken or len(op.results) != 1:
            continue
        weights = _weights(work)
        if weights * heavy < segments.tiler.lane_bytes:
            continue
        heavy = _HEAVY if weights * _HEAVY >= segments.tiler.lane_bytes else heavy
        grain, box = segments.copier.grain(op.results[0]), list(whole_box(four_axes(op.results[0].shape)))
        axis = 1 if grain[2] == 1 else 3
        size = box[axis][1]
        count = min(-(-size // grain[axis]), max(fewest, -(-weights * _PARTS // segments.tiler.lane_bytes)))
        box[axis] = cuts(size, count, grain[axis])[0]
        if count > 1 and segments.kernels.part(op, tuple(box)) is not None:
            yield [op], (1, count, 1, 1) if axis == 1 else (1, 1, 1, count)


def _is_heavy(work: TileWork | None, tiler: Tiler) -> bool:
    """Whether an op has many weights."""
    return work is not None and _weights(work) * _HEAVY >= tiler.lane_bytes


def _weights(work: TileWork) -> int:
    """Bytes per lane of the largest coefficients of an op."""
    return max((buffer.lane_bytes for buffer in work.inputs if buffer.coefficient), default=0)


def _own_loads(segments: Segments, best: Sequence[Group]) -> Iterator[Group]:
    """Ops that read no map as others leave it in local memory, each as a group that is cut along its rows."""
    taken, tiler = {op for ops, _ in best for op in ops}, segments.tiler
    for op, work in zip(segments.ops, segments.works):
        if work is None or op in taken or len(op.results) != 1:
            continue
        loads = sum(tiler.bus.load(b) for b in work.inputs if not b.coefficient and b.contents is None)
        n, c, h, w = four_axes(op.results[0].shape)
        if n > 1 or min(loads / tiler.bytes_per_cycle, work.cycles) < _LONG:
            continue
        parts = cuts(h, _BANDS, segments.copier.grain(op.results[0])[2])
        if all(
            lo < hi and segments.kernels.part(op, ((0, n), (0, c), (lo, hi), (0, w))) is not None for lo, hi in parts
        ):
            yield [op], (1, 1, _BANDS, 1)


def _own_images(segments: Segments, best: Sequence[Group]) -> Iterator[Group]:
    """Ops of several images that read much of what no tile makes, each as a group that is cut along these."""
    taken, tiler = {op for ops, _ in best for op in ops}, segments.tiler
    made = {result for op in segments.ops if segments.kernels.blocks(op) for result in op.results}
    for op in segments.ops:
        if op in taken or len(op.results) != 1 or op.results[0].type.rank != RANK:
            continue
        (n, _, _, _), whole = op.results[0].shape, whole_box(op.results[0].shape)
        part = segments.kernels.part(op, (cuts(n, min(n, _IMAGES), 1)[0], *whole[1:])) if n > 1 else None
        own = [] if part is None else [b for b in part.inputs if b.contents is not None and not b.coefficient]
        loads = sum(tiler.bus.load(b) for b in own if b.contents is not None and b.contents.value not in made)
        if loads * min(n, _IMAGES) / tiler.bytes_per_cycle >= _LONG:
            yield [op], (min(n, _IMAGES), 1, 1, 1)


def _kernels(function: Function, target: Target, tiler: Tiler) -> Kernels:
    """The target's kernels, which are asked the same many times."""
    hosts = parts_of_others(function, function.ops, borders=target.free_borders)

    def kernel(op: Operation) -> DeviceKernel[Any]:
        found = target.kernel_for(op)
        assert isinstance(found, DeviceKernel), "groups are of ops with kernels"
        return found

    return Kernels(
        cache(lambda op: kernel(op).whole(op)),
        cache(lambda op, box: kernel(op).boxed(op, box)),
        cache(lambda op: alone_cycles(kernel(op), op, hosts, tiler)),
        cache(lambda op: kernel(op).uses_local_memory(op)),
    )
