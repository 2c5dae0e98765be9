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

MAX_CHANNELS, MAX_SIZE = CHIP.most_channels, CHIP.most_size
BYTES_PER_CYCLE, TILE_CYCLES = CYCLES.bytes_per_cycle, CYCLES.tile_cycles
words_of, pass_cycles, plane = CHIP.words_of, CYCLES.pass_cycles, CHIP.plane
flat_view, elementwise_grid, slowest = MACHINE.flat_view, MACHINE.elementwise_grid, MACHINE.slowest
activation_in, activation_out = MACHINE.activation_in, MACHINE.activation_out


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
    "slowest",
    "words_of",
]
