"""Tilings cover the result exactly once, fit local memory and count their transfers; the schedule is a pipeline."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import prod
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bmcompiler.codegen.schedule import emit_tiles
from bmcompiler.codegen.stream import Stream
from bmcompiler.codegen.tiling import (
    AXES,
    Axis,
    Box,
    Buffer,
    Tiler,
    TileWork,
    Tiling,
    boxes,
    intervals,
    loads,
    tile_sizes,
)
from bmcompiler.errors import UnsupportedError

LANES = 32
Grid = tuple[Axis, ...]
Event = tuple[str, Any]


@st.composite
def axes(draw: st.DrawFn, longest: int = 60) -> Axis:
    size = draw(st.integers(1, longest))
    period = draw(st.sampled_from([0, *(p for p in range(1, size + 1) if size % p == 0)]))
    step = draw(st.sampled_from([1, 4, 32]))
    most = draw(st.sampled_from([0, 0, 64, 40])) if step > 1 else draw(st.sampled_from([0, 5]))
    return Axis(size, step, most, draw(st.booleans()) or bool(most), period)


grids = st.tuples(axes(3), axes(40), axes(10), axes(5))
_LAST_FITS_ALONE = (Axis(2, cuts=False), Axis(1, cuts=False), Axis(7, cuts=False, period=1), Axis(4, cuts=False))
"""Beside the next one the first tile fits 200 bytes, those with a halo on both sides do not."""


class Recorder:
    """A build that notes what is emitted."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def note(self, kind: str, what: Any) -> None:
        self.events.append((kind, what))

    def steps(self, pipelined: bool) -> list[list[Event]]:
        """What may run at the same time: one command, or in a pipeline loads, then a computation, then a store."""
        if not pipelined:
            return [[event] for event in self.events]
        order = ["load", "compute", "store"]
        found = [self.events[:2], self.events[2:3]]  # the first tile has both operands to load, later ones at least one
        for (last, _), event in pairwise(self.events[2:]):
            if order.index(event[0]) > order.index(last) or event[0] == last == "load":
                found[-1].append(event)
            else:
                found.append([event])
        return found


def window_work(grid: Grid, halo: int, scratch: int = 0) -> Any:
    """A convolution-like op: input rows with halo for all channels, weights by channel, one result."""

    def work(box: Box) -> TileWork:
        (n0, n1), (c0, c1), (h0, h1), (w0, w1) = box
        rows = min(h1 + halo, grid[2].size) - max(h0 - halo, 0)
        image = (n1 - n0) * rows * (w1 - w0)
        result = prod(hi - lo for lo, hi in box)

        def move(kind: str, name: str, key: Any) -> Any:
            return lambda build, address: build.note(kind, (name, key, address))

        def compute(build: Recorder, ins: list[int], outs: list[int], room: list[int]) -> None:
            build.note("compute", (box, tuple(ins), tuple(outs), tuple(room)))

        return TileWork(
            (
                Buffer(image, "nhw", image * 3, move("load", "x", (box[0], box[2], box[3]))),
                Buffer(-(-(c1 - c0) // LANES) * 7, "c", (c1 - c0) * 7, move("load", "w", box[1]), True),
            ),
            (Buffer(-(-result // LANES), "nchw", result, move("store", "y", box)),),
            (scratch,) if scratch else (),
            compute,
            result,
        )

    return work


@given(axes(), st.integers(0, 99))
def test_intervals_cover_an_axis_once_and_respect_its_rules(axis: Axis, pick: int) -> None:
    sizes = tile_sizes(axis)
    assert sizes == sorted(set(sizes), reverse=True)
    size = sizes[pick % len(sizes)]
    tiles = intervals(axis, size)
    assert [i for lo, hi in tiles for i in range(lo, hi)] == list(range(axis.size))
    assert axis.count(size) == len(tiles)
    period = axis.period or axis.size
    assert all(lo // period == (hi - 1) // period for lo, hi in tiles)
    assert all(hi - lo <= size and (not axis.most or hi - lo <= axis.most) for lo, hi in tiles)
    if not axis.cuts:
        assert size == period
    elif size < period:
        assert size % axis.step == 0 or size == axis.most


@settings(max_examples=40, deadline=None)
@given(grids, st.sampled_from(["cnhw", "nhwc"]), st.data())
def test_boxes_cover_the_result_once(grid: Grid, order: str, data: st.DataObject) -> None:
    sizes = tuple(data.draw(st.sampled_from(tile_sizes(axis))) for axis in grid)
    seen: Counter[tuple[int, ...]] = Counter()
    for (n0, n1), (c0, c1), (h0, h1), (w0, w1) in boxes(grid, Tiling(sizes, order, True)):
        seen.update(
            (n, c, h, w) for n in range(n0, n1) for c in range(c0, c1) for h in range(h0, h1) for w in range(w0, w1)
        )
    assert set(seen.values()) == {1}
    assert len(seen) == prod(axis.size for axis in grid)


@settings(max_examples=60, deadline=None)
@given(grids, st.integers(0, 3), st.sampled_from([0, 20]), st.sampled_from([200, 1000, 5000]))
@example(_LAST_FITS_ALONE, 3, 20, 200)
def test_chosen_tilings_fit_and_their_schedule_is_sound(grid: Grid, halo: int, scratch: int, lane_bytes: int) -> None:
    tiler, work = Tiler(lane_bytes, 16), window_work(grid, halo, scratch)
    tiling = tiler.choose(grid, work)
    if tiling is None:
        n, c, rows, columns = (intervals(axis, tile_sizes(axis)[-1]) for axis in grid)
        smallest = [work((n[0], c[0], y, x)) for y in rows for x in columns]  # halos differ from tile to tile
        needed = max(tiler.placed_bytes(tile, "cnhw", dict.fromkeys(AXES, 2), False) for tile in smallest)
        assert needed > lane_bytes - 16 * 4
        return
    build = Recorder()
    moved = emit_tiles(build, grid, work, tiling, tiler)
    tiles = list(boxes(grid, tiling))
    computed = [what for kind, what in build.events if kind == "compute"]
    assert [box for box, *_ in computed] == tiles
    trips = {name: axis.count(size) for name, axis, size in zip(AXES, grid, tiling.sizes)}
    for name, used in (("x", "nhw"), ("w", "c")):
        emitted = [what for kind, what in build.events if kind == "load" and what[0] == name]
        assert len(emitted) == loads(used, tiling.order, trips)
    assert moved.tiles == len(tiles)
    assert moved.stored == prod(axis.size for axis in grid)
    pipelined = tiling.double and len(tiles) > 1
    check_memory(build.steps(pipelined), work, lane_bytes)
    if pipelined:
        check_pipeline(build.steps(True), tiles)


def check_pipeline(steps: list[list[Event]], tiles: list[Box]) -> None:
    """Step i loads for tile i, computes tile i - 1 and stores tile i - 2."""
    assert len(steps) == len(tiles) + 2
    for step, group in enumerate(steps):
        computed = [what[0] for kind, what in group if kind == "compute"]
        stored = [what[1] for kind, what in group if kind == "store"]
        assert computed == tiles[max(0, step - 1) : step]
        assert stored == ([tiles[step - 2]] if step >= 2 else [])


def check_memory(steps: list[list[Event]], work: Any, lane_bytes: int) -> None:
    """In a step, what is computed from or into is neither loaded over nor stored from; buffers never overlap."""
    contents: dict[int, Any] = {}
    results: dict[int, Box] = {}
    for group in steps:
        before, made = dict(contents), dict(results)
        busy: list[tuple[int, int]] = []
        for kind, what in group:
            if kind == "compute":
                box, ins, outs, room = what
                tile = work(box)
                wanted = [(box[0], box[2], box[3]), box[1]]
                assert [before[address] for address in ins] == wanted, "operands were loaded in an earlier step"
                results[outs[0]] = box
                spans = zip(
                    (*ins, *outs, *room), (*(b.lane_bytes for b in (*tile.inputs, *tile.outputs)), *tile.scratch)
                )
                busy += ((at, at + size) for at, size in spans)
        for kind, what in group:
            if kind == "load":
                name, key, address = what
                buffer = next(b for b in _inputs(work, key) if b[0] == name)[1]
                busy.append((address, address + buffer))
                contents[address] = key
            elif kind == "store":
                _, box, address = what
                assert made.get(address, results.get(address)) == box
                busy.append((address, address + work(box).outputs[0].lane_bytes))
        busy.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(busy)) or len(group) == 1
        assert all(end <= lane_bytes for _, end in busy)


def _inputs(work: Any, key: Any) -> list[tuple[str, int]]:
    """Sizes of the buffers a load with this key may fill."""
    box = ((0, 1), key, (0, 1), (0, 1)) if isinstance(key[0], int) else (key[0], (0, 1), key[1], key[2])
    image, weight = work(box).inputs
    return [("x", image.lane_bytes), ("w", weight.lane_bytes)]


@settings(max_examples=20, deadline=None)
@given(grids)
def test_a_known_key_is_not_searched_again(grid: Grid) -> None:
    tiler, calls = Tiler(5000, 16), 0

    def work(box: Box) -> TileWork:
        nonlocal calls
        calls += 1
        result: TileWork = window_work(grid, 1)(box)
        return result

    first = tiler.choose(grid, work, "key")
    before = calls
    assert tiler.choose(grid, work, "key") == first
    assert calls == before


def test_a_long_operation_is_cut_so_that_transfers_overlap() -> None:
    grid = (Axis(1), Axis(32), Axis(64), Axis(64))
    tiling = Tiler(1 << 20, 16).choose(grid, window_work(grid, 0))
    assert tiling is not None
    assert tiling.double
    assert len(list(boxes(grid, tiling))) > 1


def test_weights_much_larger_than_the_image_are_loaded_once() -> None:
    assert loads("c", "cnhw", {"n": 1, "c": 8, "h": 4, "w": 1}) == 8
    assert loads("nhw", "cnhw", {"n": 1, "c": 8, "h": 4, "w": 1}) == 32
    assert loads("c", "nhwc", {"n": 1, "c": 8, "h": 4, "w": 1}) == 32
    assert loads("", "nhwc", {"n": 3, "c": 8, "h": 4, "w": 1}) == 1


def test_a_tiling_that_does_not_fit_is_refused() -> None:
    grid = (Axis(1), Axis(32), Axis(64), Axis(64))
    with pytest.raises(UnsupportedError, match=r"need \d+ of 100 bytes"):
        emit_tiles(Recorder(), grid, window_work(grid, 0), Tiling((1, 32, 64, 64), "cnhw", False), Tiler(100, 16))


def test_tiles_of_unlike_buffers_are_refused() -> None:
    grid = (Axis(1), Axis(64), Axis(64), Axis(64))
    plain, small = window_work(grid, 0), window_work(grid, 0, scratch=4)

    def work(box: Box) -> TileWork:
        made: TileWork = (small if box[1][0] else plain)(box)
        return made

    with pytest.raises(UnsupportedError, match="unlike buffers"):
        emit_tiles(Recorder(), grid, work, Tiling((1, 32, 64, 64), "cnhw", False), Tiler(1 << 20, 16))


def test_a_stream_waits_for_the_bus_and_for_its_places() -> None:
    stream = Stream(steps=(10, 10, 10, 10), loads=(25, 5), nbytes=0, coefficient=True)
    assert stream.times(0, 0) == (55, 40)  # the third step waits for a load that begins when the first one ends
    assert stream.times(0, 30) == (75, 60)  # so does the load, while the bus is busy
    assert stream.times(100, 0) == (155, 140)
    assert stream._replace(places=3).times(0, 0) == (45, 30)  # the third step has a place that was never taken
    assert stream._replace(places=3).times(100, 0) == (140, 115)
