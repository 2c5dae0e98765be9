"""Default layouts of tensors and matrices in local memory (bm1684.md 4): strides when no stride register is used."""

from __future__ import annotations

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.codegen.build import dense_strides as global_strides

__all__ = ["Shape", "Strides", "aligned_strides", "channel_rows", "compact_strides", "global_strides", "pixel_strides"]

channel_rows, aligned_strides, compact_strides = CHIP.channel_rows, CHIP.aligned_strides, CHIP.compact_strides


def pixel_strides(shape: Shape, lane: int = 0) -> Strides:
    """Strides (n, c, h, w), in bytes, of int16 results of convolutions: 8 bytes a pixel (bm1684.md 4.2).

    `shape[0]` counts groups of four images; image 4 * i + k is the halfword k of the pixels of group i.
    """
    return tuple(8 * stride for stride in aligned_strides(shape, lane))  # type: ignore[return-value]
