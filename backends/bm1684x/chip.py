"""Facts of the BM1684X (bm1684x.md 1): sizes in bytes unless a name says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bmcompiler.backends.lanes.facts import LaneFacts
from bmcompiler.chip import MAX_PAD, MAX_STEP, Dims, align_up
from bmcompiler.codegen.strided_copy import CopyLimits

_MOST = (1 << 16) - 1
COPY_LIMITS = CopyLimits(_MOST, w_source=(1, (1 << 32) - 1), w_target=(1, (1 << 32) - 1), h=(1 << 32) - 1)
"""Commands inside global memory, strides in elements; along w the source cannot repeat (bm1684x.md 3.4)."""

_IDLE_DEPTHS = {1: range(1, 5), 2: (1, 2, 3, 4, 6, 8)}


@dataclass(frozen=True)
class Bm1684xChip(LaneFacts):
    """Geometry and address map; one instance, `CHIP`, describes the chip."""

    name: str = "bm1684x"
    lanes: int = 64
    lmem_size: int = 1 << 18  # per lane
    lmem_banks: int = 16
    lmem_bank_size: int = 1 << 14
    alignment: int = 64  # bytes in a lane of aligned tensors; also what a lane works on at once
    execution_units: int = 16  # fp32 words that a lane works on at once
    word: int = 1  # images never share words
    most_images: int = _MOST  # sizes have 16 bits, pads and steps 4 (bm1684x-cube.md 11)
    most_channels: int = _MOST // 64 * 64
    most_size: int = _MOST
    most_depth: int = _MOST
    most_pad: int = MAX_PAD
    most_step: int = MAX_STEP
    word_sums: bool = True
    constant_terms: bool = True
    winograd: bool = True
    idle_depths: Mapping[int, Sequence[int]] = field(default_factory=lambda: _IDLE_DEPTHS, hash=False)
    copy_limits: CopyLimits = COPY_LIMITS
    reserved: int = 1 << 14  # the last bank holds tables and indices
    most_item: int = 4
    share_bytes: int = 1 << 14
    least_run: int = 256
    command_bytes: int = 1 << 10
    transposes: bool = True
    rows_in_lanes: bool = True
    lmem_window: int = 0x0800_0000  # lane L starts at + L * lmem_size; TIU commands leave the window out
    static_window: int = 0x0900_0000
    static_size: int = 1 << 14
    l2_window: int = 0x1000_0000
    l2_size: int = 1 << 21
    global_base: int = 0x1_0000_0000  # also the first address a compiler assigns
    clock_hz: float = 1e9  # of both engines, as the vendor's profiler has it
    max_command_id: int = (1 << 20) - 1  # 0 means "no wait"

    def aligned(self, shape: Dims, item: int, lane: int = 0) -> Dims:
        """Strides (n, c, h, w), in bytes, of feature maps: every channel begins aligned (bm1684x-cube.md 3)."""
        _, c, h, w = shape
        channel = align_up(h * w * item, self.alignment)
        return self.channel_rows(lane, c) * channel, channel, w * item, item

    def compact(self, shape: Dims, item: int, lane: int = 0) -> Dims:
        """Strides, in bytes, of kernels, biases and vectors of one value per channel: no gaps."""
        _, c, h, w = shape
        channel = h * w * item
        return self.channel_rows(lane, c) * channel, channel, w * item, item

    def line_aligned(self, shape: Dims, item: int, lane: int = 0) -> Dims:
        """Strides, in bytes, of tensors whose every row begins aligned (bm1684x-vector.md 3)."""
        _, c, h, w = shape
        row = align_up(w * item, self.alignment)
        return self.channel_rows(lane, c) * h * row, h * row, row, item


CHIP = Bm1684xChip()


def dense(shape: Dims, item: int) -> Dims:
    """Strides, in bytes, of a tensor outside local memory without gaps."""
    _, c, h, w = shape
    return c * h * w * item, h * w * item, w * item, item


def is_local(address: int) -> bool:
    """Whether an address lies in the window of local memory that GDMA sees."""
    return 0 <= address - CHIP.lmem_window < CHIP.lmem_total
