"""What ops take and read for boxes of their results: the figures that costs of groups are sums of."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from bmcompiler.codegen.groups.slices import PartOf, add_needs
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.tiling import Box, Tiler, TileWork
from bmcompiler.ir import Operation, Value


class Part(NamedTuple):
    """An op for a box of its result, in whatever group it is.

    Attributes:
        cycles, transfers: of its work. need, size: bytes per lane of all its buffers, and of its results.
        weights: commands, bytes per lane and bytes of coefficients. loads: (value, bytes, bytes per lane, commands).
        boxes: of what it reads of the run. unsaid: what it reads of the run without a word of which box.
    """

    cycles: float
    transfers: float
    need: int
    size: int
    weights: tuple[int, int, int]
    loads: tuple[tuple[Value, int, int, int], ...]
    boxes: tuple[tuple[Value, Box], ...]
    unsaid: frozenset[Value]


class Parts:
    """The parts of the ops of one device run; many groups ask for the same. reads: by op, what it reads of the run."""

    def __init__(
        self, ops: Sequence[Operation], reads: Sequence[AbstractSet[Value]], work_of: PartOf, tiler: Tiler
    ) -> None:
        self.ops, self.reads, self.work_of, self.tiler = ops, reads, work_of, tiler
        self._known: dict[tuple[int, Box], Part | None] = {}

    def __call__(self, index: int, box: Box) -> Part | None:
        """Of an op; None where it cannot be computed so."""
        key = index, box
        if key not in self._known:
            work = self.work_of(self.ops[index], box)
            self._known[key] = None if work is None else self.figures(index, work)
        return self._known[key]

    def figures(self, index: int, work: TileWork) -> Part:
        """Of an op whose work is known."""
        rounded, bus = self.tiler.rounded, self.tiler.bus
        commands, lane, nbytes = 0, 0, round(work.streamed_cycles * self.tiler.bytes_per_cycle)
        loads = []
        for buffer in work.inputs:
            if buffer.coefficient:
                commands, lane = commands + 1, lane + rounded(buffer.lane_bytes)
                nbytes += round(bus.load(buffer))
            else:
                source = buffer.contents.value if buffer.contents is not None else root_of(self.ops[index].operands[0])
                loads.append((source, round(bus.load(buffer)), rounded(buffer.lane_bytes), buffer.loads))
        needs: dict[Value, Box] = {}
        unsaid = frozenset(add_needs(work, needs, set(self.reads[index])))
        size = sum(rounded(buffer.lane_bytes) for buffer in work.outputs)
        need = size + sum(map(rounded, (*(buffer.lane_bytes for buffer in work.inputs), *work.scratch)))
        weights = commands, lane, nbytes
        return Part(work.cycles, work.transfers, need, size, weights, tuple(loads), tuple(needs.items()), unsaid)
