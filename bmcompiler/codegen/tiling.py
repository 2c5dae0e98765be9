"""Cutting one op into tiles that fit local memory.

A kernel describes the work of one tile (`TileWork`): buffers with their bytes per lane and the output axes they depend
on. From that alone the tiler picks tile sizes and loop order with the fewest bytes moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import ceil, prod
from typing import Any

Box = tuple[tuple[int, int], ...]
"""Half-open interval per axis, in the order of the grid's axes."""

AXES = "nchw"


@dataclass(frozen=True)
class Axis:
    """One axis of the tile grid.

    Attributes:
        size: extent of the output along it.
        step: tile sizes are multiples of it (except the last tile).
        most: largest tile; 0 = no limit.
        cuts: False when the axis must stay whole.
        period: tiles never cross a multiple of it (channels of one convolution group); 0 = no such limit.
    """

    size: int
    step: int = 1
    most: int = 0
    cuts: bool = True
    period: int = 0


@dataclass(frozen=True)
class Buffer:
    """A local buffer of a tile.

    Attributes:
        lane_bytes: size in one lane.
        axes: grid axes its content depends on, a subset of "nchw"; it is loaded again only when one of them moves.
        nbytes: bytes that cross the bus when it is loaded or stored.
        transfer: emits the load (or store): called with (build, local address).
        coefficient: True for weights.
    """

    lane_bytes: int
    axes: str
    nbytes: int
    transfer: Callable[[Any, int], None]
    coefficient: bool = False


@dataclass(frozen=True)
class TileWork:
    """One tile: inputs to load, outputs to store, scratch bytes per lane, and the computation between.

    `compute(build, inputs, outputs, scratch)` gets the local addresses in the order of the three lists.
    """

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    scratch: tuple[int, ...]
    compute: Callable[[Any, list[int], list[int], list[int]], None]


@dataclass(frozen=True)
class Tiling:
    """A choice: tile size per axis, loop order (outermost first), and whether transfers overlap computation."""

    sizes: tuple[int, ...]
    order: str
    double: bool


def intervals(axis: Axis, size: int) -> list[tuple[int, int]]:
    """The tiles of one axis."""
    period = axis.period or axis.size
    return [
        (lo, min(lo + size, base + period, axis.size))
        for base in range(0, axis.size, period)
        for lo in range(base, min(base + period, axis.size), size)
    ]


def boxes(grid: tuple[Axis, ...], tiling: Tiling) -> Iterator[Box]:
    """All tiles in loop order."""
    positions = [AXES.index(a) for a in tiling.order]
    loops = [intervals(grid[p], tiling.sizes[p]) for p in positions]
    for combination in product(*loops):
        box: list[tuple[int, int]] = [(0, 0)] * len(grid)
        for position, interval in zip(positions, combination):
            box[position] = interval
        yield tuple(box)


def _sizes(axis: Axis) -> list[int]:
    """Candidate tile sizes, largest first."""
    whole = min(axis.size, axis.period or axis.size)
    if not axis.cuts:
        return [whole]
    most = min(whole, axis.most or whole)
    found: dict[int, None] = {}
    parts = 1
    while True:
        size = ceil(whole / parts / axis.step) * axis.step
        if size <= most or size <= axis.step:
            found[min(size, most)] = None
        if size <= axis.step:
            return list(found)
        parts = parts + 1 if parts < 8 else ceil(parts * 1.25)


def loads(axes: str, order: str, trips: dict[str, int]) -> int:
    """How often a buffer that depends on `axes` is transferred under a loop order (outermost first)."""
    moving = [i for i, axis in enumerate(order) if axis in axes and trips[axis] > 1]
    return prod(trips[axis] for axis in order[: max(moving) + 1]) if moving else 1


class Tiler:
    """Chooses tilings for a chip.

    Args:
        lane_bytes: local memory per lane.
        align: every buffer is rounded up to this.
        tile_cost: bytes that one more tile is worth (start-up of its commands).
    """

    def __init__(self, lane_bytes: int, align: int, tile_cost: int = 2048) -> None:
        self.lane_bytes, self.align, self.tile_cost = lane_bytes, align, tile_cost

    def choose(self, grid: tuple[Axis, ...], work: Callable[[Box], TileWork]) -> Tiling | None:
        """The tiling with the least traffic that fits, double-buffered if any such fits; None when nothing does."""
        for double in (True, False):
            best: tuple[int, Tiling] | None = None
            for tiling, cost in self._candidates(grid, work, double):
                if best is None or cost < best[0]:
                    best = cost, tiling
            if best is not None:
                return best[1]
        return None

    def _candidates(
        self, grid: tuple[Axis, ...], work: Callable[[Box], TileWork], double: bool
    ) -> Iterator[tuple[Tiling, int]]:
        n_sizes, c_sizes, h_sizes, w_sizes = (_sizes(axis) for axis in grid)
        for c, w in product(c_sizes, w_sizes):
            found = False
            for n, h in self._outer_sizes(n_sizes, h_sizes):
                sizes = (n, c, h, w)
                sample = self._sample(grid, sizes, work)
                for order in ("cnhw", "nhwc"):
                    trips = {a: len(intervals(axis, size)) for a, axis, size in zip(AXES, grid, sizes)}
                    if self._fits(sample, order, trips, double):
                        found = True
                        yield Tiling(sizes, order, double), self._cost(sample, order, trips)
                if found:
                    break  # smaller tiles of the same c and w move more bytes
            if found and w == w_sizes[0]:
                continue

    @staticmethod
    def _outer_sizes(n_sizes: list[int], h_sizes: list[int]) -> Iterator[tuple[int, int]]:
        for n in n_sizes:
            yield n, h_sizes[0]
        for h in h_sizes[1:]:
            yield n_sizes[-1], h

    @staticmethod
    def _sample(grid: tuple[Axis, ...], sizes: tuple[int, ...], work: Callable[[Box], TileWork]) -> TileWork:
        """The work of a tile in the middle, which has halos on both sides."""
        box = []
        for axis, size in zip(grid, sizes):
            tiles = intervals(axis, size)
            box.append(tiles[min(1, len(tiles) - 1)] if len(tiles) > 2 else tiles[0])
        return work(tuple(box))

    def _fits(self, work: TileWork, order: str, trips: dict[str, int], double: bool) -> bool:
        return self.placed_bytes(work, order, trips, double) <= self.lane_bytes

    def placed_bytes(self, work: TileWork, order: str, trips: dict[str, int], double: bool) -> int:
        """Bytes per lane that the buffers of one tiling need together."""
        total = sum(self.rounded(size) for size in work.scratch)
        for buffer in (*work.inputs, *work.outputs):
            total += self.rounded(buffer.lane_bytes) * slots(buffer, order, trips, double)
        return total

    def rounded(self, size: int) -> int:
        return -(-size // self.align) * self.align

    def _cost(self, work: TileWork, order: str, trips: dict[str, int]) -> int:
        moved = sum(b.nbytes * loads(b.axes, order, trips) for b in work.inputs)
        return moved + self.tile_cost * prod(trips.values())


def slots(buffer: Buffer, order: str, trips: dict[str, int], double: bool) -> int:
    """Copies of a buffer: two when it is refilled while the other is in use."""
    return 2 if double and loads(buffer.axes, order, trips) > 1 else 1
