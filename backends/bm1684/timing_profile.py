"""Parameters of the BM1684's timing model, each with what is known of it, in two profiles.

`SILICON`, the default, agrees with kernels of fp32 timed on real chips (bm1684-timing.md); `VENDOR` holds the figures
of the vendor's own estimates (bm1684.md 12), which are 1.84x too fast at the median of the same kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bmcompiler.analysis.standing import NamedProfile, Standing, known
from bmcompiler.backends.bm1684.chip import CHIP


@dataclass(frozen=True)
class TimingProfile(NamedProfile):
    """Cycles are those of the TIU clock; a group is 16 results of one channel in each lane.

    Every field says in its metadata what it means, and how its value in `SILICON` is known.
    """

    clock_hz: float = known(CHIP.tiu_hz, "clock of the TIU", Standing.SURE, positive=True)
    start: float = known(110, "cycles before a TIU command computes (0.2 us)", Standing.STABLE)
    conv_tap: float = known(7.1, "cycles of a kernel position beside its channels, per group", Standing.SURE)
    conv_step: float = known(1, "cycles of a kernel position for each column of stride above 1", Standing.SURE)
    conv_start: float = known(1, "cycles of a group of a convolution beside its positions", Standing.SURE)
    conv_start_int8: float = known(1, "the same for int8", Standing.ASSUMED)
    conv_tap_int8: float = known(7.1, "conv_tap for int8", Standing.ASSUMED)
    conv_old: float = known(7.4, "cycles of a group that adds the old result", Standing.STABLE)
    conv_bank: float = known(0.92, "channels cost 1 + this where input and weights share a bank", Standing.WEAK)
    matrix_step: float = known(2.12, "cycles of two terms of a matrix product (four of int8: assumed)", Standing.SURE)
    matrix_start: float = known(7.6, "cycles of a group of a row of a matrix product", Standing.STABLE)
    matrix_start_int8: float = known(7.6, "the same for int8", Standing.ASSUMED)
    window_tap: float = known(0.9, "cycles of a position of a window of one channel, per group", Standing.WEAK)
    window_step: float = known(3.3, "more for each column of stride above 1", Standing.WEAK)
    window_start: float = known(25, "cycles of a group of sums of windows", Standing.WEAK)
    window_start_max: float = known(25, "the same for maxima", Standing.ASSUMED)
    arithmetic: float = known(2, "cycles of a step of arithmetic on 16 words", Standing.STABLE)
    arithmetic_pair: float = known(5.8, "the same with two tensors as operands", Standing.WEAK)
    load_rate: float = known(27.2e9, "bytes per second from global to local memory", Standing.SURE, positive=True)
    store_rate: float = known(25.2e9, "bytes per second from local to global memory", Standing.SURE, positive=True)
    load_start: float = known(500, "nanoseconds before the first byte of a load", Standing.WEAK)
    store_start: float = known(500, "nanoseconds before the first byte of another transfer", Standing.WEAK)
    load_lane_run: int = known(98, "bytes that a run of words in a lane takes at least in loads", Standing.STABLE)
    load_run: int = known(1061, "bytes that a run in global memory takes at least in loads", Standing.WEAK)
    store_lane_run: int = known(64, "bytes that a run of words in a lane takes at least in stores", Standing.WEAK)
    store_run: int = known(64, "the same in stores, and in copies inside global memory", Standing.ASSUMED)
    matrix_pitch: float = known(1.9, "bytes of matrices count so if rows are no multiples of 64 bytes", Standing.SURE)
    ddr_burst: int = known(1, "bytes to which runs in global memory are rounded up", Standing.ASSUMED, positive=True)
    vendor_samples: int = known(0, "1: kernel positions of few channels, rows of windows as sampled", Standing.ASSUMED)

    @property
    def bus_bytes_per_cycle(self) -> float:
        """Loads at their best."""
        return self.load_rate / self.clock_hz

    def assumptions(self) -> tuple[str, ...]:
        """Name of the profile, what it was validated on, and the parameters by their standing, in words."""
        title, *values = self.told()
        clock = f"clock {self.clock_hz / 1e6:g} MHz"
        return title, clock, *values, "launching a program and host functions take no time"


SILICON = TimingProfile()
VENDOR = replace(
    SILICON,
    start=0,
    conv_tap=0,
    conv_step=0,
    conv_start=5,
    conv_start_int8=10,
    conv_tap_int8=0,
    conv_old=0,
    conv_bank=0,
    matrix_step=1,
    matrix_start=5,
    matrix_start_int8=10,
    window_tap=2,
    window_step=1,
    window_start=5,
    window_start_max=0,
    arithmetic_pair=2,
    load_rate=53.4 * CHIP.gdma_hz,
    store_rate=53.4 * CHIP.gdma_hz,
    load_start=137 / CHIP.gdma_hz * 1e9,
    store_start=45 / CHIP.gdma_hz * 1e9,
    load_lane_run=0,
    load_run=0,
    store_lane_run=0,
    store_run=0,
    matrix_pitch=1,
    ddr_burst=64,
    vendor_samples=1,
)
TimingProfile.NAMED = {"silicon": SILICON, "vendor": VENDOR}
TimingProfile.EVIDENCE = {
    "silicon": "validated on 24 kernels of fp32 launched by hand (benchmarks/silicon.py); int8 was never timed",
    "vendor": "the vendor's estimates, 1.84x too fast at the median on silicon",
}
PROFILE = SILICON
"""What is planned and reported with unless another one is given."""
