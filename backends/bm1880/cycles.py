"""Cycles of BM1880 commands: the one place that says them, for the planner and for the simulator's timing model.

Arithmetic follows bm1880.md 15: 32 lanes of 16 units, one multiply-accumulate per unit and cycle. Clock, memory
bandwidth and start-up times are documented nowhere; they are parameters (`TimingProfile`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from bmcompiler.analysis.figures import check_figures
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.lanes.counts import Fact, up, whole
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.chip import Dims
from bmcompiler.codegen.bus import Bus
from bmcompiler.numeric.arrays import Ints

Count = int | Ints
"""A number of one command, or a column of those of many."""

WINOGRAD_PIXELS = 4
_WINOGRAD_PRODUCTS = 16  # of a 4x4 transformed tile, which yields 2x2 results


@dataclass(frozen=True)
class TimingProfile:
    """Parameters that the sources do not give; every one is an assumption. Cycles are of the TPU clock.

    Attributes:
        clock_hz: 512 multiply-accumulates per cycle at 1 GHz are the advertised 1 TOPS (bm1880.md 15).
        ddr_rate: bytes per second of global memory: 8 GB/s are about 60 % of a 32-bit LPDDR4-3200 interface.
        ddr_burst: bytes of the smallest memory access; every run of consecutive bytes is rounded up to it.
        local_rate: bytes per second inside local memory: 16 bytes a cycle per lane port, four lanes at a time.
        gdma_start: cycles between a transfer's start and its first byte (memory latency, descriptor).
        tpu_start: cycles to start an instruction and to drain its pipeline.
        wide_passes: passes of an element-wise operation with 16-bit operands or results, one per byte plane.
    """

    clock_hz: float = 1e9
    ddr_rate: float = 8e9
    ddr_burst: int = 32
    local_rate: float = 64e9
    gdma_start: int = 100
    tpu_start: int = 16
    wide_passes: int = 2

    def __post_init__(self) -> None:
        check_figures(self)

    @property
    def bus_bytes_per_cycle(self) -> float:
        """Global memory at its best."""
        return self.ddr_rate / self.clock_hz

    def assumptions(self) -> tuple[str, ...]:
        """The parameters in words."""
        return (
            f"clock {self.clock_hz / 1e6:g} MHz",
            f"global memory {self.bus_bytes_per_cycle:g} bytes per cycle in bursts of {self.ddr_burst} bytes",
            f"start-up {self.gdma_start} cycles per transfer, {self.tpu_start} per TPU instruction",
            "host functions take no time",
        )


class CycleTable:
    """Cycles of commands under a profile.

    Arguments that are `Count` or `Fact` are those of one command, or columns of those of many; so is what is returned.
    A command takes the product of its groups and its turns, and its start (`tpu`).
    """

    def __init__(self, profile: TimingProfile) -> None:
        self.profile = profile

    # -- TPU -----------------------------------------------------------------------------------------------------------
    @staticmethod
    def groups_of(images: Count, channels: Count, pixels: Count) -> Count:
        """How often a result of every unit of all lanes is made; with winograd `pixels` are its tiles."""
        return images * up(channels, CHIP.lanes) * up(pixels, CHIP.execution_units)

    def element_wise_turns(self, wide: Fact) -> Count:
        """Turns of element-wise commands; wide: whether an operand or the result has 16 bits."""
        return 1 + wide * (self.profile.wide_passes - 1)

    @staticmethod
    def winograd_turns(depth: Count) -> Count:
        """Turns of a convolution by transformed tiles; depth: input channels."""
        return _WINOGRAD_PRODUCTS * depth

    def tpu(self, groups: Count, turns: Count) -> Count:
        """A TPU command; turns: products that make a result (taps of a window, times input channels), or passes."""
        return groups * turns + self.profile.tpu_start

    # -- GDMA ----------------------------------------------------------------------------------------------------------
    def transfer(self, bus: Count, inside: Count = 0) -> Count:
        """A transfer of so many bytes over the bus, bursts and both directions counted, and inside local memory."""
        profile = self.profile
        moved = bus / profile.bus_bytes_per_cycle + inside * profile.clock_hz / profile.local_rate
        return whole(moved) + profile.gdma_start

    def local_copy(self, nbytes: Count) -> Count:
        """A transfer inside local memory."""
        return self.transfer(0, nbytes)

    def bursts(self, run: Count) -> Count:
        """Bytes that cross the bus for a run of consecutive bytes."""
        return up(run, self.profile.ddr_burst) * self.profile.ddr_burst


class TileCycles(LaneCycles):
    """What kernels ask of a table (`LaneCycles`): cycles of commands on tiles of bytes."""

    def __init__(self, table: CycleTable) -> None:
        self.table = table
        self.bytes_per_cycle = table.profile.bus_bytes_per_cycle
        self.tile_cycles = int(3 * table.transfer(0))
        self.bus = Bus()  # nothing is known of it

    def pass_cycles(
        self, shape: Dims, item: int = 1, steps: int = 1, pair: bool = False, in_place: bool = False
    ) -> int:
        """An element-wise command or a copy by the TPU; item: 2 where an operand or the result has 16 bits."""
        return self.product(shape, int(self.table.element_wise_turns(item > 1)) * steps)

    def window(self, shape: Dims, taps: tuple[int, int], stride: int, sums: bool, item: int = 1) -> int:
        return self.product(shape, taps[0] * taps[1])

    def convolution(self, shape: Dims, taps: int, depth: int, item: int = 1, stride: int = 1) -> int:
        return self.product(shape, taps * depth)

    def product(self, shape: Dims, turns: int) -> int:
        """A command that makes each result of so many products, or in so many passes."""
        n, c, h, w = shape
        return int(self.table.tpu(self.table.groups_of(n, c, h * w), turns))

    def local_copy(self, shape: Dims, item: int = 1) -> int:
        """Transfers inside local memory: one for each image (`Build.transfer`)."""
        images, *image = shape
        return images * int(self.table.local_copy(item * prod(image)))

    def load(self, runs: int, run: int) -> int:
        return int(self.table.transfer(runs * self.table.bursts(run)))

    def store(self, runs: int, run: int) -> int:
        return self.load(runs, run)

    def global_copy(self, runs: int, run: int) -> int:
        return self.load(runs, run)


PROFILE = TimingProfile()
