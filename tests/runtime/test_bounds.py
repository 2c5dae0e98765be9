"""Bounds of the timing model: what has to be computed and moved, and that no estimate is below it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import CHANNELS, SIDE, TILE_BYTES, analysed, model, relu_tiles

from bmcompiler.analysis.profile import Timing
from bmcompiler.backends.bm1880.cycles import TimingProfile
from bmcompiler.bmodel.layers import LayerSpan
from bmcompiler.runtime.simulator.bm1880.analysis import analyze
from bmcompiler.runtime.simulator.traffic import NetMemory, Transfers, compulsory

SPANS = [LayerSpan("first", "relu", 0, 3), LayerSpan("second", "relu", 3, 3)]


def relu_timing(*, parallel: bool, profile: TimingProfile | None = None) -> Timing:
    """y = relu(x) of two tiles, which are all of the input and the output."""
    program = model(relu_tiles(parallel=parallel), SPANS)
    return (analyze(program) if profile is None else analyze(program, 0, profile)).timing()


@pytest.mark.parametrize("parallel", [False, True])
def test_a_program_that_moves_its_input_and_output_once_moves_what_it_has_to(parallel: bool) -> None:
    timing = relu_timing(parallel=parallel)
    assert timing.compulsory == timing.features == 4 * TILE_BYTES and timing.spill == 0
    assert timing.traffic_bound == 4 * TILE_BYTES / 8
    assert timing.compute_bound == 2 * CHANNELS * SIDE * SIDE / 512
    assert timing.bound == timing.traffic_bound and timing.ratio == timing.cycles / timing.bound > 1


def test_layers_add_up_to_the_net() -> None:
    timing = relu_timing(parallel=True)
    for name in ("cycles", "compulsory", "features", "spill", "compute_bound", "traffic_bound"):
        assert sum(getattr(layer, name) for layer in timing.layers) == pytest.approx(getattr(timing, name)), name
    assert all(layer.ratio >= 1 for layer in timing.layers)


def test_bytes_elsewhere_are_spill() -> None:
    program = model(relu_tiles(parallel=False, tiles=2), SPANS)
    program.commands[0].outputs[0].offset = 3 * TILE_BYTES  # the first result is of no output
    timing = analyze(program).timing()
    assert (timing.features, timing.spill) == (3 * TILE_BYTES, TILE_BYTES)
    assert timing.layers[0].spill == TILE_BYTES and timing.layers[1].spill == 0
    assert timing.compulsory == 3 * TILE_BYTES


def test_engines_say_whom_they_wait_for() -> None:
    for use in relu_timing(parallel=False).engines:
        assert sum(cycles for _, cycles in use.waits) == use.stalled > 0
        assert [name for name, _ in use.waits] == [{"TPU": "GDMA", "GDMA": "TPU"}[use.name]]


def test_waits_of_layers_add_up_to_those_of_the_arithmetic_engine() -> None:
    timing = relu_timing(parallel=False)
    assert sum(layer.stalled for layer in timing.layers) == timing.engines[0].stalled


def test_another_bandwidth_moves_the_bound() -> None:
    fast = relu_timing(parallel=True, profile=TimingProfile(ddr_rate=1e15))
    assert fast.bus_bytes_per_cycle == 1e6 and fast.bound == fast.compute_bound
    assert fast.cycles < relu_timing(parallel=True).cycles


def transfers(rows: list[tuple[int, int, bool]]) -> Transfers:
    """Loads (address, bytes, of coefficients)."""
    source, read, coefficient = (np.array(column) for column in zip(*rows))
    none = np.zeros(len(rows), np.int64)
    return Transfers(source, read, none, none, coefficient.astype(bool))


def test_what_is_loaded_again_counts_once() -> None:
    net = NetMemory(inputs=((1000, 100),), coefficients=64)
    rows = [(0, 32, True), (32, 32, True), (0, 32, True), (1000, 100, False), (1000, 50, False), (2000, 9, False)]
    features, once = compulsory(transfers(rows), net)
    assert features.tolist() == [0, 0, 0, 100, 50, 0]
    assert once.tolist() == [32, 32, 0, 100, 0, 0]


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 90), st.booleans()), min_size=1, max_size=30))
def test_no_more_is_compulsory_than_there_is(rows: list[tuple[int, int, bool]]) -> None:
    net = NetMemory(inputs=((100, 120),), coefficients=70)
    moved = transfers(rows)
    features, once = compulsory(moved, net)
    assert (features <= moved.read).all() and (once >= 0).all()
    assert once[moved.coefficient].sum() <= 70 and once[~moved.coefficient].sum() <= 120


def test_programs_without_named_layers_have_bounds_too() -> None:
    timing = analysed(relu_tiles(parallel=True)).timing()
    assert timing.layers[0].compulsory == timing.compulsory > 0
