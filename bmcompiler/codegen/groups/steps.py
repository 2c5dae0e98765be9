"""A plan of what lies in local memory while the stripes of a device run are computed, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bmcompiler.codegen.groups.regions import StridedCopy
from bmcompiler.codegen.groups.slices import Slices
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.portion import Portion
from bmcompiler.codegen.tiling import Buffer, Contents, TileWork
from bmcompiler.ir import Operation, Value

NEVER = 1 << 30
AHEAD = 128
"""Steps that something may have its place before its op, so that it can be loaded."""


@dataclass
class LiveRange:
    """A buffer in local memory during steps `first` to `last`; `label` and `kind`: see `target.LiveRangeInfo`."""

    lane_bytes: int
    first: int
    last: int
    address: int = -1
    label: str = ""
    kind: str = "scratch"


@dataclass
class Binding:
    """How a step has one of its buffers: where (`offset` bytes into a live range), whether it is moved for it.

    What is loaded has its place from the first step of its live range on, and is loaded before step `issue` computes.
    """

    buffer: Buffer
    live_range: LiveRange
    moves: bool
    offset: int = 0
    issue: int = field(init=False)

    def __post_init__(self) -> None:
        self.issue = self.live_range.first

    @property
    def address(self) -> int:
        """Bytes in a lane."""
        return self.live_range.address + self.offset


@dataclass(frozen=True)
class Copy:
    """A copy in local memory, part of a step."""

    strided: StridedCopy
    source: LiveRange
    target: LiveRange


@dataclass
class Step:
    """A stripe of a run. `work` is None for ops that do not take part.

    `before` and `after` are copies that its computation needs, or that bring its result to its place. `early`: portions
    of its work that are done before another step computes, with the number of that; `ahead`: copies of `before`
    likewise.
    """

    op: Operation
    work: TileWork | None
    group: int = 0
    slices: Slices = (1, 1, 1, 1)
    inputs: list[Binding] = field(default_factory=list)
    outputs: list[Binding] = field(default_factory=list)
    scratch: list[LiveRange] = field(default_factory=list)
    before: list[Copy] = field(default_factory=list)
    after: list[Copy] = field(default_factory=list)
    early: dict[int, int] = field(default_factory=dict)
    ahead: dict[int, int] = field(default_factory=dict)

    @property
    def own_copies(self) -> list[Copy]:
        """Copies that are made when the step begins."""
        return [copy for number, copy in enumerate(self.before) if number not in self.ahead]

    def portion(self, number: int) -> Portion:
        """A portion of its work."""
        assert self.work is not None, "portions are of steps with work"
        return self.work.portions[number]

    @property
    def early_cycles(self) -> int:
        """Cycles of the work that are no part of the step."""
        return sum(self.portion(number).cycles for number in self.early) if self.early else 0

    @property
    def transfers(self) -> int:
        """Cycles of the step for which it needs the engine that moves data."""
        whole = 0 if self.work is None else self.work.transfers
        return whole - sum(self.portion(number).transfers for number in self.early) if self.early else whole


class Held(NamedTuple):
    """What holds the contents of a buffer, and where; without an `offset` they have to be copied."""

    by: Contents
    offset: int | None

    @property
    def inside(self) -> bool:
        """Whether a buffer is just a part of it, which needs no place of its own."""
        return self.offset is not None


class WalkMark(NamedTuple):
    """What the walk knew before a step: all that later steps change of it. lasts: of the live ranges, in order."""

    used: list[int]
    lasts: list[int]
    here: dict[Contents, LiveRange]
    filled: dict[Contents, list[Contents]]
    in_global: set[Value]


def portions_by_step(steps: Sequence[Step]) -> list[list[tuple[int, int]]]:
    """What is done early before each step computes: numbers of its step and of the portion."""
    found: list[list[tuple[int, int]]] = [[] for _ in steps]
    for number, step in enumerate(steps):
        for portion, at in step.early.items():
            found[at].append((number, portion))
    return found


def copies_by_step(steps: Sequence[Step]) -> list[list[tuple[int, Copy]]]:
    """What is copied ahead before each step computes, with the number of the step it is for."""
    found: list[list[tuple[int, Copy]]] = [[] for _ in steps]
    for number, step in enumerate(steps):
        for copy, at in step.ahead.items():
            found[at].append((number, step.before[copy]))
    return found


def loads_by_issue(steps: Sequence[Step]) -> list[list[tuple[int, Binding]]]:
    """What is loaded before each step computes, with the number of the step it is for; in the order of these."""
    found: list[list[tuple[int, Binding]]] = [[] for _ in steps]
    for number, step in enumerate(steps):
        for binding in step.inputs:
            if binding.moves:
                found[binding.issue].append((number, binding))
    return found


def sources(op: Operation, buffer: Buffer) -> list[Value]:
    """What a buffer of an op is loaded from: roots of activations."""
    if buffer.contents is not None:
        return [buffer.contents.value]
    return [root_of(value) for value in (op.operands if buffer.source is None else (buffer.source,))]


def needed_by(step: Step, binding: Binding) -> frozenset[Value]:
    """What has to be in global memory before something is loaded for a step."""
    return frozenset() if binding.buffer.coefficient else frozenset(sources(step.op, binding.buffer))


def stored_by(stores: Iterable[Binding]) -> frozenset[Value]:
    """What is in global memory after these."""
    return frozenset(store.buffer.contents.value for store in stores if store.buffer.contents is not None)


def reads_any(step: Step, binding: Binding, stores: Iterable[Binding]) -> bool:
    """Whether a load for a step needs what these store."""
    return not stored_by(stores).isdisjoint(needed_by(step, binding))


@dataclass
class Residency:
    """The plan of a run.

    Attributes:
        steps: one per stripe, in order. local_only: values that need no global memory.
        live_ranges: all that lies in local memory.
    """

    steps: list[Step]
    local_only: set[Value] = field(default_factory=set)
    live_ranges: list[LiveRange] = field(default_factory=list)
