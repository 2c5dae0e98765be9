"""The race check: what is ordered, which bytes meet, and that compiled programs pass."""

from __future__ import annotations

import os
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import analysed, model, relu_tiles, waits, with_wait

from bmcompiler import bmodel
from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NEURON,
    FMT_I8,
    bmk1880_acquire_cmdbuf,
    bmk1880_gdma_load,
    bmk1880_parallel_enable,
    bmk1880_register,
    bmk1880_relu_param_t,
    bmk1880_tl_prealloc_align,
    bmk1880_tpu_relu,
    shape_t4,
)
from bmcompiler.backends.bm1880.cmdbuf import pack_cpu
from bmcompiler.bmodel.layers import LayerSpan
from bmcompiler.runtime.simulator.bm1880.analysis import analyze
from bmcompiler.runtime.simulator.notes import ON_CHIP, NotedOutside, Notes
from bmcompiler.runtime.simulator.races import Accesses, conflicts, finished_before
from bmcompiler.runtime.simulator.timing import NO_WAIT, CommandList

SAMPLES = Path(
    os.environ.get("BMCOMPILER_BM1880_SAMPLES", Path(__file__).parents[3] / "shared/hardware/bm1880_samples")
)
Box = tuple[int, tuple[int, ...], tuple[int, ...]]


@pytest.mark.parametrize("parallel", [False, True])
def test_correct_programs_have_no_race(parallel: bool) -> None:
    assert not analysed(relu_tiles(parallel=parallel, tiles=6)).races()


@pytest.mark.parametrize("parallel", [False, True])
def test_every_wait_of_a_correct_program_is_needed_and_its_loss_is_found(parallel: bool) -> None:
    program = relu_tiles(parallel=parallel, tiles=3)
    waiting = [record for record, wait in enumerate(waits(program)) if wait]
    assert len(waiting) >= 4
    for record in waiting:
        races = analysed(with_wait(program, record, 0)).races()
        assert any(record in (race.first.index, race.second.index) for race in races), record


def test_a_race_names_both_commands_layers_and_bytes() -> None:
    spans = [LayerSpan("first", "relu", 0, 3), LayerSpan("second", "relu", 3, 3)]
    program = with_wait(relu_tiles(parallel=False), 4, 0)
    (race, *_) = analysed(program, spans).races()
    assert (race.first.index, race.second.index) == (3, 4)
    text = str(race)
    assert "command 3 (GDMA, gdma.load of layer 'second')" in text and "command 4 (TPU, tpu.max of layer" in text
    assert "the first writes and the second reads bytes 256 to 511 of lanes 0 to 31" in text


def test_two_readers_are_no_race_and_neighbours_do_not_meet() -> None:
    def unordered(address: int, channels: int) -> int:
        ctx = bmk1880_register()
        x, y = (bmk1880_tl_prealloc_align(ctx, at, shape_t4(1, 40, 4, 4), FMT_I8) for at in (0, 4096))
        other = bmk1880_tl_prealloc_align(ctx, address, shape_t4(1, channels, 4, 4), FMT_I8)
        bmk1880_parallel_enable(ctx)
        bmk1880_tpu_relu(ctx, bmk1880_relu_param_t(y, x))
        bmk1880_gdma_load(ctx, other, 0, CTRL_NEURON)
        return len(analysed(bmk1880_acquire_cmdbuf(ctx)).races())

    # x has channels 32 to 39 in lanes 0 to 7, 16 bytes behind the others
    assert unordered(0, 1) == unordered(31 * 65536, 1) == unordered(7 * 65536 + 16, 1) == 1
    assert unordered(8 * 65536 + 16, 24) == unordered(32, 32) == 0
    assert unordered(31 * 65536 + 16, 2) == 0  # wraps to lane 0, one group further, behind x


def test_cpu_records_order_everything() -> None:
    part = relu_tiles(parallel=True)
    assert not analysed(part + pack_cpu("softmax", b"") + part).races()


def test_the_number_of_races_is_limited() -> None:
    program = relu_tiles(parallel=False, tiles=40)
    for record in range(len(waits(program))):
        program = with_wait(program, record, 0)
    analysis = analysed(program)
    assert len(analysis.races()) == 100 and len(analysis.races(7)) == 7
    assert len(analysis.races(10**6)) > 1000


def table(*rows: tuple[int, bool, Box]) -> Accesses:
    """Accesses of a memory without lanes: (command, write, box)."""
    starts = np.array([box[0] for _, _, box in rows])
    dims, strides = (np.array([box[i] for _, _, box in rows]) for i in (1, 2))
    none = np.zeros(len(rows), np.int64)
    return Accesses(
        command=np.array([row[0] for row in rows]),
        space=none,
        write=np.array([row[1] for row in rows]),
        row_lo=none,
        row_hi=none + 1,
        lo=starts,
        hi=starts + ((dims - 1) * strides).sum(1) + 1,
        start=starts,
        dims=dims,
        strides=strides,
        spaces=("bytes {lo} to {hi}",),
    )


def together(a: Box, b: Box) -> bool:
    """Whether two unordered commands, one writing, conflict."""
    two = np.array([0, 1])
    commands = CommandList(2, two, np.full(2, NO_WAIT), two < 0)
    return bool(conflicts(commands, table((0, True, a), (1, False, b)), 10))


def test_interleaved_slices_do_not_meet() -> None:
    columns, others = (0, (4, 8), (32, 1)), (8, (4, 8), (32, 1))
    assert not together(columns, others)
    assert together(columns, (7, (4, 8), (32, 1)))
    assert together(columns, (8, (4, 24), (32, 1))) is False
    assert together(columns, (8, (4, 25), (32, 1)))  # its rows end in the next row's first byte


@pytest.mark.parametrize("axes", list(permutations(range(3))))
def test_long_rows_with_gaps_are_not_one_hull_in_whatever_order_their_axes_are_told(axes: tuple[int, ...]) -> None:
    row = 1 << 23  # bytes, more than the runs that are looked at one by one
    box = [(2, 1 << 24), (1 << 10, 1 << 13), (1 << 13, 1)]
    dims, strides = ([box[axis][part] for axis in axes] for part in (0, 1))
    rows = 0, tuple(dims), tuple(strides)
    assert not together(rows, (row, (1, 1, row), (0, 0, 1)))
    assert together(rows, (row - 1, (1, 1, row), (0, 0, 1))) and together(rows, (row, (1, 1, row + 1), (0, 0, 1)))


boxes = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 12)), min_size=3, max_size=3)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 60), boxes, st.integers(0, 60), boxes)
def test_boxes_meet_exactly_when_they_share_a_byte(
    first: int, a: list[tuple[int, int]], second: int, b: list[tuple[int, int]]
) -> None:
    sets = []
    for start, axes in ((first, a), (second, b)):
        addresses = {start}
        for size, stride in axes:
            addresses = {address + i * stride for address in addresses for i in range(size)}
        sets.append(addresses)
    one, two = ((start, *map(tuple, zip(*axes))) for start, axes in ((first, a), (second, b)))
    assert together(one, two) == bool(sets[0] & sets[1])  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_order_is_the_closure_of_engines_waits_and_barriers(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    engine = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    barrier = np.array(data.draw(st.lists(st.integers(0, 7), min_size=count, max_size=count))) == 0
    wait = np.array([data.draw(st.integers(-1, i - 1)) for i in range(count)])
    before = np.zeros((count, count), bool)
    for i in range(count):
        for j in range(i):
            direct = engine[i] == engine[j] or wait[i] == j or barrier[i] or barrier[j]
            if direct:
                before[i] |= before[j]
                before[i, j] = True
    known = finished_before(CommandList(3, engine, wait, barrier))
    for i in range(count):
        for e in range(3):
            assert known[i, e] == before[i, engine == e].sum()


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no vendor model files: set BMCOMPILER_BM1880_SAMPLES to their folder")
def test_vendor_programs_have_no_race() -> None:
    for path in sorted(SAMPLES.glob("*.bmodel")):
        loaded = bmodel.load(path)
        for program in range(len(loaded.stages())):
            assert not analyze(loaded, program).races()


def test_programs_without_commands_have_neither_time_nor_races() -> None:
    empty = analyze(model(b""))
    assert empty.timing().cycles == 0 and not empty.races()


def test_memory_on_the_chip_takes_notes_from_its_first_byte_to_its_last() -> None:
    notes = Notes()
    outside = NotedOutside(notes, 4096, 256)
    outside.map(4096, np.zeros(256, np.uint8))
    for address in (4096, 4096 + 255, 4095, 4096 + 256):
        outside.tensor(address, (1, 1, 1, 1), (1, 1, 1, 1))
    assert [(note.space, note.offset) for note in notes.found] == [(ON_CHIP, 0), (ON_CHIP, 255)]
