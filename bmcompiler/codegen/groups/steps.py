"""A plan of what lies in local memory while the units of a device run are computed, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field

from bmcompiler.codegen.groups.regions import Move
from bmcompiler.codegen.groups.slices import Slices
from bmcompiler.codegen.tiling import Buffer, TileWork
from bmcompiler.ir import Operation, Value

NEVER = 1 << 30
AHEAD = 32
"""Steps that something may be loaded before its op."""


@dataclass
class Stay:
    """A buffer in local memory during steps `first` to `last`; `label` and `kind` are those of `target.StayInfo`."""

    lane_bytes: int
    first: int
    last: int
    address: int = -1
    label: str = ""
    kind: str = "scratch"


@dataclass
class Slot:
    """How a step has one of its buffers: where (`offset` bytes into a stay), and whether it is moved for this step."""

    buffer: Buffer
    stay: Stay
    moves: bool
    offset: int = 0

    @property
    def address(self) -> int:
        """Bytes in a lane."""
        return self.stay.address + self.offset


@dataclass(frozen=True)
class Copy:
    """A copy in local memory, part of a step."""

    move: Move
    source: Stay
    target: Stay


@dataclass
class Step:
    """A unit of a run. `work` is None for ops that do not take part.

    `before` and `after` are copies that its computation needs, or that bring its result to its place.
    """

    op: Operation
    work: TileWork | None
    group: int = 0
    slices: Slices = (1, 1, 1, 1)
    inputs: list[Slot] = field(default_factory=list)
    outputs: list[Slot] = field(default_factory=list)
    scratch: list[Stay] = field(default_factory=list)
    before: list[Copy] = field(default_factory=list)
    after: list[Copy] = field(default_factory=list)


@dataclass
class Residency:
    """The plan of a run.

    Attributes:
        steps: one per unit, in order. local_only: values that need no global memory.
        stays: all that lies in local memory.
    """

    steps: list[Step]
    local_only: set[Value] = field(default_factory=set)
    stays: list[Stay] = field(default_factory=list)
