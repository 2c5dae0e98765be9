"""The timing model of the DV700: cycles and bytes of runs, and that they add up."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dv_nets import lowered, net, weights

from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.driver.commands import Buf, ConvCommand, FcCommand, Pads, Pair, Run
from bmcompiler.backends.dv.driver.geometry import chain
from bmcompiler.backends.dv.driver.structs import Activation, ConvEnable, OutputMode, Pool
from bmcompiler.backends.dv.target import TARGET
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.errors import SimulatorError, UnsupportedError, UsageError
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime.simulator.dv.analysis import _Decoder, analyze
from bmcompiler.runtime.simulator.dv.cost import PROFILE, RunCost, TimingProfile, conv_costs, fc_cost

FREE = TimingProfile(ddr_rate=1e18, command_start=1, run_start=1)
"""Arithmetic alone, but for two cycles per command and run, and one for bytes."""


def cost(w: int, h: int, c: int, *runs: Run, profile: TimingProfile = FREE, **command: Any) -> list[RunCost]:
    return conv_costs(ConvCommand(w, h, c, runs, **command), profile)


CONV = Run(m=20, conv_enable=ConvEnable.CONV)
THREE = {"kernel": Pair(3, 3), "conv_pad": Pads(1, 1, 1, 1)}

CYCLES: dict[str, tuple[Run, int, int]] = {
    # 3 groups of 8 output channels; blocks of 64, 8, 2 and 1 input channels (dv.md 3.1)
    "1x1": (CONV, 10 * 12 * 3 * 2, 10 * 12 * 20 * 70),
    "3x3": (Run(m=20, conv_enable=1, **THREE), 10 * 12 * 3 * 9, 10 * 12 * 20 * 70 * 9),
    "2x2 as 3x3": (Run(m=20, conv_enable=1, kernel=Pair(2, 2)), 9 * 11 * 3 * 9, 9 * 11 * 20 * 70 * 4),
    "5x5": (Run(m=20, conv_enable=1, kernel=Pair(5, 5)), 6 * 8 * 3 * 35, 6 * 8 * 20 * 70 * 25),
    "7x7": (Run(m=20, conv_enable=1, kernel=Pair(7, 7)), 4 * 6 * 3 * 70, 4 * 6 * 20 * 70 * 49),
    "depthwise": (Run(m=70, conv_enable=3, **THREE), 10 * 12 * 9, 10 * 12 * 70 * 9),
    "dilated": (
        Run(m=20, conv_enable=1, kernel=Pair(3, 3), conv_pad=Pads(2, 2, 2, 2), dilation=Pair(2, 2)),
        10 * 12 * 3 * 9 * 2,
        10 * 12 * 20 * 70 * 9,
    ),
    "pooled": (
        Run(m=20, conv_enable=1, pool_enable=Pool.MAX, pool_size=Pair(2, 2), pool_stride=Pair(2, 2)),
        10 * 12 * 3 * 2,
        10 * 12 * 20 * 70,
    ),
    "average": (Run(m=70, pool_enable=Pool.AVERAGE, pool_size=Pair(2, 2), pool_stride=Pair(2, 2)), 5 * 6 * 9, 0),
    "activation": (Run(m=70, actfunc=Activation.TANH), 10 * 12 * 70 // 8, 0),
    "upsample": (Run(m=70, pool_enable=Pool.UPSAMPLE), 4 * 10 * 12 * 70 // 8, 0),
}


@pytest.mark.parametrize("name", CYCLES)
def test_a_run_takes_a_cycle_per_block_and_8_output_channels(name: str) -> None:
    run, cycles, macs = CYCLES[name]
    (found,) = cost(10, 12, 70, run)
    assert (found.cycles - 2, found.macs) == (cycles, macs)


def test_a_transposed_convolution_multiplies_what_it_has() -> None:
    run = Run(m=8, conv_enable=5, kernel=Pair(3, 3), conv_pad=Pads(2, 2, 2, 2), conv_stride=Pair(2, 2))
    (found,) = cost(5, 6, 16, run)
    assert found.macs == 5 * 6 * 8 * 16 * 9
    assert found.cycles - 2 == 11 * 13 * 1 * 2


def test_bytes_are_those_that_leave_the_unified_buffer() -> None:
    """A chain of two runs and an addition: input, weights, addend and the last result."""
    first, last = cost(
        10, 12, 16, Run(m=8, conv_enable=1), Run(m=16, conv_enable=1), topo=2, output_mode=OutputMode.ADD
    )
    assert (first.source, first.addend, first.written) == (2 * 10 * 12 * 16, 0, 0)
    assert (last.source, last.addend, last.written) == (0, 2 * 10 * 12 * 16, 2 * 10 * 12 * 16)
    assert (first.weights, last.weights) == (144 * 8 + 16, 144 * 16 + 32)


def test_tiles_read_weights_and_shared_columns_again() -> None:
    """56 x 56 x 256 with 3x3 kernels needs 3 tiles of 640 KiB: two borders of two columns."""
    (found,) = cost(56, 56, 256, Run(m=64, conv_enable=1, **THREE))
    assert found.weights == 3 * (144 * 64 * 32 + 128)
    assert found.source == 2 * (56 + 2 * 2) * 56 * 256


@pytest.mark.parametrize("size, tiles", [(28, 1), (56, 3)])
def test_samples_of_one_tile_read_weights_once(size: int, tiles: int) -> None:
    run = Run(m=64, conv_enable=1, **THREE)
    (one,), (five,) = (
        conv_costs(ConvCommand(size, size, 256, (run,), input_circular_offset=count), PROFILE) for count in (0, 5)
    )
    assert one.weights == tiles * (144 * 64 * 32 + 128)
    assert five.weights == (one.weights if tiles == 1 else 5 * one.weights)
    assert (five.source, five.written, five.macs) == (5 * one.source, 5 * one.written, 5 * one.macs)


def test_slow_memory_decides() -> None:
    slow = TimingProfile(ddr_rate=TimingProfile.clock_hz / 2, command_start=10, run_start=20)
    (found,) = cost(10, 12, 70, CONV, profile=slow)
    assert found.cycles == 2 * (found.weights + found.source + found.written) + 30
    fc = fc_cost(FcCommand(100, 20), slow)
    assert fc.cycles == 2 * (2 * 20 * 144 + 48 + 200 + 40) + 30
    assert fc_cost(FcCommand(100, 20), FREE).cycles == 3 * 2 + 2


@pytest.mark.parametrize("given", [{"mac_num": 100}, {"ddr_rate": 16.0}, {"run_start": -1}])
def test_parameters_that_cannot_be_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        TimingProfile(**given)


# -- programs ---------------------------------------------------------------------------------------------------------
SHAPE = (2, 16, 12, 10)


def block(b: Builder, x: Value) -> tuple[Value, Value]:
    """A chain that ends with an addition, an op on the host, a matrix product."""
    y = b.conv(x, weights(b, 8, 16, 3, 3), pads=(1, 1, 1, 1), activation="relu")
    z = b.add(b.conv(y, weights(b, 16, 8, 1, 1)), x)
    on_host = b.softmax(z, axis=1)
    return on_host, b.matmul(b.reshape(z, shape=(2, 1920)), weights(b, 1920, 3))


def made() -> Any:
    return TARGET.compile([lowered(net(block, SHAPE))], 2)


def test_numbers_of_a_program_add_up() -> None:
    compiled = made()
    timing = analyze(compiled.model).timing()
    assert sum(layer.cycles for layer in timing.layers) == timing.cycles > 0
    for name in ("macs", "weights", "stored"):
        assert sum(getattr(layer, name) for layer in timing.layers) == getattr(timing, name)
        assert sum(getattr(row, name) for row in compiled.rows) == getattr(timing, name), name
    assert sum(row.loaded for row in compiled.rows) == timing.loaded + timing.weights
    assert timing.bound <= timing.cycles and timing.cpu_records == 1
    size = 2 * int(np.prod(SHAPE))
    # The input, which is added, too; the sum, which the host reads; the result of the product.
    assert timing.features == 3 * size + 2 * 2 * 3
    assert timing.compulsory == compiled.totals["weight memory"] + 2 * size + 2 * 2 * 3
    text = " ".join(timing.assumptions)
    assert "333 MHz" in text and "576 multipliers" in text and "16 bytes per cycle" in text


@pytest.mark.parametrize("topo", [0b100, 0b101, 0b110, 0b111])
def test_results_of_a_command_lie_one_behind_the_other(topo: int) -> None:
    """As the driver writes them; what stays in the unified buffer takes no room."""
    runs = tuple(replace(CONV, m=m) for m in (8, 20, 3))
    command = ConvCommand(12, 10, 8, runs, topo=topo, input_buf=Buf(1, 64), output_buf=Buf(2, 256))
    places = [target for _, target in _Decoder(PROFILE)._conv(command)]
    sizes = [link.out.bytes if link.external else 0 for link in chain(command)]
    assert places == [Buf(2, 256 + sum(sizes[:number])) for number in range(3)]


def test_parameters_change_the_estimate() -> None:
    model = made().model
    half = TimingProfile(clock_hz=PROFILE.clock_hz / 2, ddr_rate=PROFILE.ddr_rate / 2)
    assert analyze(model, 0, half).timing().seconds == pytest.approx(2 * analyze(model).timing().seconds)
    cycles = [analyze(model, 0, replace(FREE, mac_num=count)).timing().cycles for count in (576, 1152)]
    assert cycles[1] < cycles[0]


def test_chains_save_time_and_bytes() -> None:
    module = lowered(net(block, SHAPE))
    plain, chained = (analyze(TARGET.compile([module], level).model).timing() for level in (0, 2))
    assert chained.cycles < plain.cycles and chained.spill < plain.spill and chained.macs == plain.macs


def test_nothing_runs_at_the_same_time() -> None:
    analysis = analyze(made().model)
    assert analysis.races() == []
    found = analysis.accesses()
    assert found.start.shape == found.lo.shape == (0,) and found.dims.shape == found.strides.shape == (0, 1)
    assert '"traceEvents"' in analysis.trace() and "conv+add" in analysis.trace()


def test_damaged_programs_are_refused() -> None:
    def changed(at: int, value: int) -> Bm168xModel:
        model = deepcopy(made().model)
        (group,) = model.nets[0].stages[0].subnets[0].source["cmd_group"]
        data = bytearray(group["binary_bdc"])
        data[at] = value
        group["binary_bdc"] = bytes(data)
        return model

    with pytest.raises(SimulatorError, match="the driver would refuse"):
        analyze(changed(72 + 28, 9))  # kernel width of run 0
    with pytest.raises(UsageError, match="no program 7"):
        analyze(made().model, 7)
    with pytest.raises(UnsupportedError, match="knows dv700 programs only"):
        analyze(object())


def test_the_default_board_is_that_of_the_driver() -> None:
    assert PROFILE.clock_hz == 1e6 * CHIP.conv_freq and PROFILE.units == CHIP.mac_num // 72
