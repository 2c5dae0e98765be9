"""Facts of the BM1880 (bm1880.md 1, 3, 9): sizes in bytes unless a name says otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.backends.lanes.facts import LaneFacts
from bmcompiler.chip import MAX_PAD, MAX_STEP, align_up
from bmcompiler.codegen.strided_copy import CopyLimits

__all__ = ["CHIP", "COPY_LIMITS", "Bm1880Chip", "align_up"]


COPY_LIMITS = CopyLimits(extent=65535, w_source=(1, 1), w_target=(1, 1), h=65535)
"""Commands inside global memory: w is contiguous, h strides have 16 bits (bm1880.md 5)."""


@dataclass(frozen=True)
class Bm1880Chip(LaneFacts):
    """Geometry and address map; one instance, `CHIP`, describes the chip."""

    name: str = "bm1880"
    version: int = 1880
    lanes: int = 32
    execution_units: int = 16
    lmem_size: int = 65536  # per lane
    lmem_banks: int = 8
    lmem_bank_size: int = 8192
    alignment: int = 16  # bytes in a lane of aligned tensors and channel strides
    word: int = 1  # every byte stands for itself
    most_images: int = 4095  # sizes of tensors in instructions: n and c 12 bits, h and w at most 1024 (bm1880.md 8.3)
    most_channels: int = 4095 // 32 * 32
    most_size: int = 1024
    most_depth: int = 4095
    most_pad: int = MAX_PAD
    most_step: int = MAX_STEP
    copy_limits: CopyLimits = COPY_LIMITS
    global_base: int = 0x1_0000_0000  # offset of global memory in engine addresses (40 bits)
    lmem_window: int = 0x0800_0000  # local memory as GDMA sees it; lane L starts at + L * lmem_size


CHIP = Bm1880Chip()
