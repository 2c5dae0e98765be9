"""Geometry of sliding windows along one axis: which input a range of outputs needs, and the padding around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from bmcompiler.chip import MAX_PAD
from bmcompiler.codegen.tiling import Box
from bmcompiler.ops.layers.nn import Convolution
from bmcompiler.ops.layers.pool import Pool


class Need(NamedTuple):
    """Input rows [lo, hi) and the zeros before and after them that the engine must add."""

    lo: int
    hi: int
    before: int
    after: int


@dataclass(frozen=True)
class WindowAxis:
    """A window of `kernel` taps (`dilation` apart) moving by `stride` over an input of `size` elements.

    `insert` zeros stand between input elements (transposed convolution); `pad` zeros before the first. `limit` is the
    largest extent that the engine takes, for inputs (with inserted zeros: half of it) and outputs; `most_pad` is the
    largest padding on a side.
    """

    size: int
    kernel: int
    stride: int
    pad: int
    dilation: int = 1
    insert: int = 0
    limit: int = 1024
    most_pad: int = MAX_PAD

    def need(self, lo: int, hi: int) -> Need:
        """What the outputs [lo, hi) read."""
        first = lo * self.stride - self.pad
        last = (hi - 1) * self.stride - self.pad + self.dilation * (self.kernel - 1)
        step = self.insert + 1
        start = max(0, -(-first // step))
        stop = min(self.size - 1, last // step)
        return Need(start, stop + 1, start * step - first, last - stop * step)

    def whole(self, out: int) -> Need:
        """What all `out` outputs read, with the rows after them that no window reaches: the input as a whole."""
        need = self.need(0, out)
        complete = need.lo == 0 and need.after == 0 and self.insert == 0 and self.size - need.hi < self.stride
        return need._replace(hi=self.size) if complete else need

    def reaches(self, out: int) -> bool:
        """True when each of `out` outputs sees some input."""
        return _reaches(self, out)

    def fits(self, out: int) -> bool:
        """True when every output sees some input and all padding is possible."""
        whole = self.need(0, out)
        return self.reaches(out) and max(whole.before, whole.after) <= self.most_pad

    def most(self) -> int:
        """Largest output tile whose input stays within the engine's limit."""
        window = self.dilation * (self.kernel - 1) + 1
        inputs = self.limit if not self.insert else self.limit // 2
        return max(1, min(self.limit, (inputs - window) * (self.insert + 1) // self.stride + 1))


@lru_cache(4096)  # asked of every convolution at every step of a compilation
def _reaches(axis: WindowAxis, out: int) -> bool:
    ends = [axis.need(i, i + 1) for i in {*range(min(out, 64)), *range(max(0, out - 64), out)}]
    return all(n.lo < n.hi for n in ends)


class AxisSlide(NamedTuple):
    """What a box of results reads along h and along w."""

    rows: Need
    columns: Need

    def source(self, box: Box, channels: tuple[int, int]) -> Box:
        """The box of the input."""
        return box[0], channels, (self.rows.lo, self.rows.hi), (self.columns.lo, self.columns.hi)

    @property
    def pads(self) -> tuple[int, int, int, int]:
        """Zeros above, below, left and right of it."""
        return self.rows.before, self.rows.after, self.columns.before, self.columns.after


def slide(axes: Sequence[WindowAxis], box: Box) -> AxisSlide:
    """What `box` (n, c, h, w) of the results reads."""
    rows, columns = (axis.need(*interval) for axis, interval in zip(axes, box[2:]))
    return AxisSlide(rows, columns)


def window_axes(op: Convolution | Pool) -> tuple[WindowAxis, WindowAxis]:
    """The window of a conv or a pooling along h and along w."""
    (_, _, h, w), (sh, sw), (top, _, left, _) = op.operands[0].shape, op.strides, op.pads
    kh, kw = op.weight.shape[2:] if isinstance(op, Convolution) else op.kernel
    dh, dw = op.dilations if isinstance(op, Convolution) else op.taps()
    return WindowAxis(h, kh, sh, top, dh), WindowAxis(w, kw, sw, left, dw)
