"""Cutting one op into tiles that fit local memory.

A kernel describes the work of one tile (`TileWork`): buffers with their bytes per lane and the output axes they depend
on, and cycles. From that alone the tiler picks tile sizes and loop order with the shortest estimated time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, prod
from typing import Any, NamedTuple

from bmcompiler.codegen.bus import Bus
from bmcompiler.codegen.portion import Portion
from bmcompiler.codegen.stream import Stream
from bmcompiler.ir import Value

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

    def count(self, size: int) -> int:
        """Number of tiles of `size`."""
        period = self.period or self.size
        whole, rest = divmod(self.size, period)
        return whole * -(-period // size) + -(-rest // size)


class Contents(NamedTuple):
    """An activation (the root of all views of it) in a layout of local memory, as a whole or a `box` of it.

    The layout of a whole is whatever the chip's kernels compare, in general (N, C, H * W); that of a box is the shape
    (N, C, H, W) in which `box` counts.
    """

    value: Value
    layout: Hashable
    box: Box | None = None


class Runs(NamedTuple):
    """In how many runs of consecutive bytes something lies in global memory, and in lanes."""

    outer: int = 1
    lanes: int = 1


_ONE_RUN = Runs()


@dataclass(frozen=True)
class Buffer:
    """A local buffer of a tile.

    Attributes:
        lane_bytes: size in one lane.
        axes: grid axes its content depends on, a subset of "nchw"; it is loaded again only when one of them moves.
        nbytes: bytes that cross the bus when it is loaded or stored.
        transfer: emits the load (or store): called with (build, local address).
        coefficient: True for weights.
        contents: what other ops may read from the buffer, so that it can stay in local memory between them.
        runs: in which its bytes move.
        loads: commands that load it.
        late: cycles of the computation that come before what needs it.
        ahead: of nbytes, what the computation stores itself, beside its steps.
        spare: bytes at its end that its load alone uses.
        source: what is loaded where it has no `contents`, None = any operands.
        part: which part of weights it holds, where `axes` do not say that of parts that groups compute.
    """

    lane_bytes: int
    axes: str
    nbytes: int
    transfer: Callable[[Any, int], None]
    coefficient: bool = False
    contents: Contents | None = None
    runs: Runs = _ONE_RUN
    loads: int = 1
    late: int = 0
    ahead: int = 0
    spare: int = 0
    source: Value | None = None
    part: Hashable = None

    @property
    def waiting(self) -> int:
        """Bytes that cross the bus before or behind the computation."""
        return self.nbytes - self.ahead

    def read(self, address: int) -> tuple[int, int]:
        """The bytes of a lane that are read of it, where it lies at `address`."""
        return address, address + self.lane_bytes - self.spare


class Apart(NamedTuple):
    """Two areas of a tile that should lie in different banks; cycles: that the tile takes longer if all shares one.

    Inputs are counted first, and then scratch areas.
    """

    first: int
    second: int
    cycles: int


@dataclass(frozen=True)
class TileWork:
    """One tile: inputs to load, outputs to store, scratch bytes per lane, the computation between and its cycles.

    `compute(build, inputs, outputs, scratch)` gets the local addresses in the order of the three lists.
    It leaves inputs as they are, and an operand has one buffer: values that stay in local memory rely on both.
    `cycles` are those with the areas of `apart` in different banks, and with scratch above the results; `below` come
    on top of them where the first scratch area lies below the first result. With a `stream` they are those with the
    bus free for it. `transfers` of them are those for which it needs the engine that moves data, as copies between
    lanes do: it begins when that is free. `portions`, one of each input, are all of it where given: they may be done
    apart, and before other inputs are there. `box`: the part of the grid that it computes, where that may have other
    axes than the result.
    """

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    scratch: tuple[int, ...]
    compute: Callable[[Any, list[int], list[int], list[int]], None]
    cycles: int
    apart: tuple[Apart, ...] = ()
    below: int = 0
    stream: Stream | None = None
    transfers: int = 0
    portions: tuple[Portion, ...] = ()
    box: Box | None = None

    @property
    def streamed_cycles(self) -> int:
        """Cycles of the bus for what the computation loads itself."""
        return 0 if self.stream is None else sum(self.stream.loads)

    def placed_cycles(self, outputs: Sequence[int], scratch: Sequence[int]) -> int:
        """Cycles with the areas at these addresses, without what shared banks cost."""
        return self.cycles + self.below * (bool(scratch and outputs) and scratch[0] < outputs[0])


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


def tile_sizes(axis: Axis) -> list[int]:
    """Candidate tile sizes, largest first: the axis in 1, 2, ... 8 and then ever more equal parts."""
    whole = min(axis.size, axis.period or axis.size)
    if not axis.cuts:
        return [whole]
    most = min(whole, axis.most or whole)
    found: dict[int, None] = {}
    parts = 1
    while True:
        size = min(ceil(whole / parts / axis.step) * axis.step, whole)
        if size <= most or size <= axis.step:
            found[min(size, most)] = None
        if size <= axis.step:
            return list(found)
        parts = parts + 1 if parts < 8 else ceil(parts * 1.25)


def loads(axes: str, order: str, trips: dict[str, int]) -> int:
    """How often a buffer that depends on `axes` is transferred under a loop order (outermost first)."""
    total = times = 1
    for axis in order:
        total *= trips[axis]
        if axis in axes and trips[axis] > 1:
            times = total
    return times


def bindings(buffer: Buffer, order: str, trips: dict[str, int], double: bool) -> int:
    """Copies of a buffer: two when it is refilled while the other is in use."""
    return 2 if double and loads(buffer.axes, order, trips) > 1 else 1


_PLAIN = Bus()
_PATIENCE = 4
"""Fitting (n, h) sizes that are tried for one (c, w), the largest first."""


class Tiler:
    """Chooses tilings for a chip.

    Args:
        lane_bytes: local memory per lane.
        align: every buffer is rounded up to this.
        bytes_per_cycle: what the bus moves in the time of one compute cycle.
        tile_cycles: start-up time of one tile's commands.
        bank_bytes: of a bank of local memory, for what should lie in different ones.
        bus: what short runs and stores cost.
    """

    def __init__(
        self,
        lane_bytes: int,
        align: int,
        bytes_per_cycle: float = 16,
        tile_cycles: int = 128,
        bank_bytes: int = 1 << 16,
        bus: Bus = _PLAIN,
    ) -> None:
        self.lane_bytes, self.align, self.bank_bytes = lane_bytes, align, bank_bytes
        self.bytes_per_cycle, self.tile_cycles, self.bus = bytes_per_cycle, tile_cycles, bus
        self._fit: dict[Hashable, bool] = {}
        self._chosen: dict[Hashable, Tiling | None] = {}
        self._estimated: dict[Hashable, int | None] = {}

    def fits(self, grid: tuple[Axis, ...], work: Callable[[Box], TileWork], key: Hashable) -> bool:
        """Whether `choose` would find a tiling; the first that fits will do."""
        key = (self.lane_bytes, key)
        if key not in self._fit:
            found = self._candidates(grid, work, overlap=True)
            some = any(self._fits_everywhere(grid, tiling, work) for tiling, _ in found)
            self._fit[key] = some or self.choose(grid, work) is not None
        return self._fit[key]

    def choose(
        self, grid: tuple[Axis, ...], work: Callable[[Box], TileWork], key: Hashable = None, overlap: bool = True
    ) -> Tiling | None:
        """The tiling with the least estimated time that fits local memory; None when nothing does.

        Args:
            key: stands for (grid, work): tilings of a key seen before are not searched again.
            overlap: whether transfers run beside computation; else buffers need no second copy.
        """
        key = None if key is None else (self.lane_bytes, overlap, key)
        if key is not None and key in self._chosen:
            return self._chosen[key]
        chosen = None
        for all_forms in (False, True):
            ranked = sorted(self._candidates(grid, work, overlap, all_forms), key=lambda candidate: candidate[1])
            chosen = next((tiling for tiling, _ in ranked if self._fits_everywhere(grid, tiling, work)), None)
            if chosen is not None or not ranked:
                break
        if key is not None:
            self._chosen[key] = chosen
        return chosen

    def _candidates(
        self, grid: tuple[Axis, ...], work: Callable[[Box], TileWork], overlap: bool, all_forms: bool = False
    ) -> Iterator[tuple[Tiling, float]]:
        """Tilings whose middle tile fits, with their cost.

        Columns are cut only where whole rows do not fit, and of the sizes along n and h the largest few are tried:
        smaller tiles move more. `all_forms`: all sizes, with and without overlap, for where none of these fits with
        its other tiles.
        """
        n_sizes, c_sizes, h_sizes, w_sizes = (tile_sizes(axis) for axis in grid)
        outer = [(n, h_sizes[0]) for n in n_sizes] + [(n_sizes[-1], h) for h in h_sizes[1:]]
        for c in c_sizes:
            for w in w_sizes:
                found = 0
                for n, h in outer:
                    fitting = list(self._orders(grid, (n, c, h, w), work, overlap, all_forms))
                    yield from fitting
                    found += any(tiling.double or not overlap for tiling, _ in fitting)
                    if found >= _PATIENCE and not all_forms:
                        break
                if found and not all_forms:
                    break

    def _orders(
        self,
        grid: tuple[Axis, ...],
        sizes: tuple[int, ...],
        work: Callable[[Box], TileWork],
        overlap: bool,
        all_forms: bool,
    ) -> Iterator[tuple[Tiling, float]]:
        sample = work(tuple(_middle(axis, size) for axis, size in zip(grid, sizes)))
        trips = {a: axis.count(size) for a, axis, size in zip(AXES, grid, sizes)}
        nested = trips["c"] > 1 and trips["n"] * trips["h"] * trips["w"] > 1
        for order in ("cnhw", "nhwc") if nested else ("cnhw",):
            for double in (True, False) if overlap else (False,):
                if self.placed_bytes(sample, order, trips, double) <= self.lane_bytes:
                    yield Tiling(sizes, order, double), self._cost(sample, order, trips, double)
                    if not all_forms:
                        break

    def _fits_everywhere(self, grid: tuple[Axis, ...], tiling: Tiling, work: Callable[[Box], TileWork]) -> bool:
        """Whether areas fit that hold every tile's buffers.

        Halos differ along h and w from tile to tile, and the largest input need not go with the largest output, nor,
        rows being rounded up, with the most rows and the most columns: all of them are looked at.
        """
        trips = {a: axis.count(size) for a, axis, size in zip(AXES, grid, tiling.sizes)}
        if trips["h"] == trips["w"] == 1:
            return True  # the tile in the middle, which fits, has all rows and columns
        outer = tuple(_middle(axis, size) for axis, size in zip(grid[:2], tiling.sizes))
        inner = [intervals(axis, size) for axis, size in zip(grid[2:], tiling.sizes[2:])]
        works = [work((*outer, *box)) for box in product(*inner)]
        largest = [max(sizes) for sizes in zip(*map(_buffer_bytes, works))]
        return self._bytes(works[0], largest, tiling.order, trips, tiling.double) <= self.lane_bytes

    def placed_bytes(self, work: TileWork, order: str, trips: dict[str, int], double: bool) -> int:
        """Bytes per lane that the buffers of one tiling need together."""
        return self._bytes(work, _buffer_bytes(work), order, trips, double)

    def _bytes(self, work: TileWork, sizes: list[int], order: str, trips: dict[str, int], double: bool) -> int:
        """Bytes of areas of `sizes` for the buffers of `work`."""
        moved = (*work.inputs, *work.outputs)
        copies = [bindings(buffer, order, trips, double) for buffer in moved] + [1] * len(work.scratch)
        return sum(self.rounded(size) * count for size, count in zip(sizes, copies))

    def rounded(self, size: int) -> int:
        """`size` rounded up to the alignment of local memory, bytes."""
        return -(-size // self.align) * self.align

    def estimated(self, grid: tuple[Axis, ...], work: Callable[[Box], TileWork], key: Hashable) -> int | None:
        """`estimate` under the tiling that `choose` finds, once for a key; None without one."""
        known = (self.lane_bytes, key)
        if known not in self._estimated:
            tiling = self.choose(grid, work, key)
            self._estimated[known] = None if tiling is None else self.estimate(grid, work, tiling)
        return self._estimated[known]

    def estimate(self, grid: tuple[Axis, ...], work: Callable[[Box], TileWork], tiling: Tiling) -> int:
        """Estimated time of an op under a tiling, from a tile in the middle."""
        sample = work(tuple(_middle(axis, size) for axis, size in zip(grid, tiling.sizes)))
        trips = {a: axis.count(size) for a, axis, size in zip(AXES, grid, tiling.sizes)}
        return round(self._cost(sample, tiling.order, trips, tiling.double))

    def _cost(self, work: TileWork, order: str, trips: dict[str, int], double: bool) -> float:
        """Estimated cycles.

        Transfers and computation add up, except that in a pipeline everything between the first load and the last
        store takes as long as the slower of both. Behind the last load the last tile is computed while the one before
        it is stored.
        """
        tiles = prod(trips.values())
        read = [(b, self.bus.load(b)) for b in work.inputs]
        written = [(b, self.bus.store(b)) for b in work.outputs]
        moved = sum(nbytes * loads(b.axes, order, trips) for b, nbytes in (*read, *written))
        transfer, compute, streamed = moved / self.bytes_per_cycle, work.cycles * tiles, work.streamed_cycles * tiles
        time = transfer + compute
        if double:
            load, store = (sum(nbytes for _, nbytes in side) / self.bytes_per_cycle for side in (read, written))
            time = max(transfer + streamed + max(0, work.cycles - store), load + compute + store)
        return time + self.tile_cycles * tiles


def _buffer_bytes(work: TileWork) -> list[int]:
    """Bytes per lane of inputs, outputs and scratch areas."""
    return [buffer.lane_bytes for buffer in (*work.inputs, *work.outputs)] + list(work.scratch)


def _middle(axis: Axis, size: int) -> tuple[int, int]:
    """A tile of full size, where possible one with neighbours on both sides."""
    lo = size if not axis.period and axis.size >= 2 * size else 0
    return lo, min(lo + size, axis.period or axis.size)
