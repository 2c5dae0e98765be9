"""Parameters of the BM1684X's timing model, each with what is known of it, in two profiles.

`VENDOR`, the default, holds the figures of the vendor's own estimates (bm1684x.md 8): boards take 1.19 times as long in
int8, 1.16 in 16-bit floats and 1.65 in fp32, at the median of networks that others timed. `SILICON` agrees with those
times (bm1684x-timing.md 2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bmcompiler.analysis.standing import NamedProfile, Standing, known
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Precision

MOST_STREAMS = 4
PIXELS = 4
"""Results of one channel that a lane makes at once, of types narrower than fp32."""
GROUP = {Precision.FP32: 1, Precision.FP16: 32, Precision.BF16: 32, Precision.INT8: 64}
"""Input channels that are multiplied at once."""


@dataclass(frozen=True)
class TimingProfile(NamedProfile):
    """Cycles are those of both engines. Every field says what it means, and how its value in `SILICON` is known."""

    clock_hz: float = known(CHIP.clock_hz, "clock of both engines", Standing.STABLE, positive=True)
    load_rate: float = known(
        13.51e9, "bytes per second of strided loads, of each of up to four streams", Standing.STABLE, positive=True
    )
    store_rate: float = known(10.245e9, "the same of strided stores", Standing.STABLE, positive=True)
    wide_load_rate: float = known(
        58e9, "bytes per second that matrices and broadcasts are loaded with", Standing.ASSUMED, positive=True
    )
    wide_store_rate: float = known(44e9, "bytes per second of matrices stored", Standing.ASSUMED, positive=True)
    copy_rate: float = known(
        6.5e9, "bytes per second of copies outside of local memory, of each stream", Standing.ASSUMED, positive=True
    )
    shortest: int = known(22, "cycles of the shortest matrix transfer or broadcast", Standing.ASSUMED, positive=True)
    window_fp32: float = known(1, "cycles of a step of a convolution of fp32", Standing.SURE, positive=True)
    point_fp32: float = known(1, "the same where its window is 1x1", Standing.STABLE, positive=True)
    point_narrow: float = known(1, "the same of bytes and 16-bit floats", Standing.WEAK, positive=True)
    transposed: float = known(0, "nanoseconds of an element that a transfer transposes", Standing.STABLE)
    launch: float = known(0, "nanoseconds of a repeated launch, which no layer's time holds", Standing.STABLE)

    @property
    def bus_bytes_per_cycle(self) -> float:
        """The fastest transfers: streams of strided tensors, or matrices."""
        wide = max(self.wide_load_rate, self.wide_store_rate) / self.clock_hz
        return max(self.strided_bytes_per_cycle, self.store_rate / self.clock_hz * MOST_STREAMS, wide)

    @property
    def half_products(self) -> int:
        """Products of 16-bit floats in a cycle, all multipliers at work (bm1684x.md 8)."""
        return CHIP.lanes * GROUP[Precision.FP16] * PIXELS

    @property
    def strided_bytes_per_cycle(self) -> float:
        """Strided loads at their best, in which plans count bytes."""
        return self.load_rate / self.clock_hz * MOST_STREAMS

    def assumptions(self) -> tuple[str, ...]:
        """Name of the profile, its parameters by their standing, and what was not sampled, in words."""
        title, *values = self.told()
        loads, stores = self.load_rate / self.clock_hz, self.store_rate / self.clock_hz
        return (
            title,
            f"both engines at {self.clock_hz / 1e6:g} MHz; GDMA {loads:g} (loads) or {stores:g} (stores) "
            f"bytes per cycle in each of up to {MOST_STREAMS} streams; a run below 256 bytes costs 256",
            *values,
            "copies outside of local memory: rough, short ones take up to four times as long",
            "operands and results of element-wise commands in one bank take twice as long, of others nothing more",
            "not sampled: int16 and int32 matrix products like fp32, linear and vector commands like arithmetic, "
            "copies inside local memory like matrices, gathers and scatters of GDMA like tensors of so many rows",
            "host functions take no time",
        )


VENDOR = TimingProfile()
_CLOCK = 0.95
"""Of the vendor's: 950 MHz, or 1 GHz with 5 % lost, explain the times equally well; bytes per cycle stay."""
SILICON = replace(
    VENDOR,
    **{name: getattr(VENDOR, name) * _CLOCK for name in VENDOR.__dataclass_fields__ if name.endswith(("_hz", "_rate"))},
    window_fp32=1.78,
    point_fp32=1.48,
    point_narrow=1.3,
    transposed=0.66,
    launch=44_000,
)
TimingProfile.NAMED = {"vendor": VENDOR, "silicon": SILICON}
TimingProfile.EVIDENCE = {
    "vendor": "estimates of the vendor's compiler, not measured on a chip",
    "silicon": "fitted to times of whole networks that others published (benchmarks/silicon.py --chip bm1684x): sure "
    "for convolutions of fp32, weak for 16-bit floats",
}
PROFILE = VENDOR
"""What is planned and reported with unless another one is given."""
