"""The pipelined schedule of one op's tiles: load i+1, compute i, store i-1 side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from bmcompiler.codegen.build import BaseBuild
from bmcompiler.codegen.stream import Stream
from bmcompiler.codegen.tiling import AXES, Axis, Box, Buffer, Tiler, TileWork, Tiling, bindings, boxes
from bmcompiler.errors import UnsupportedError


@dataclass
class Moved:
    """What an op's tiles moved, in bytes, and how many tiles there were."""

    loaded: int = 0
    stored: int = 0
    weights: int = 0
    tiles: int = 0

    def stream(self, stream: Stream | None) -> None:
        """Count what a computation loads itself."""
        if stream is not None:
            self.loaded += stream.nbytes
            self.weights += stream.nbytes * stream.coefficient

    def add(self, other: Moved) -> None:
        """Count what `other` counted."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class _Bindings:
    """Addresses of the copies of one buffer, taken in turn."""

    def __init__(self, base: int, size: int, count: int) -> None:
        self.addresses = [base + i * size for i in range(count)]
        self.turn = -1
        self.key: object = None

    def move(self, distance: int) -> None:
        """Before the first use."""
        self.addresses = [address + distance for address in self.addresses]

    def next(self) -> int:
        self.turn += 1
        return self.current

    @property
    def current(self) -> int:
        return self.addresses[self.turn % len(self.addresses)]


class _Placement:
    """Local addresses for every buffer of a tiling; sizes are the largest over all tiles.

    What should lie apart from an area before it is placed at the end of local memory.
    """

    def __init__(self, works: list[TileWork], grid: tuple[Axis, ...], tiling: Tiling, tiler: Tiler) -> None:
        if len({(len(work.inputs), len(work.outputs), len(work.scratch)) for work in works}) > 1:
            raise UnsupportedError("its tiles have unlike buffers, and take turns in the same places")
        trips = {a: axis.count(size) for a, axis, size in zip(AXES, grid, tiling.sizes)}
        self.end = 0

        def place(size: int, count: int) -> _Bindings:
            size = tiler.rounded(size)
            placed = _Bindings(self.end, size, count)
            self.end += size * count
            return placed

        def largest(pick: Callable[[TileWork], tuple[Buffer, ...]], index: int) -> _Bindings:
            first = pick(works[0])[index]
            count = bindings(first, tiling.order, trips, tiling.double)
            return place(max(pick(work)[index].lane_bytes for work in works), count)

        last = {pair.second for pair in works[0].apart}
        inputs = {i: largest(lambda w: w.inputs, i) for i in range(len(works[0].inputs)) if i not in last}
        self.outputs = [largest(lambda w: w.outputs, i) for i in range(len(works[0].outputs))]
        first = len(works[0].inputs)  # number of the first scratch area
        numbers = range(first, first + len(works[0].scratch))

        def scratch(i: int) -> _Bindings:
            return place(max(work.scratch[i - first] for work in works), 1)

        areas = {i: scratch(i) for i in numbers if i not in last}
        moved = {i: largest(lambda w: w.inputs, i) if i < first else scratch(i) for i in sorted(last)}
        for one in moved.values():
            one.move(max(tiler.lane_bytes - self.end, 0) // tiler.align * tiler.align)
        areas |= inputs | moved
        self.inputs = [areas[i] for i in range(first)]
        self.scratch = [areas[i].current for i in numbers]


def emit_tiles(
    build: BaseBuild, grid: tuple[Axis, ...], work: Callable[[Box], TileWork], tiling: Tiling, tiler: Tiler
) -> Moved:
    """Emit all commands of one op under a tiling that `tiler` chose. Raises UnsupportedError when it does not fit."""
    tiles = list(boxes(grid, tiling))
    works = [work(box) for box in tiles]
    place = _Placement(works, grid, tiling, tiler)
    if place.end > tiler.lane_bytes:
        raise UnsupportedError(f"tiles need {place.end} of {tiler.lane_bytes} bytes per lane")
    stages = [_stage(box, one, place) for box, one in zip(tiles, works)]
    if tiling.double and len(tiles) > 1:
        _emit_pipelined(build, stages)
    else:
        for stage in stages:
            for step in (*stage.loads, stage.compute, *stage.stores):
                step(build)
    return _count(stages)


@dataclass
class _Stage:
    loads: list[Callable[[Any], None]]
    compute: Callable[[Any], None]
    stores: list[Callable[[Any], None]]
    moved: Moved


def _stage(box: Box, work: TileWork, place: _Placement) -> _Stage:
    moved = Moved(tiles=1)
    moved.stream(work.stream)
    loads: list[Callable[[Any], None]] = []
    for buffer, binding in zip(work.inputs, place.inputs):
        key = tuple(box[AXES.index(axis)] for axis in buffer.axes)
        if binding.turn < 0 or binding.key != key:
            binding.key = key
            loads.append(_transfer(buffer, binding.next()))
            moved.loaded += buffer.nbytes
            moved.weights += buffer.nbytes if buffer.coefficient else 0
    outputs = [binding.next() for binding in place.outputs]
    stores = [_transfer(buffer, address) for buffer, address in zip(work.outputs, outputs)]
    moved.stored = sum(buffer.nbytes for buffer in work.outputs)
    inputs = [binding.current for binding in place.inputs]
    return _Stage(loads, lambda build: work.compute(build, inputs, outputs, place.scratch), stores, moved)


def _transfer(buffer: Buffer, address: int) -> Callable[[Any], None]:
    return lambda build: buffer.transfer(build, address)


def _emit_pipelined(build: BaseBuild, stages: list[_Stage]) -> None:
    for step in range(len(stages) + 2):
        if step < len(stages):
            for load in stages[step].loads:
                load(build)
        if 0 <= step - 1 < len(stages):
            stages[step - 1].compute(build)
        if step >= 2:
            for store in stages[step - 2].stores:
                store(build)


def _count(stages: list[_Stage]) -> Moved:
    total = Moved()
    for stage in stages:
        total.loaded += stage.moved.loaded
        total.stored += stage.moved.stored
        total.weights += stage.moved.weights
        total.tiles += 1
    return total
