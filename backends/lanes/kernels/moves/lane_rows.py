"""Bands of bytes whose rows lie in lanes, as they are made of floats, until windows are folded from them."""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import LaneFacts, Shape
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.codegen.build import dense_strides
from bmcompiler.codegen.tiling import Buffer, Contents, Runs
from bmcompiler.ir import Value
from bmcompiler.ops.places.bands import QuantizeBands


class LaneRows(NamedTuple):
    """Bands (N, C, H, W) that share words, `step` rows of all channels in a lane.

    Lane j has the rows from j * step on; row p of those of channel c is row p * C + c of its words.
    """

    shape: Shape
    step: int

    @property
    def words(self) -> Shape:
        """As a map of words."""
        _, channels, height, width = self.shape
        return 1, -(-height // self.step), self.step * channels, width

    def contents(self, value: Value) -> Contents:
        """What a buffer holds."""
        return Contents(value, ("rows in lanes", self.step))

    @property
    def runs(self) -> Runs:
        """In which the bytes move."""
        bands, channels, height, _ = self.shape
        return Runs(bands * channels * height, bands * channels * height)

    def buffer(self, chip: LaneFacts, value: Value) -> Buffer:
        """To load what global memory has."""

        def load(build: LaneBuild, address: int) -> None:
            (bands, channels, height, width), (_, lanes, rows, _) = self.shape, self.words
            band, channel, row, _ = dense_strides(self.shape)
            for phase in range(min(self.step, height)):
                count = -(-(height - phase) // self.step)
                for number in range(channels):
                    start = build.source(value) + number * channel + phase * row
                    above = phase * channels + number
                    frame, beside = (above, rows - 1 - above, 0, 0), (0, lanes - count)
                    shape = bands, count, 1, width
                    build.load(start, shape, (band, self.step * row, row, 1), 1, address, frame, beside)

        loads = min(self.step, self.shape[2]) * self.shape[0] * self.shape[1]
        contents = self.contents(value)
        size = chip.aligned_bytes(self.words)
        return Buffer(size, "nchw", value.type.nbytes, load, contents=contents, runs=self.runs, loads=loads)


def lane_rows(value: Value) -> LaneRows | None:
    """How the rows of a value lie in lanes, None where channels do."""
    return LaneRows(dims4(value), value.op.stride) if isinstance(value.op, QuantizeBands) else None
