"""Cycles of BM1684X commands: the one place that says them, for planners and for the simulator's timing model.

The figures are those of bm1684x.md 8, fitted to 1980 estimates of the vendor's compiler, times what the profile says of
chips; what was not sampled there follows the nearest kind of command that was, and is said in its `assumptions`.
"""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Precision, Sfu
from bmcompiler.backends.bm1684x.timing_profile import GROUP, MOST_STREAMS, PIXELS, TimingProfile
from bmcompiler.backends.lanes.counts import Count, Fact, either, floored, larger, smaller, up

SINGLE_PIXELS = 16
"""Results of one channel that a lane makes at once, of fp32."""
DIVIDE_STEPS, RSQRT_STEPS = 31, 30
_STRIDED_WINDOW = 3
_SORT_PASS = 128
RUN = 256
"""Bytes that every shorter run costs, too."""
STREAM_BYTES = 4096


class CycleTable:
    """Cycles of commands under a profile.

    Arguments that are `Count` or `Fact` are those of one command, or columns of those of many; so is what is returned.
    """

    def __init__(self, profile: TimingProfile) -> None:
        self.profile = profile
        hz = profile.clock_hz
        self._load, self._store, self._copy = profile.load_rate / hz, profile.store_rate / hz, profile.copy_rate / hz
        self._wide_load, self._wide_store = profile.wide_load_rate / hz, profile.wide_store_rate / hz
        self._transposed = profile.transposed * 1e-9 * hz

    # -- TIU -----------------------------------------------------------------------------------------------------------
    def convolution(
        self, images: Count, channels: Count, pixels: Count, taps: Count, depth: Count, kind: Count
    ) -> Count:
        """`kind`: precision of the input; `depth`: input channels; `taps`: of the window."""
        steps = images * up(channels, CHIP.lanes) * up(pixels, _pixels(kind)) * taps * up(depth, _group(kind))
        return floored(steps * self.slowness(taps, kind))

    def slowness(self, taps: Count, kind: Count) -> Count:
        """What a step of a convolution takes of cycles."""
        wide = kind == Precision.FP32
        points = either(wide, self.profile.point_fp32, self.profile.point_narrow)
        return either(taps > 1, either(wide, self.profile.window_fp32, 1.0), points)

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
        streams = smaller(larger(up(total, STREAM_BYTES), 1), MOST_STREAMS)
        rate = either(loads, either(stores, self._copy, self._load), self._store)
        bursts = total // larger(run, 1) * larger(run, RUN)
        across = bursts / (rate * streams)
        return floored(either(loads | stores, across, total / self._wide_load))

    def transposing(self, elements: Count) -> Count:
        """What a transfer takes beside the time of its bytes where it turns single elements."""
        return floored(elements * self._transposed)

    def wide(self, pieces: Count, size: Count, loads: Fact) -> Count:
        """Matrices, in pieces of a row of a section each, and broadcasts, which are one piece."""
        rate = either(loads, self._wide_load, self._wide_store)
        cycles = floored(pieces * (up(size, RUN) * RUN) / rate)
        return larger(cycles, self.profile.shortest)

    # -- the sort engine -----------------------------------------------------------------------------------------------
    def sort(self, length: Count, kept: Count, indexed: Fact) -> Count:
        """The first `kept` of `length` numbers, in order; indices double it.

        These are the times that the vendor's own test of the engine expects: 0.9 us for each pass, which finds 128
        results, and 1/8 ns for each number that is left.
        """
        passes = up(kept, _SORT_PASS)
        left = length * passes - _SORT_PASS // 2 * passes * passes
        cycle = self.profile.clock_hz * 1e-9
        return floored((900 * passes + left / 8) * (1 + indexed) * cycle)


_GROUPS = np.array([GROUP.get(Precision(code), 1) if code in list(Precision) else 1 for code in range(8)])


def _group(kind: Count) -> Count:
    return _GROUPS[kind] if isinstance(kind, np.ndarray) else int(_GROUPS[kind])


def _pixels(kind: Count) -> Count:
    return either(kind == Precision.FP32, SINGLE_PIXELS, PIXELS)
