"""What BM1684 kernels share: tiles of feature maps, views, and element-wise TIU operands."""

from __future__ import annotations

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.cycles import CYCLES, PIXELS
from bmcompiler.backends.bm1684.machine import MACHINE
from bmcompiler.backends.lanes.kernels.base import (
    DeviceKernel,
    LocalKernel,
    dims4,
    held,
    is_activation,
    is_constant,
    item_bytes,
)
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Box

MAX_CHANNELS, MAX_SIZE = CHIP.most_channels, CHIP.most_size
BYTES_PER_CYCLE, TILE_CYCLES = CYCLES.bytes_per_cycle, CYCLES.tile_cycles
words_of, pass_cycles, plane = CHIP.words_of, CYCLES.pass_cycles, CHIP.plane
flat_view, elementwise_grid, slowest = MACHINE.flat_view, MACHINE.elementwise_grid, MACHINE.slowest
activation_in, activation_out = MACHINE.activation_in, MACHINE.activation_out


def pool_cycles(taps: tuple[int, int], box: Box, item: int) -> int:
    """16 pixels of all lanes take a cycle per tap of a pooling window and some for the start (bm1684.md 12)."""
    n, c, h, w = words_of(extents(box), item)
    return n * -(-c // CHIP.lanes) * -(-h * w // PIXELS) * (taps[0] * taps[1] + 6)


__all__ = [
    "MAX_CHANNELS",
    "MAX_SIZE",
    "PIXELS",
    "DeviceKernel",
    "LocalKernel",
    "activation_in",
    "activation_out",
    "dims4",
    "elementwise_grid",
    "flat_view",
    "held",
    "is_activation",
    "is_constant",
    "item_bytes",
    "pass_cycles",
    "plane",
    "pool_cycles",
    "slowest",
    "words_of",
]
