"""What BM1684 kernels share: tiles of feature maps, views, and element-wise TIU operands."""

from __future__ import annotations

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.cycles import CYCLES
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
words_of, plane = CHIP.words_of, CHIP.plane
pass_cycles, copy_cycles = CYCLES.pass_cycles, CYCLES.local_copy
flat_view, elementwise_grid, slowest = MACHINE.flat_view, MACHINE.elementwise_grid, MACHINE.slowest
activation_in, activation_out = MACHINE.activation_in, MACHINE.activation_out


__all__ = [
    "MAX_CHANNELS",
    "MAX_SIZE",
    "DeviceKernel",
    "LocalKernel",
    "activation_in",
    "activation_out",
    "copy_cycles",
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
