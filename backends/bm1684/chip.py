"""Facts of the BM1684 (bm1684.md 1): sizes in bytes unless a name says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bmcompiler.backends.lanes.facts import LaneFacts, LineCells, Shape, Strides
from bmcompiler.chip import MAX_PAD, MAX_STEP, align_up
from bmcompiler.codegen.build import dense_strides as global_strides
from bmcompiler.codegen.strided_copy import CopyLimits
from bmcompiler.errors import EncodingError

__all__ = [
    "CHIP", "COPY_LIMITS", "Bm1684Chip", "align_up", "aligned_strides", "channel_rows", "compact_strides",
    "global_strides", "is_local", "lane_offset", "local_address", "pixel_strides",
]  # fmt: skip

_WORD = (1 << 32) - 1
COPY_LIMITS = CopyLimits(extent=65535, w_source=(0, 4095), w_target=(1, _WORD), h=_WORD)
"""Commands inside global memory, strides in elements; 0 repeats on the source side (bm1684.md 5.10, 13.1)."""


_LINE_CELLS = LineCells(pixels=16, channel=1, tap=14, single=4, pair=12, start=220)  # halves of cycles on silicon


@dataclass(frozen=True)
class Bm1684Chip(LaneFacts):
    """Geometry and address map; one instance, `CHIP`, describes the chip."""

    name: str = "bm1684"
    lanes: int = 64
    execution_units: int = 32  # fp32 words a lane works on at once; four int8 values per word
    lmem_size: int = 1 << 19  # per lane
    lmem_banks: int = 8
    lmem_bank_size: int = 1 << 16
    alignment: int = 128  # bytes in a lane of aligned tensors and channel strides
    word: int = 4  # four images of bytes, or two of halfwords (bm1684.md 4.2)
    own_tables: bool = True
    line_cells: LineCells = _LINE_CELLS
    most_images: int = 65535
    most_channels: int = 4095 // 64 * 64  # bm1684.md 13.1: 12 bits
    most_size: int = 65535
    most_depth: int = 4095
    most_pad: int = MAX_PAD  # bm1684.md 13.1: 4 bits
    most_step: int = MAX_STEP
    copy_limits: CopyLimits = COPY_LIMITS
    idle_depths: Mapping[int, Sequence[int]] = field(default_factory=lambda: {4: (1, 3), 1: range(1, 9)}, hash=False)
    lmem_window: int = 0x0800_0000  # lane L starts at + L * lmem_size
    l2_window: int = 0x1000_0000  # where GDMA sees L2; TIU tables are addressed by their offset in it
    l2_size: int = 1 << 22
    l2_tables: int = 0x30_0000  # offset in L2 of the constant tables (bm1684.md 8)
    byte_floats: tuple[int, int] | None = (0x30_0F00, 0x30_1300)
    l2_free: tuple[int, int] = (0x0A_2000, 0x30_0000)  # offsets in L2 that programs may use
    global_base: int = 0x1_0000_0000
    program_base: int = 0x1_0510_0000  # first global address a compiler may assign
    tiu_hz: float = 550e6
    gdma_hz: float = 575e6
    max_command_id: int = 65535  # ids are 16 bits, 0 means "no wait"


CHIP = Bm1684Chip()
channel_rows, aligned_strides, compact_strides = CHIP.channel_rows, CHIP.aligned_strides, CHIP.compact_strides


def pixel_strides(shape: Shape, lane: int = 0) -> Strides:
    """Strides (n, c, h, w), in bytes, of int16 results of convolutions: 8 bytes a pixel (bm1684.md 4.2).

    `shape[0]` counts groups of four images; image 4 * i + k is the halfword k of the pixels of group i.
    """
    n, c, h, w = aligned_strides(shape, lane)
    return 8 * n, 8 * c, 8 * h, 8 * w


def local_address(offset: int, lane: int = 0) -> int:
    """Descriptor address of byte `offset` of `lane`. Raises EncodingError outside local memory."""
    if not (0 <= offset < CHIP.lmem_size and 0 <= lane < CHIP.lanes):
        raise EncodingError(f"lane {lane}, offset 0x{offset:x} is outside the {CHIP.lanes} lanes of local memory")
    return CHIP.lmem_window + lane * CHIP.lmem_size + offset


def is_local(address: int) -> bool:
    """Whether a descriptor address lies in the window of local memory."""
    return 0 <= address - CHIP.lmem_window < CHIP.lanes * CHIP.lmem_size


def lane_offset(address: int) -> tuple[int, int]:
    """(lane, byte offset in it) of a descriptor address in local memory."""
    return divmod(address - CHIP.lmem_window, CHIP.lmem_size)
