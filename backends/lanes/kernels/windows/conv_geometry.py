"""Geometry of convolutions, transposed ones included: channels, groups, windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.lanes.build import Frame, LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import dims4, is_constant, item_bytes
from bmcompiler.backends.lanes.kernels.windows.folded_load import FoldedLoad
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide, SlidingKernel, Windows
from bmcompiler.chip import align_up
from bmcompiler.codegen.build import dense_strides
from bmcompiler.codegen.tiling import Apart, Axis, Buffer, Runs
from bmcompiler.codegen.window import WindowAxis
from bmcompiler.ops.layers.nn import Convolution
from bmcompiler.target import rule


class SeenRows(NamedTuple):
    """Neighbouring rows of a window and the output rows for which they see input.

    Attributes:
        tap, taps: the first row of the window, and how many. y0, y1: the output rows [y0, y1).
        first: the input row that row `tap` sees at y0; the next row of the window sees the one a dilation further.
    """

    tap: int
    taps: int
    y0: int
    y1: int
    first: int


class ConvGeometry(SlidingKernel[Convolution]):
    """Channels of a group are tiled by lanes, rows and columns with halo.

    Every tile sums over all input channels, so results do not depend on the tiling.
    """

    @rule("Weights and bias must be constants")
    def constant_weights(self, op: Convolution) -> bool:
        return is_constant(op.weight) and is_constant(op.bias)

    @rule("A group must have at most {kernel.chip.most_depth} input channels")
    def channel_range(self, op: Convolution) -> bool:
        return self.depth(op) <= self.chip.most_depth

    # -- geometry ------------------------------------------------------------------------------------------------------
    def windows(self, op: Convolution) -> Windows:
        (_, _, h, w), (kh, kw) = op.input.shape, op.weight.shape[2:]
        (sh, sw), (dh, dw), (top, _, left, _) = op.strides, op.dilations, op.pads
        across = WindowAxis(w, kw, sw, left, dw, limit=self.chip.most_size)
        if self.folds_rows(op):
            return WindowAxis(op.type.shape[2], 1, 1, 0, limit=self.chip.most_size), across
        return WindowAxis(h, kh, sh, top, dh, limit=self.chip.most_size), across

    def taps(self, op: Convolution) -> tuple[int, int]:
        _, _, down, across = op.weight.shape
        return (1 if self.folds_rows(op) else down), across

    def dilations(self, op: Convolution) -> tuple[int, int]:
        down, across = op.dilations
        return (1 if self.folds_rows(op) else down), across

    def depth(self, op: Convolution) -> int:
        """Input channels of a group, those of all rows of the window where they are folded."""
        channels = int(op.input.shape[1] // op.group)
        return channels * op.weight.shape[2] if self.folds_rows(op) else channels

    def folds_rows(self, op: Convolution) -> bool:
        """Whether the rows of the window become input channels.

        Then channel r * C + c of row y is channel c of the input row that tap r of output row y sees.

        Few input channels leave most of the multipliers idle (`LaneFacts.idle_depths`); steps beyond the fields need
        it to have more than one row in a tile.
        """
        x, weight, *_ = op.operands  # not by name: a search of tilings asks thousands of times
        channels, rows = x.shape[1], weight.shape[2]
        if rows == 1 or op.group > 1 or channels * rows > self.chip.most_depth:
            return False
        return op.strides[0] > self.chip.most_step or channels in self.chip.idle_depths.get(item_bytes(x), ())

    def oriented(self, op: Convolution, weight: np.ndarray) -> np.ndarray:
        """The weights of `op` as (O, depth, rows, columns) of an ordinary convolution."""
        if not self.folds_rows(op):
            return weight
        o, i, down, across = weight.shape
        return weight.transpose(0, 2, 1, 3).reshape(o, down * i, 1, across)

    def oriented_input(self, op: Convolution, x: np.ndarray) -> np.ndarray:
        """The input as the command sees it: with folded rows, zeros where a tap sees none."""
        if not self.folds_rows(op):
            return x
        n, c, _, w = x.shape
        taps = op.weight.shape[2]
        out = np.zeros((n, taps, c, op.type.shape[2], w), x.dtype)
        for tap in range(taps):
            y0, y1, first = self._rows_seen(op, tap, (0, op.type.shape[2]))
            out[:, tap, :, y0:y1] = x[:, :, first :: op.strides[0]][:, :, : y1 - y0]
        return out.reshape(n, taps * c, op.type.shape[2], w)

    def _rows_seen(self, op: Convolution, tap: int, rows: tuple[int, int]) -> tuple[int, int, int]:
        """(y0, y1, input row of y0): the output rows among `rows` for which row `tap` of the window sees input."""
        stride, start = op.strides[0], tap * op.dilations[0] - op.pads[0]
        y0 = max(rows[0], -(start // stride))
        y1 = min(rows[1], (op.input.shape[2] - 1 - start) // stride + 1)
        return y0, max(y0, y1), y0 * stride + start

    def unloaded(self, op: Convolution, slide: Slide) -> Frame:
        rows, (top, bottom, left, right) = slide.source[2], slide.frame
        for y0, y1, _ in self.all_rows_seen(op, rows):
            top, bottom = max(top, y0 - rows[0]), max(bottom, rows[1] - y1)
        return top, bottom, left, right

    def all_rows_seen(self, op: Convolution, rows: tuple[int, int]) -> list[tuple[int, int, int]]:
        """`_rows_seen` of all folded rows of the window."""
        return [self._rows_seen(op, tap, rows) for tap in range(op.weight.shape[2])] if self.folds_rows(op) else []

    def seen_alike(self, op: Convolution, rows: tuple[int, int], *, joined: bool) -> list[SeenRows]:
        """What the folded rows of the window see among the output rows `rows`; those that see nothing are left out.

        joined: neighbours that see input for the same output rows are one.
        """
        found: list[SeenRows] = []
        for tap, (y0, y1, first) in enumerate(self.all_rows_seen(op, rows)):
            if y0 == y1:
                continue
            last = found[-1] if joined and found else None
            if last is not None and (last.y0, last.y1, last.tap + last.taps) == (y0, y1, tap):
                found[-1] = last._replace(taps=last.taps + 1)
            else:
                found.append(SeenRows(tap, 1, y0, y1, first))
        return found

    def input_buffer(self, op: Convolution, slides: Sequence[Slide], axes: str = "nchw") -> Buffer:
        """With folded rows, what is in local memory is no box of the input."""
        buffer = super().input_buffer(op, slides, axes)
        if not self.folds_rows(op):
            return buffer
        behind, runs = FoldedLoad(self.machine, op, slides, self.border(op)), self._load_runs(op, slides)
        cycles = sum(number * self.machine.cycles.load(count, run) for number, count, run in runs)
        if behind.fits and behind.cycles < cycles:
            return behind.buffer(axes)
        outer = sum(number * count for number, count, _ in runs)
        return replace(buffer, contents=None, loads=self._loads(op, slides[0]), runs=Runs(outer))

    def _load_runs(self, op: Convolution, slides: Sequence[Slide]) -> list[tuple[int, int, int]]:
        """(transfers alike, runs of consecutive bytes of each, bytes of a run) of `load_slide` with folded rows."""
        item, found = item_bytes(op.input), []
        for (images, _, rows, (left, right)), *_ in slides:
            count, width = images[1] - images[0], right - left
            slots = min(count, self.chip.image_slots(item))
            dense = op.strides[0] == 1 and width == op.input.shape[3]
            for _, taps, y0, y1, _ in self.seen_alike(op, rows, joined=op.input.shape[1] == 1):
                maps = -(-count // slots) * taps * op.input.shape[1]
                found.append(
                    (slots, maps, (y1 - y0) * width * item) if dense else (slots, maps * (y1 - y0), width * item)
                )
        return found

    def _loads(self, op: Convolution, slide: Slide) -> int:
        """Transfers of `load_slide`."""
        return len(self.seen_alike(op, slide.source[2], joined=op.input.shape[1] == 1))

    def load_slide(self, op: Convolution, build: LaneBuild, slide: Slide, address: int) -> None:
        """Folded rows are loaded tap by tap, all that see as much at once where the input has one channel."""
        if not self.folds_rows(op):
            super().load_slide(op, build, slide, address)
            return
        item, (n, c, h, w) = item_bytes(op.input), dense_strides(dims4(op.input))
        images, _, rows, columns = slide.source
        taps, channels = op.weight.shape[2], op.input.shape[1]
        for tap, count, y0, y1, first in self.seen_alike(op, rows, joined=channels == 1):
            start = images[0] * n + first * h + columns[0] * w
            dims = (images[1] - images[0], count * channels, y1 - y0, columns[1] - columns[0])
            frame = (y0 - rows[0], rows[1] - y1, *slide.frame[2:])
            beside = (tap * channels, (taps - count - tap) * channels)
            by = (n, c if channels > 1 else op.dilations[0] * h, op.strides[0] * h, w)
            build.load(build.source(op.input) + start * item, dims, by, item, address, frame, beside)

    @staticmethod
    def is_depthwise(op: Convolution) -> bool:
        """Whether each output channel reads one input channel of its own."""
        return bool(op.group == op.input.shape[1] == op.type.shape[1] > 1)

    def grid(self, op: Convolution) -> tuple[Axis, ...]:
        n, c = op.type.shape[:2]
        period = 0 if self.is_depthwise(op) else c // op.group
        chip, images = self.chip, self.chip.image_slots(item_bytes(op.input))
        channels = Axis(c, chip.lanes, chip.most_channels, period=period)
        return Axis(n, images, chip.most_images), channels, *self.spatial_axes(op)

    def sum_cycles(self, op: Convolution, shape: Shape, slide: Slide, item: int) -> int:
        """Cycles of the command that sums, for results of `shape` from elements of `item` bytes."""
        cycles, (down, across) = self.machine.cycles, self.taps(op)
        if self.is_depthwise(op):
            return cycles.window(shape, (down, across), slide.geometry.steps[1], sums=True, item=item)
        return cycles.convolution(shape, down * across, self.depth(op), item, slide.geometry.steps[1])

    def apart(self, op: Convolution, shape: Shape, item: int, weights: int = 1) -> tuple[Apart, ...]:
        """Input 0 of a tile and the `weights` after it, if they should lie in different banks."""
        if self.is_depthwise(op):
            return ()
        cycles = self.machine.cycles.shared_bank(shape, prod(self.taps(op)), self.depth(op), item)
        return tuple(Apart(0, number, cycles) for number in range(1, 1 + weights)) if cycles else ()

    def channels(self, op: Convolution, c0: int, c1: int) -> tuple[int, int]:
        """Input channels of the output channels [c0, c1) of one group."""
        if self.is_depthwise(op):
            return c0, c1
        per_group = self.depth(op)
        group = c0 // (op.type.shape[1] // op.group)
        return group * per_group, (group + 1) * per_group


class DeconvGeometry(ConvGeometry):
    """A convolution with flipped kernels over the input with stride - 1 zeros inserted."""

    @rule("Strides must be between 1 and {kernel.most_distance} on both axes", got="strides")
    def stride_range(self, op: Convolution) -> bool:
        return all(1 <= s <= self.most_distance for s in op.strides)

    @rule("Each pad must be below the (dilated) kernel size", got="pads")
    def crop_range(self, op: Convolution) -> bool:
        top, _, left, _ = op.pads
        (kh, kw), (dh, dw) = op.weight.shape[2:], op.dilations
        return bool(top <= dh * (kh - 1) and left <= dw * (kw - 1))

    def folds_rows(self, op: Convolution) -> bool:
        return False

    def windows(self, op: Convolution) -> Windows:
        (_, _, h, w), (kh, kw) = op.input.shape, op.weight.shape[2:]
        (sh, sw), (dh, dw), (top, _, left, _) = op.strides, op.dilations, op.pads
        return (
            WindowAxis(h, kh, 1, dh * (kh - 1) - top, dh, sh - 1, self.chip.most_size),
            WindowAxis(w, kw, 1, dw * (kw - 1) - left, dw, sw - 1, self.chip.most_size),
        )

    def oriented(self, op: Convolution, weight: np.ndarray) -> np.ndarray:
        i, o, kh, kw = weight.shape
        grouped = weight.reshape(op.group, i // op.group, o, kh, kw).swapaxes(1, 2)
        return grouped.reshape(op.group * o, i // op.group, kh, kw)[:, :, ::-1, ::-1]


def runs_of(depth: int, taps: int, group: int) -> tuple[int, int]:
    """(length, distance) of runs of weights between which groups of input channels are not full; (0, 0) without any.

    Groups lie one after the other, each with all taps of the window: only those of one group, or of one tap, are alike.
    """
    distance = align_up(depth, group) if taps == 1 else group
    return (depth, distance) if depth < distance else (0, 0)


def channel_groups(weight: np.ndarray, size: int) -> np.ndarray:
    """(O, I, KH, KW) -> (O, KH * KW, I rounded up to a multiple of `size`)."""
    o, i, kh, kw = weight.shape
    out = np.zeros((o, kh * kw, align_up(i, size)), weight.dtype)
    out[:, :, :i] = weight.reshape(o, i, -1).transpose(0, 2, 1)
    return out
