"""Default layouts of tensors and matrices in local memory (bm1684.md 4): strides when no stride register is used."""

from __future__ import annotations

from bmcompiler.backends.bm1684.chip import CHIP, align_up
from bmcompiler.codegen.build import dense_strides as global_strides

__all__ = ["Shape", "Strides", "aligned_strides", "channel_rows", "compact_strides", "global_strides", "pixel_strides"]

Shape = tuple[int, int, int, int]
Strides = tuple[int, int, int, int]


def channel_rows(lane: int, channels: int) -> int:
    """Rows of channels in each lane when channel 0 is in `lane` (bm1684.md 4)."""
    return -(-(lane + channels) // CHIP.lanes)


def aligned_strides(shape: Shape, lane: int = 0, item: int = 4) -> Strides:
    """Strides (n, c, h, w), in elements of `item` bytes, of a feature map: channels start at multiples of 128 bytes.

    4N and 2N maps are the words they consist of: `shape[0]` counts word-images and `item` is 4 (bm1684.md 4.2).
    """
    _, channels, height, width = shape
    channel = align_up(height * width, CHIP.alignment // item)
    return (channel_rows(lane, channels) * channel, channel, width, 1)


def compact_strides(shape: Shape, lane: int = 0) -> Strides:
    """Strides (n, c, h, w), in elements, of weights, biases and per-channel vectors: no gaps between channels."""
    _, channels, height, width = shape
    return (channel_rows(lane, channels) * height * width, height * width, width, 1)


def pixel_strides(shape: Shape, lane: int = 0) -> Strides:
    """Strides (n, c, h, w), in bytes, of int16 results of convolutions: 8 bytes a pixel (bm1684.md 4.2).

    `shape[0]` counts groups of four images; image 4 * i + k is the halfword k of the pixels of group i.
    """
    return tuple(8 * stride for stride in aligned_strides(shape, lane))  # type: ignore[return-value]
