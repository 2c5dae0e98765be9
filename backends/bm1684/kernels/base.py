"""What BM1684 kernels share: tiles of feature maps, views, and element-wise TIU operands."""

from __future__ import annotations

from bmcompiler.backends.bm1684.build import Build
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.cycles import CYCLES, PIXELS
from bmcompiler.backends.bm1684.isa import Eu, StrideCode, Task
from bmcompiler.backends.bm1684.layout import Shape
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


def sizes(name: str, shape: Shape) -> dict[str, int]:
    """Size fields of `res0`, `opd0` or `opd1`."""
    return {f"{name}_{axis}": size for axis, size in zip("nchw", shape)}


def strides(name: str, steps: tuple[int, int, int, int]) -> dict[str, int]:
    """Stride fields of an operand, in words."""
    return {f"{name}_{axis}_str": step for axis, step in zip("nchw", steps)}


def emit_with_constant(build: Build, eu: Eu, shape: Shape, address: int, bits: int) -> None:
    """fp32 in place: x = x `eu` constant, over an aligned tensor."""
    build.tiu(
        [plane(address, shape)],
        [plane(address, shape)],
        tsk_typ=Task.TENSOR,
        tsk_eu_typ=eu,
        opt_relu=1,
        opt_shift_typ=0,
        opt_opd1_const=1,
        short_res0_str=StrideCode.ALIGNED,
        short_opd0_str=StrideCode.ALIGNED,
        opd1_addr=bits,
        res0_addr=local_address(address),
        opd0_addr=local_address(address),
        **sizes("res0", shape),
    )


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
    "emit_with_constant",
    "flat_view",
    "held",
    "is_activation",
    "is_constant",
    "item_bytes",
    "pass_cycles",
    "plane",
    "sizes",
    "slowest",
    "strides",
    "words_of",
]
