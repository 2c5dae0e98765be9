"""Cycles of BM1684X commands: the one place that says them, for planners and for the simulator's timing model.

The figures are those of bm1684x.md 8, fitted to 1980 estimates of the vendor's compiler; what was not sampled there
follows the nearest kind of command that was, and is said in `TimingProfile.assumptions`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from bmcompiler.analysis.figures import check_figures
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Precision, Sfu
from bmcompiler.backends.lanes.counts import Count, Fact, either, up

SINGLE_PIXELS, PIXELS = 16, 4
"""Results of one channel that a lane makes at once: of fp32, and of narrower types."""
GROUP = {Precision.FP32: 1, Precision.FP16: 32, Precision.BF16: 32, Precision.INT8: 64}
"""Input channels that are multiplied at once."""
DIVIDE_STEPS, RSQRT_STEPS = 31, 30
_STRIDED_WINDOW = 3
RUN = 256
"""Bytes that every shorter run costs, too."""
STREAM_BYTES, MOST_STREAMS = 4096, 4


@dataclass(frozen=True)
class TimingProfile:
    """Parameters of the model.

    Attributes:
        clock_hz: of both engines in the vendor's profiler.
        load_rate, store_rate: bytes per second of strided tensors, of each of up to four streams.
        wide_load_rate, wide_store_rate: bytes per second of matrices and broadcasts.
        copy_rate: bytes per second of copies outside of local memory, of each stream.
        shortest: cycles of the shortest matrix transfer or broadcast.
    """

    clock_hz: float = CHIP.clock_hz
    load_rate: float = 13.51e9
    store_rate: float = 10.245e9
    wide_load_rate: float = 58e9
    wide_store_rate: float = 44e9
    copy_rate: float = 6.5e9
    shortest: int = 22

    def __post_init__(self) -> None:
        check_figures(self)

    @property
    def bus_bytes_per_cycle(self) -> float:
        """The fastest transfers: streams of strided tensors, or matrices."""
        wide = max(self.wide_load_rate, self.wide_store_rate) / self.clock_hz
        return max(self.strided_bytes_per_cycle, self.store_rate / self.clock_hz * MOST_STREAMS, wide)

    @property
    def strided_bytes_per_cycle(self) -> float:
        """Strided loads at their best, in which plans count bytes."""
        return self.load_rate / self.clock_hz * MOST_STREAMS

    def assumptions(self) -> tuple[str, ...]:
        """The parameters, and what was not sampled, in words."""
        rates = {
            one.name: getattr(self, one.name) / self.clock_hz for one in fields(self) if one.name.endswith("_rate")
        }
        return (
            f"both engines at {self.clock_hz / 1e6:g} MHz; estimates of the vendor's compiler, not measured on a chip",
            f"GDMA {rates['load_rate']:g} (loads) or {rates['store_rate']:g} (stores) bytes per cycle in each of up to "
            f"{MOST_STREAMS} streams of {STREAM_BYTES} bytes; a shorter run costs {RUN} bytes",
            f"matrices and broadcasts {rates['wide_load_rate']:g} or {rates['wide_store_rate']:g} bytes per cycle, "
            f"at least {self.shortest} cycles",
            f"copies outside of local memory {rates['copy_rate']:g} bytes per cycle and stream: rough, "
            "short ones take up to four times as long",
            "operands and results of element-wise commands in one bank take twice as long, of others nothing more",
            "not sampled: int16 and int32 matrix products like fp32, linear and vector commands like arithmetic, "
            "copies inside local memory like matrices, gathers and scatters of GDMA like tensors of so many rows",
            "host functions take no time",
        )


class CycleTable:
    """Cycles of commands under a profile.

    Arguments that are `Count` or `Fact` are those of one command, or columns of those of many; so is what is returned.
    """

    def __init__(self, profile: TimingProfile) -> None:
        self.profile = profile
        hz = profile.clock_hz
        self._load, self._store, self._copy = profile.load_rate / hz, profile.store_rate / hz, profile.copy_rate / hz
        self._wide_load, self._wide_store = profile.wide_load_rate / hz, profile.wide_store_rate / hz

    # -- TIU -----------------------------------------------------------------------------------------------------------
    @staticmethod
    def convolution(images: Count, channels: Count, pixels: Count, taps: Count, depth: Count, kind: Count) -> Count:
        """`kind`: precision of the input; `depth`: input channels; `taps`: of the window."""
        return images * up(channels, CHIP.lanes) * up(pixels, _pixels(kind)) * taps * up(depth, _group(kind))

    @staticmethod
    def matrix(rows: Count, depth: Count, sections: Count, width: Count, biased: Fact) -> Count:
        """A product whose columns lie in sections of so many columns."""
        return rows * (depth + biased) * up(width, SINGLE_PIXELS) * up(sections, CHIP.lanes)

    @staticmethod
    def row_matrix(rows: Count, depth: Count, columns: Count, kind: Count) -> Count:
        """A product with a row per lane."""
        return up(depth, _group(kind)) * up(columns, PIXELS) * up(rows, CHIP.lanes)

    @staticmethod
    def vectors(images: Count, channels: Count, pixels: Count, item: Count) -> Count:
        """Vectors of 64 bytes that a lane makes; `item`: bytes of the widest operand or result."""
        return images * up(channels, CHIP.lanes) * up(pixels * item, CHIP.alignment)

    @staticmethod
    def window(vectors: Count, taps: Count, step: Count) -> Count:
        """Pooling and depthwise convolution; `step`: of the window along w."""
        return vectors * taps * either(step > 1, _STRIDED_WINDOW, 1)

    @staticmethod
    def element_wise(vectors: Count, shared: Fact) -> Count:
        """Arithmetic, casts, requantization, comparisons; `shared`: operands or results lie in one bank."""
        return vectors * either(shared, 2, 1)

    @staticmethod
    def special(vectors: Count, unit: Count, terms: Count) -> Count:
        """Series, roots and exponents."""
        return vectors * either(unit == Sfu.RSQRT, RSQRT_STEPS, either(unit == Sfu.NORMALIZE, 1, terms))

    @staticmethod
    def gather(images: Count, channels: Count, indices: Count) -> Count:
        """Lookups within lanes, one index after the other, and one row of lanes after the other."""
        return images * up(channels, CHIP.lanes) * indices

    # -- GDMA ----------------------------------------------------------------------------------------------------------
    def tensor(self, total: Count, run: Count, loads: Fact, stores: Fact) -> Count:
        """`total` bytes in runs of `run` consecutive ones of a lane outside of local memory; neither: inside of it."""
        streams = np.clip(up(total, STREAM_BYTES), 1, MOST_STREAMS)
        rate = either(loads, either(stores, self._copy, self._load), self._store)
        bursts = total // np.maximum(run, 1) * np.maximum(run, RUN)
        across = bursts / (rate * streams)
        return np.floor(either(loads | stores, across, total / self._wide_load)).astype(np.int64)

    def wide(self, pieces: Count, size: Count, loads: Fact) -> Count:
        """Matrices, in pieces of a row of a section each, and broadcasts, which are one piece."""
        rate = either(loads, self._wide_load, self._wide_store)
        cycles = np.floor(pieces * (up(size, RUN) * RUN) / rate).astype(np.int64)
        return np.maximum(cycles, self.profile.shortest)


_GROUPS = np.array([GROUP.get(Precision(code), 1) if code in list(Precision) else 1 for code in range(8)])


def _group(kind: Count) -> Count:
    return _GROUPS[kind]


def _pixels(kind: Count) -> Count:
    return either(np.asarray(kind) == Precision.FP32, SINGLE_PIXELS, PIXELS)


PROFILE = TimingProfile()
