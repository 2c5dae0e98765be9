"""The timing model: cycles per command, and the schedule of engines that wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import CHANNELS, SIDE, TILE_BYTES, analysed, model, one_load, relu_tiles, waits, with_wait

from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NEURON,
    CTRL_WEIGHT,
    FMT_I8,
    Bmk1880Context,
    bmk1880_acquire_cmdbuf,
    bmk1880_add_param_t,
    bmk1880_avg_pooling_param_t,
    bmk1880_conv_param_t,
    bmk1880_depthwise_param_t,
    bmk1880_gdma_copy_gmem,
    bmk1880_gdma_load,
    bmk1880_gdma_load_stride,
    bmk1880_gdma_store,
    bmk1880_matrix_mac_param_t,
    bmk1880_register,
    bmk1880_relu_param_t,
    bmk1880_tl_prealloc,
    bmk1880_tl_prealloc_align,
    bmk1880_tpu_add,
    bmk1880_tpu_avg_pooling,
    bmk1880_tpu_conv,
    bmk1880_tpu_depthwise,
    bmk1880_tpu_matrix_mac,
    bmk1880_tpu_relu,
    shape_t2,
    shape_t4,
    stride_t4,
    tensor_gmem,
    tensor_lmem,
)
from bmcompiler.backends.bm1880.cmdbuf import pack_cpu
from bmcompiler.backends.bm1880.cycles import PROFILE, TimingProfile
from bmcompiler.backends.bm1880.isa import Engine
from bmcompiler.bmodel.layers import LayerSpan
from bmcompiler.errors import FileFormatError, SimulatorError, UnsupportedError, UsageError
from bmcompiler.runtime.simulator.analysis import Costs
from bmcompiler.runtime.simulator.bm1880.analysis import analyze
from bmcompiler.runtime.simulator.bm1880.decoded import ENGINES
from bmcompiler.runtime.simulator.timing import NO_WAIT, CommandList, Schedule, schedule, shares, stalls

FREE = TimingProfile(gdma_start=1, tpu_start=1)


def costs_of(make: Callable[[Bmk1880Context], object], profile: TimingProfile = FREE) -> Costs:
    ctx = bmk1880_register()
    make(ctx)
    return analyze(model(bmk1880_acquire_cmdbuf(ctx)), 0, profile).costs


def local(ctx: Bmk1880Context, address: int, *shape: int, align: bool = True) -> tensor_lmem:
    make = bmk1880_tl_prealloc_align if align else bmk1880_tl_prealloc
    return make(ctx, address, shape_t4(*shape), FMT_I8)


def test_convolution_takes_a_cycle_per_tap_for_32_channels_and_16_pixels() -> None:
    def conv(ctx: Bmk1880Context) -> None:
        x, y = local(ctx, 0, 2, 3, 9, 10), local(ctx, 4096, 2, 40, 7, 8)
        w = local(ctx, 8192, 3, 40, 3, 3, align=False)
        bmk1880_tpu_conv(ctx, bmk1880_conv_param_t(ofmap=y, ifmap=x, weight=w, rshift_width=8))

    cost = costs_of(conv)
    # bm1880.md 15: N * ceil(OC/32) * ceil(OH*OW/16) * KH*KW*IC
    assert cost.cycles.tolist() == [2 * 2 * 4 * 27 + 1]
    assert cost.macs.tolist() == [2 * 40 * 56 * 27]


def test_windows_per_channel() -> None:
    def windows(ctx: Bmk1880Context) -> None:
        x, y, w = local(ctx, 0, 1, 33, 8, 8), local(ctx, 4096, 1, 33, 6, 6), local(ctx, 8192, 1, 33, 3, 3)
        bmk1880_tpu_depthwise(ctx, bmk1880_depthwise_param_t(ofmap=y, ifmap=x, weight=w, rshift_width=7))
        bmk1880_tpu_avg_pooling(ctx, bmk1880_avg_pooling_param_t(ofmap=y, ifmap=x, kh=3, kw=3))

    cost = costs_of(windows)
    assert cost.cycles.tolist() == [2 * 3 * 9 + 1] * 2
    assert cost.macs.tolist() == [33 * 36 * 9, 0]


def test_matrices_and_wide_sums() -> None:
    def both(ctx: Bmk1880Context) -> None:
        left, right, result = (
            bmk1880_tl_prealloc_align(ctx, at, shape_t2(*shape), FMT_I8)
            for at, shape in ((0, (5, 100)), (4096, (100, 70)), (16384, (5, 70)))
        )
        bmk1880_tpu_matrix_mac(ctx, bmk1880_matrix_mac_param_t(res=result, left=left, right=right, res_is_int8=True))
        planes = [local(ctx, at, 1, 32, 4, 8) for at in range(32768, 32768 + 6 * 64, 64)]
        bmk1880_tpu_add(ctx, bmk1880_add_param_t(planes[5], planes[4], planes[3], planes[2], planes[1], planes[0]))

    cost = costs_of(both)
    assert cost.cycles.tolist() == [5 * 1 * 2 * 100 + 1, 2 * PROFILE.wide_passes + 1]
    assert cost.macs.tolist() == [5 * 3 * 32 * 100, 0]


def test_transfers_pay_for_bytes_in_bursts() -> None:
    def moves(ctx: Bmk1880Context) -> None:
        x = local(ctx, 0, 1, 32, 4, 8)
        bmk1880_gdma_load(ctx, x, 0, CTRL_WEIGHT)
        bmk1880_gdma_load_stride(ctx, x, 0, stride_t4(9999, 64, 16, 1), CTRL_NEURON)  # runs of 8 bytes
        bmk1880_gdma_load_stride(ctx, x, 0, stride_t4(9999, 64, 8, 1), CTRL_NEURON)  # runs of 32 bytes
        bmk1880_gdma_store(ctx, x, 0, CTRL_NEURON)
        shape = shape_t4(1, 1, 1, 64)
        there, here = (tensor_gmem(at, shape, stride_t4(64, 64, 64, 1)) for at in (0, 128))
        bmk1880_gdma_copy_gmem(ctx, there, here, CTRL_NEURON)

    cost = costs_of(moves)
    assert cost.cycles.tolist() == [1024 // 8 + 1, 128 * 32 // 8 + 1, 1024 // 8 + 1, 1024 // 8 + 1, 2 * 64 // 8 + 1]
    assert cost.weights.tolist() == [1024, 0, 0, 0, 0]
    assert cost.loaded.tolist() == [0, 1024, 1024, 0, 64]
    assert cost.stored.tolist() == [0, 0, 0, 1024, 64]


def test_every_assumption_can_be_replaced() -> None:
    slow = replace(PROFILE, clock_hz=5e8, ddr_rate=1e9, gdma_start=7)
    timing = analyze(model(one_load()), 0, slow).timing()
    assert timing.cycles == 64 // 2 + 7
    assert timing.seconds == pytest.approx(39 / 5e8)
    assert any("500 MHz" in line for line in timing.assumptions)
    with pytest.raises(ValueError, match="clock_hz must be positive"):
        TimingProfile(clock_hz=0)


def hand_made() -> CommandList:
    """Engine 0: a, c, f; engine 1: b, d; d waits for a, f for d; then a barrier and one more."""
    engine = np.array([0, 1, 0, 1, 0, 2, 1])
    wait = np.array([NO_WAIT, NO_WAIT, NO_WAIT, 0, 3, NO_WAIT, NO_WAIT])
    return CommandList(3, engine, wait, engine == 2)


def test_commands_start_as_soon_as_their_engine_and_their_waits_allow() -> None:
    commands = hand_made()
    times = schedule(commands, np.array([10, 2, 3, 5, 1, 4, 1]))
    assert times.start.tolist() == [0, 0, 10, 10, 15, 16, 20]
    assert times.end.tolist() == [10, 2, 13, 15, 16, 20, 21]
    assert stalls(commands, times).tolist() == [0, 0, 0, 8, 2, 0, 5]
    assert shares(commands, times).tolist() == [10, 0, 3, 2, 1, 4, 1]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(-1, 20)), max_size=24))
def test_every_cycle_is_somebodys(rows: list[tuple[int, int, int]]) -> None:
    engine, cost = (np.array([row[column] for row in rows], np.int64) for column in (0, 1))
    wait = np.array([back if back < at else NO_WAIT for at, (_, _, back) in enumerate(rows)], np.int64)
    commands = CommandList(3, engine, wait, engine == 2)
    times = schedule(commands, cost)
    found = shares(commands, times)
    assert found.sum() == times.cycles and (found >= 0).all() and (found <= cost).all()
    assert found[engine == 0].sum() == cost[engine == 0].sum()


def test_transfers_have_the_cycles_in_which_nothing_is_computed() -> None:
    engine = np.array([0, 0, 1, 1])
    commands = CommandList(2, engine, np.full(4, NO_WAIT), engine == 2)
    times = Schedule(np.array([10, 30, 0, 25]), np.array([20, 40, 25, 50]))
    assert shares(commands, times).tolist() == [10, 10, 15, 15]


def test_parallel_groups_overlap_transfers_with_arithmetic() -> None:
    serial, parallel = (analysed(relu_tiles(parallel=p, tiles=8)).timing() for p in (False, True))
    assert serial.cycles == sum(use.busy for use in serial.engines)
    assert max(use.busy for use in parallel.engines) <= parallel.cycles < serial.cycles
    for timing in (serial, parallel):
        assert (timing.loaded, timing.stored, timing.weights) == (8 * TILE_BYTES, 8 * TILE_BYTES, 0)


def test_layers_share_out_the_whole_time() -> None:
    spans = [LayerSpan("first", "relu", 0, 3), LayerSpan("second", "relu", 3, 2)]
    timing = analysed(relu_tiles(parallel=False), spans).timing()
    assert [(layer.name, layer.commands) for layer in timing.layers] == [("first", 3), ("second", 2), ("(unnamed)", 1)]
    assert sum(layer.cycles for layer in timing.layers) == timing.cycles
    assert timing.layers[0].loaded == timing.layers[0].stored == TILE_BYTES
    assert timing.layers[0].compute == CHANNELS // 32 * SIDE * SIDE // 16 + PROFILE.tpu_start


@pytest.mark.parametrize(("needed", "counted"), [(None, 1.0), (0, 1.0), (160, 0.25), (640, 1.0), (700, 1.0)])
def test_bounds_count_the_multiply_accumulates_that_a_layer_needs(needed: int | None, counted: float) -> None:
    """Of 640 that the command makes; where the layer says that it needs more, the command's are all that it takes."""
    ctx = bmk1880_register()
    left, right, result = (
        bmk1880_tl_prealloc_align(ctx, at, shape_t2(*shape), FMT_I8)
        for at, shape in ((0, (4, 10)), (4096, (10, 16)), (16384, (4, 16)))
    )
    bmk1880_tpu_matrix_mac(ctx, bmk1880_matrix_mac_param_t(res=result, left=left, right=right, res_is_int8=True))
    code = bmk1880_acquire_cmdbuf(ctx)
    plain = analysed(code).timing()
    spans = [LayerSpan("product", "matmul", 0, 1, needed, None if needed is None else 800)]
    timing = analysed(code, spans).timing()
    (layer,) = timing.layers
    assert timing.macs == layer.macs == (plain.macs if needed is None else needed)
    assert timing.computed_macs == plain.macs
    for found, whole in ((timing.compute_bound, plain.compute_bound), (timing.utilization, plain.utilization)):
        assert found == pytest.approx(whole * counted)
    assert layer.compute_bound == timing.compute_bound and layer.traffic_alone == (0 if needed is None else 100)


def test_cpu_records_separate_the_engines_and_restart_the_ids() -> None:
    part = relu_tiles(parallel=True)
    once, whole = analysed(part).timing(), analysed(part + pack_cpu("softmax", b"") + part)
    assert [ENGINES[number] for number in whole.decoded.commands.engine].index("CPU") == len(analysed(part).decoded)
    twice = whole.timing()
    assert twice.cycles == 2 * once.cycles and twice.cpu_records == 1


def test_ids_wrap() -> None:
    ctx = bmk1880_register()
    x = local(ctx, 0, 1, 32, 4, 8)
    for _ in range(65534):
        ctx.sync.issue(Engine.GDMA, 0)
    bmk1880_gdma_load(ctx, x, 0, CTRL_NEURON)  # id 65535
    bmk1880_gdma_load(ctx, x, 0, CTRL_NEURON)  # id 1
    bmk1880_tpu_relu(ctx, bmk1880_relu_param_t(x, x))
    assert waits(bmk1880_acquire_cmdbuf(ctx)) == [0, 0, 1]
    assert analysed(bmk1880_acquire_cmdbuf(ctx)).decoded.commands.wait.tolist() == [-1, -1, 1]


def test_a_wait_that_never_ends_is_named() -> None:
    part = relu_tiles(parallel=False)
    assert waits(part)[1] == 1
    with pytest.raises(SimulatorError, match=r"command 1 \(TPU\) waits for GDMA id 77"):
        analysed(with_wait(part, 1, 77))


def test_wrong_models_are_refused() -> None:
    with pytest.raises(UnsupportedError):
        analyze(object())
    for number in (1, -1):
        with pytest.raises(UsageError, match=f"no program {number}"):
            analyze(model(one_load()), number)
    with pytest.raises(SimulatorError, match="magic byte"):
        analyze(model(b"hello world"))


@pytest.mark.parametrize(
    "text", ["{", "3", '[["a","b",0]]', '[["a","b",0,7]]', '[["a","b",1,1],["c","d",0,1]]', '[["a","b",0,true]]']
)
def test_malformed_layer_lists_are_refused(text: str) -> None:
    broken = model(one_load())
    broken.commands[0].layers = text
    with pytest.raises(FileFormatError, match="layer"):
        analyze(broken)
