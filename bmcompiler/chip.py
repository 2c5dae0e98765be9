"""Facts that every chip with lanes has, and how feature maps lie in its local memory."""

from __future__ import annotations

from dataclasses import dataclass

Dims = tuple[int, int, int, int]
"""Shape or strides (n, c, h, w)."""

MAX_PAD = 15
MAX_STEP = 15
"""Padding and steps of engines with fields of 4 bits (bm1880.md 4, bm1684.md 6.1); a chip may know others."""


@dataclass(frozen=True)
class LaneChip:
    """Local memory of `lanes` lanes of `lmem_size` bytes; a chip's own class adds what else is known of it.

    Channel c of a feature map lies in lane c mod `lanes`; the pixels of a channel are dense, and each channel begins at
    a multiple of `alignment` bytes.
    """

    name: str
    lanes: int
    lmem_size: int
    alignment: int

    @property
    def lmem_total(self) -> int:
        """Bytes of all lanes."""
        return self.lanes * self.lmem_size

    def strides(self, shape: Dims, item: int = 1) -> Dims:
        """Strides within a lane, in bytes, of a feature map of `item`-byte elements that begins in lane 0."""
        _, c, h, w = shape
        channel = align_up(h * w * item, self.alignment)
        return -(-c // self.lanes) * channel, channel, w * item, item

    def lane_bytes(self, shape: Dims, item: int = 1) -> int:
        """Bytes that the feature map takes in each lane."""
        return shape[0] * self.strides(shape, item)[0]


def align_up(value: int, step: int) -> int:
    """`value` rounded up to a multiple of `step`."""
    return -(-value // step) * step
