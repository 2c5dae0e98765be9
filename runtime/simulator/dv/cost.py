"""Cycles, multiply-accumulates and bytes of DV runs. No public source gives a cycle model; every parameter is assumed.

What is documented: a multiplier array of 72 units per block of 12 x 6 weights, their number and clock as facts of a
board (dv.md 4.2), the blocks of a kernel (3.1), the bytes of maps and weights (2, 3.6), the tiles of a run (4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from bmcompiler.analysis.figures import check_figures
from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.driver.commands import ConvCommand, FcCommand, Run
from bmcompiler.backends.dv.driver.geometry import (
    Extent,
    Link,
    after_conv,
    chain,
    effective_kernel,
    odd_square,
    weight_bytes,
)
from bmcompiler.backends.dv.driver.structs import OutputMode, Pool
from bmcompiler.backends.dv.driver.unified_buffer import tile_run
from bmcompiler.backends.dv.formats.packing_sizes import BLOCK, blocks, conv_size

_GRANULE = 8  # elements that a run without multiplications reads or writes per cycle: 128 bits (dv.md 4.2)


@dataclass(frozen=True)
class TimingProfile:
    """Parameters that the sources do not give; every one is an assumption. Cycles are of the CONV block.

    Attributes:
        clock_hz: the fastest setting of the vendor's scripts.
        mac_num: multipliers, 72 per unit; a unit takes one block of weights of one output channel per cycle.
        ddr_rate: bytes per second of external memory: the 128-bit data path in every cycle.
        command_start: cycles from one command to the next: configuration and interrupt.
        run_start: cycles to start a run and to drain its pipeline.
    """

    clock_hz: float = 1e6 * CHIP.conv_freq
    mac_num: int = CHIP.mac_num
    ddr_rate: float = 16e6 * CHIP.conv_freq
    command_start: int = 500
    run_start: int = 100

    def __post_init__(self) -> None:
        check_figures(self)
        if self.mac_num % BLOCK:
            raise ValueError(f"mac_num must be a multiple of {BLOCK}, got {self.mac_num}")

    @property
    def bus_bytes_per_cycle(self) -> float:
        """External memory at its best."""
        return self.ddr_rate / self.clock_hz

    @property
    def units(self) -> int:
        """Output channels that are computed at a time."""
        return self.mac_num // BLOCK

    def assumptions(self) -> tuple[str, ...]:
        """The parameters in words."""
        return (
            f"clock {self.clock_hz / 1e6:g} MHz",
            f"{self.mac_num} multipliers: {self.units} units, each a block of {BLOCK} weights per cycle",
            f"external memory {self.bus_bytes_per_cycle:g} bytes per cycle, while the run computes",
            f"runs without multiplications take {_GRANULE} elements per cycle",
            "weights are read once per tile, for all samples of a command where a map is one tile",
            "columns that two tiles need are read by both, the input of a command once",
            f"start-up {self.command_start} cycles per command, {self.run_start} per run",
            "host functions and conversions between host and device memory take no time",
        )


PROFILE = TimingProfile()


@dataclass(frozen=True)
class RunCost:
    """What one run takes: cycles, multiply-accumulates, and bytes of external memory by what they are.

    `ideal`: cycles of its arithmetic with every unit at work.
    """

    cycles: int
    macs: int
    weights: int
    source: int
    addend: int
    written: int
    ideal: float = 0.0


def conv_costs(command: ConvCommand, profile: TimingProfile) -> list[RunCost]:
    """Of every run of a command; the first one pays for its start, and for the input of all."""
    found = []
    samples = command.samples
    for index, link in enumerate(chain(command)):
        tiles = 1 if command.is_multi_run else max(1, tile_run(link.source, link.run, CHIP.ub_size).tiles)
        weights = (samples * tiles if tiles > 1 else 1) * weight_bytes(link.run, link.source.c)
        source = samples * _strips(link, tiles) if index == 0 else 0
        adds = command.output_mode == OutputMode.ADD and link.external
        added = after_conv(link.source, link.run) if link.run.pool_enable == Pool.MAX else link.out
        addend = samples * added.bytes if adds else 0
        written = samples * link.out.bytes if link.external else 0
        moved = ceil((weights + source + addend + written) / profile.bus_bytes_per_cycle)
        start = profile.run_start + (profile.command_start if index == 0 else 0)
        cycles = max(samples * _compute(link, profile.units), moved) + start
        ideal = samples * _ideal(link, profile)
        found.append(RunCost(cycles, samples * _macs(link), weights, source, addend, written, ideal))
    return found


def fc_cost(command: FcCommand, profile: TimingProfile) -> RunCost:
    """Of an FC command, which CONV runs as a 1x1 convolution of one pixel, its weights packed for that (dv.md 1.5)."""
    inputs, outputs = command.input_size, command.output_size
    weights = conv_size(inputs, 1, 1, outputs, command.is_quantized)
    compute = ceil(outputs / profile.units) * blocks(inputs, 1)
    moved = ceil((weights + 2 * inputs + 2 * outputs) / profile.bus_bytes_per_cycle)
    cycles = max(compute, moved) + profile.command_start + profile.run_start
    return RunCost(cycles, inputs * outputs, weights, 2 * inputs, 0, 2 * outputs, inputs * outputs / profile.mac_num)


def _compute(link: Link, units: int) -> int:
    """Cycles of the arithmetic. The driver counts average pooling as a convolution (dv.md 4.4)."""
    run, middle = link.run, after_conv(link.source, link.run)
    if run.has_conv:
        return middle.w * middle.h * ceil(run.m / units) * _blocks(run, link.source.c)
    if run.pool_enable == Pool.AVERAGE:
        return link.out.w * link.out.h * ceil(run.m / units)
    return ceil(max(link.source.elements, link.out.elements) / _GRANULE)


def _ideal(link: Link, profile: TimingProfile) -> float:
    """Cycles of the arithmetic with no unit idle."""
    if link.run.has_conv:
        return _macs(link) / profile.mac_num
    if link.run.pool_enable == Pool.AVERAGE:
        return link.out.elements / profile.units
    return max(link.source.elements, link.out.elements) / _GRANULE


def _blocks(run: Run, channels: int) -> int:
    """Blocks of weights per output channel (dv.md 3.1, 3.2)."""
    if run.is_dilated:
        return run.kernel.x * run.kernel.y * (1 if run.is_depthwise else blocks(channels, 1))
    return 1 if run.is_depthwise else blocks(channels, odd_square(run.kernel))


def _macs(link: Link) -> int:
    if not link.run.has_conv:
        return 0
    run, source = link.run, link.source
    at = source if run.is_deconv else after_conv(source, run)
    window = run.kernel.x * run.kernel.y
    return at.w * at.h * run.m * window * (1 if run.is_depthwise else source.c)


def _strips(link: Link, tiles: int) -> int:
    """Bytes of the input with the columns that neighbouring strips share."""
    w, h, _, c = link.source
    shared = (effective_kernel(link.run).x - 1) * (tiles - 1) if link.run.has_conv else 0
    return Extent(w + shared, h, 1, c).bytes
