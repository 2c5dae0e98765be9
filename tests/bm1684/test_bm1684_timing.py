"""The timing model of BM1684 programs: the sampled cycles, bytes, layers, and the schedule of the engines."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from bm1684_nets import Net
from bm1684_programs import NEURON, TILE_BYTES, analysed, model, relu, relu_tiles, transfer, with_wait

from bmcompiler.backends.bm1684.build import CommandBuilder
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.isa import GDMA, DataFormat, Direction, Engine, Eu, Function, Precision, Task
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.backends.bm1684.timing_profile import SILICON, VENDOR, TimingProfile
from bmcompiler.bmodel.bm168x import CommandGroup, CpuSubnet, TpuSubnet
from bmcompiler.bmodel.layers import LayerSpan
from bmcompiler.cli.timing import timing_text
from bmcompiler.errors import SimulatorError, UnsupportedError, UsageError
from bmcompiler.runtime.simulator.analysis import Costs
from bmcompiler.runtime.simulator.bm1684.analysis import analyze

SAME = replace(VENDOR, clock_hz=CHIP.gdma_hz)
"""Cycles of the GDMA."""
INT8 = {f"opt_{name}_prec": Precision.INT8 for name in ("res0", "opd0", "opd1")}


def cost_of(**fields: int) -> Costs:
    """Costs of one TIU command by the vendor's estimates."""
    build = CommandBuilder()
    build.tiu(**fields)
    return analyze(model(TpuSubnet(build.groups(), [], [])), 0, VENDOR).costs


def sizes(name: str, n: int = 1, c: int = 1, h: int = 1, w: int = 1) -> dict[str, int]:
    return {f"{name}_{axis}": size for axis, size in zip("nchw", (n, c, h, w))}


def conv(channels: int, kernel: int, pixels: int, n: int = 1, out: int = 64, **more: int) -> Costs:
    fields = {"tsk_typ": Task.CONV, "opd0_c": channels, "opd1_h": kernel, "opd1_w": kernel}
    return cost_of(**fields, **sizes("res0", n, out, pixels, 1), **more)


def test_fp32_convolutions_take_the_sampled_cycles() -> None:
    assert conv(16, 3, 64).cycles.tolist() == [308]
    assert [int(conv(16, 3, side * side).cycles[0]) for side in (17, 9, 6)] == [1463, 462, 231]
    assert conv(1, 3, 16).cycles.tolist() == [9 * 2 + 5] and conv(3, 1, 16).cycles.tolist() == [5 + 5]
    two = conv(16, 3, 64, n=3, out=65)
    assert two.cycles.tolist() == [6 * 308] and two.macs.tolist() == [3 * 65 * 64 * 9 * 16]


@pytest.mark.parametrize(
    ("channels", "one", "nine"), [(4, 16.5, 71), (8, 17.5, 80), (16, 15, 56.5), (32, 18, 82), (64, 26, 154)]
)
def test_int8_convolutions_take_the_sampled_cycles(channels: int, one: float, nine: float) -> None:
    for kernel, cycles in ((1, one), (3, nine)):
        for n in (1, 4):
            assert conv(channels, kernel, 32, n, **INT8).cycles.tolist() == [2 * cycles]
    assert conv(channels, 1, 32, 5, **INT8).cycles.tolist() == [4 * one]


@pytest.mark.parametrize(
    ("kernel", "stride", "side", "most", "average"), [(2, 2, 8, 40, 60), (3, 2, 7, 96, 116), (3, 1, 14, 195, 260)]
)
def test_pooling_takes_the_sampled_cycles(kernel: int, stride: int, side: int, most: int, average: int) -> None:
    geometry = {"opd1_h": kernel, "opd1_w": kernel, "res_op_x_str": stride, "res_op_y_str": stride}
    for unit, cycles in ((Eu.MAX, most), (Eu.MAC, average)):
        fields = {"tsk_typ": Task.POOL_OR_DEPTHWISE, "tsk_eu_typ": unit, **geometry}
        cost = cost_of(**fields, **sizes("res0", 1, 64, side, side))
        assert cost.cycles.tolist() == [cycles]
        assert cost.macs.tolist() == [64 * side * side * kernel * kernel * (unit == Eu.MAC)]
    constant = {"tsk_typ": Task.POOL_OR_DEPTHWISE, "tsk_eu_typ": Eu.MAC, "opt_opd1_const": 1}
    assert cost_of(**constant, **geometry, **sizes("res0", 1, 64, side, side)).macs.tolist() == [0]


def test_tensor_arithmetic_takes_two_cycles_for_16_words_and_step() -> None:
    shape = sizes("res0", 3, 70, 4, 9)
    words = 3 * 2 * 3 * 2
    assert cost_of(tsk_typ=Task.TENSOR, tsk_eu_typ=Eu.ADD, **shape).cycles.tolist() == [words]
    assert cost_of(tsk_typ=Task.TENSOR, tsk_eu_typ=Eu.ADD, **shape, **INT8).cycles.tolist() == [words // 3]
    wide = {**INT8, "opt_res0_prec": Precision.INT16}
    assert cost_of(tsk_typ=Task.TENSOR, tsk_eu_typ=Eu.MUL, **shape, **wide).cycles.tolist() == [words // 3 * 2]
    assert cost_of(tsk_typ=Task.SCALAR, tsk_eu_typ=Eu.DIVIDE, **shape).cycles.tolist() == [16 * words]
    assert cost_of(tsk_typ=Task.SFU, tsk_eu_typ=Eu.TAYLOR, opd1_n=12, **shape).cycles.tolist() == [24 * words]


def test_matrix_products_count_sections_and_rows() -> None:
    fields = {"tsk_typ": Task.MATRIX, "opd1_w": 8, **sizes("opd0", 3, 2, 1, 32), **sizes("res0", 3, 65, 1, 32)}
    cost = cost_of(**fields)
    assert cost.cycles.tolist() == [3 * 2 * 2 * (40 // 2 + 5)] and cost.macs.tolist() == [3 * 40 * 65 * 32]
    assert cost.ideal.tolist() == [3 * 40 * 65 * 32 / 2048]
    assert cost_of(**fields, **INT8).ideal.tolist() == [3 * 40 * 65 * 32 / 16384]
    assert cost_of(**fields, opt_left_tran=1).cycles.tolist() == [40 * 2 * 2 * (2 + 5)]


def test_a_task_of_unknown_cost_is_refused() -> None:
    with pytest.raises(SimulatorError, match="time that task 11 takes"):
        cost_of(tsk_typ=Task.ARRANGE)


def moves(profile: TimingProfile) -> Costs:
    """Load and store a tile; load coefficients; load from L2; copy and fill in global memory; fill local memory."""
    build = CommandBuilder()
    transfer(build, Direction.SYSTEM_TO_LOCAL, NEURON, 0)
    transfer(build, Direction.LOCAL_TO_SYSTEM, NEURON, 0)
    transfer(build, Direction.SYSTEM_TO_LOCAL, CHIP.program_base, 0)
    transfer(build, Direction.SYSTEM_TO_LOCAL, CHIP.l2_window, 0)
    row = {"src_data_format": DataFormat.INT8, "dst_data_format": DataFormat.INT8}
    row |= {**sizes("src", w=640), **sizes("dst", w=640)}
    build.gdma(direction=Direction.SYSTEM_TO_SYSTEM, src_addr=NEURON, dst_addr=NEURON + 4096, **row)
    build.gdma(direction=Direction.SYSTEM_TO_SYSTEM, special_func=Function.FILL, dst_addr=NEURON, **row)
    build.gdma(direction=Direction.LOCAL_TO_LOCAL, special_func=Function.FILL, dst_addr=local_address(0), **row)
    return analyze(model(TpuSubnet(build.groups(), [], [])), 0, profile).costs


def test_transfers_pay_for_their_bytes_and_a_start() -> None:
    tile, row = TILE_BYTES / 53.4, 640 / 53.4
    cost = moves(SAME)
    wanted = [137 + tile, 45 + tile, 137 + tile, 137 + tile, 182 + 2 * row, 45 + row, 45 + row]
    assert cost.cycles.tolist() == [-int(-cycles // 1) for cycles in wanted]
    assert cost.weights.tolist() == [0, 0, TILE_BYTES, 0, 0, 0, 0]
    assert cost.loaded.tolist() == [TILE_BYTES, 0, 0, 0, 640, 0, 0]
    assert cost.stored.tolist() == [0, TILE_BYTES, 0, 0, 640, 640, 0]
    # cycles are those of the slower TIU clock
    assert moves(VENDOR).cycles[0] == -int(-(137 + tile) * 550 / 575 // 1)


def test_short_rows_pay_for_whole_bursts() -> None:
    def cycles(row_stride: int) -> float:
        build = CommandBuilder()
        row = {"stride_enable": 1, "dst_h_str": 8, "dst_w_str": 1, "src_h_str": row_stride, "src_w_str": 1}
        row |= {**sizes("src", h=100, w=8), **sizes("dst", h=100, w=8)}
        build.gdma(direction=Direction.SYSTEM_TO_LOCAL, src_addr=NEURON, dst_addr=local_address(0), **row)
        return float(analyze(model(TpuSubnet(build.groups(), [], [])), 0, SAME).costs.cycles[0])

    assert (cycles(8), cycles(9)) == (-(-(137 + 3200 / 53.4) // 1), -(-(137 + 6400 / 53.4) // 1))


def test_every_assumption_can_be_replaced() -> None:
    slow = replace(VENDOR, clock_hz=1e8, load_rate=1e8, store_rate=1e8, load_start=70, store_start=450)
    timing = analyze(model(TpuSubnet(relu_tiles(parallel=False, tiles=1), [], [])), 0, slow).timing()
    assert timing.engines[1].busy == 7 + 45 + 2 * TILE_BYTES
    assert timing.seconds == pytest.approx(timing.cycles / 1e8) and "100 MHz" in timing.assumptions[1]
    with pytest.raises(ValueError, match="ddr_burst must be positive"):
        TimingProfile(ddr_burst=0)
    with pytest.raises(ValueError, match="conv_tap must not be negative"):
        TimingProfile(conv_tap=-1)


def test_waits_decide_what_overlaps() -> None:
    serial, parallel = (analysed(relu_tiles(parallel=p, tiles=8)).timing() for p in (False, True))
    assert serial.cycles == sum(use.busy for use in serial.engines)
    assert max(use.busy for use in parallel.engines) <= parallel.cycles < serial.cycles
    for timing in (serial, parallel):
        assert (timing.loaded, timing.stored, timing.weights) == (8 * TILE_BYTES, 8 * TILE_BYTES, 0)
        assert [(use.name, use.commands) for use in timing.engines] == [("TIU", 8), ("GDMA", 16)]


def test_waits_count_ids_and_one_that_never_comes_is_named() -> None:
    build = CommandBuilder()
    transfer(build, Direction.SYSTEM_TO_LOCAL, NEURON, 0)
    transfer(build, Direction.SYSTEM_TO_LOCAL, NEURON, 256)
    relu(build, 0)
    ((tiu, gdma),) = build.groups()
    columns = GDMA.decode(np.frombuffer(gdma, np.uint8))
    columns["cmd_id"][1] = 7  # a gap: the wait for 2 ends with 7
    gap = [CommandGroup(tiu, GDMA.encode(columns).tobytes())]
    assert analysed(gap).commands.wait.tolist() == [-1, -1, 1]
    with pytest.raises(SimulatorError, match="group 0, TIU command 0: it waits for id 9"):
        analysed(with_wait(gap, (0, Engine.TIU, 0), 9))


def test_both_engines_of_a_layer_make_one_row() -> None:
    spans = [LayerSpan("a", "relu", 0, 1), LayerSpan("a", "relu", 1, 1), LayerSpan("a", "relu", 2, 2)]
    timing = analysed(relu_tiles(parallel=False), spans).timing()
    assert [(layer.name, layer.commands) for layer in timing.layers] == [("a", 4), ("(unnamed)", 2)]
    assert sum(layer.cycles for layer in timing.layers) == timing.cycles
    assert timing.layers[0].loaded == timing.layers[0].stored == TILE_BYTES
    assert timing.layers[0].compute == 16 + 2 * SILICON.start


def test_groups_and_host_subnets_separate_the_engines() -> None:
    (group,) = relu_tiles(parallel=True)
    once, twice = analysed([group]).timing(), analysed([group, group]).timing()
    assert twice.cycles == 2 * once.cycles and twice.cpu_records == 0
    subnet = TpuSubnet([group], [], [])
    called = analyze(model(subnet, CpuSubnet(-1, b"", [], []), subnet)).timing()
    assert called.cycles == twice.cycles and called.cpu_records == 1


def net_analysis() -> tuple[object, int]:
    net = Net([(1, 16, 12, 12)])
    module = net.module([net.b.relu(net.b.conv(net.inputs[0], net.f32(64, 16, 3, 3), pads=(1, 1, 1, 1)))])
    return TARGET.compile([module], 2).model, 64 * 144 * 16 * 9


def test_tables_show_work_bytes_and_use_per_layer() -> None:
    compiled, macs = net_analysis()
    timing = analyze(compiled).timing()
    assert [(layer.name, layer.macs) for layer in timing.layers] == [("conv", macs), ("relu", 0)]
    first = timing.layers[0]
    assert first.utilization == pytest.approx(macs / 2048 / first.compute) and 0.4 < first.utilization < 1
    assert first.weights == 64 * 9 * 16 * 4 and timing.weights == first.weights
    text = timing_text(timing)
    assert "at 550 MHz" in text and "assumed: timing profile silicon: validated on 24 kernels" in text
    assert "% of peak" in text and f"{first.weights:,} bytes of weights" in text


def test_the_trace_has_a_track_per_engine_and_the_layers() -> None:
    compiled, _ = net_analysis()
    trace = analyze(compiled).trace()
    assert trace == analyze(compiled).trace()
    events = json.loads(trace)["traceEvents"]
    tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert tracks == {1: "TIU", 2: "GDMA", 3: "host"}
    layers = [event["name"] for event in events if event.get("cat") == "layer" and event["tid"] == 1]
    assert layers == ["conv", "relu"]
    commands = [event for event in events if event.get("cat") == "command"]
    assert [event["args"]["record"] for event in commands] == list(range(len(commands)))
    work = next(event for event in commands if event["name"] == "conv.mul")
    assert work["args"]["layer"] == "conv" and "waits_for" in work["args"] and work["tid"] == 1


def test_wrong_models_are_refused() -> None:
    with pytest.raises(UnsupportedError):
        analyze(object())
    with pytest.raises(UsageError, match="no program 1"):
        analyze(model(), 1)
    with pytest.raises(SimulatorError, match="dynamic"):
        analyze(model(TpuSubnet([], [], [], dynamic=True)))
