"""What BM1684 kernels share: tiles of feature maps, views, and element-wise TIU operands."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import ClassVar

from bmcompiler.backends.bm1684.build import Build, extents, lane_bytes
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.hazards import Range
from bmcompiler.backends.bm1684.isa import Eu, StrideCode, Task
from bmcompiler.backends.bm1684.layout import Shape
from bmcompiler.codegen.kernels import DeviceKernel, held, is_activation, is_constant
from bmcompiler.codegen.kernels import LocalKernel as TiledKernel
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Tiler, TileWork
from bmcompiler.ir import Value

MAX_CHANNELS = 4095 // CHIP.lanes * CHIP.lanes  # bm1684.md 13.1: 12 bits
MAX_SIZE = 65535
BYTES_PER_CYCLE = 56  # GDMA, in the time of a TIU cycle (bm1684.md 12: 53.4 bytes at 575 MHz, TIU 550 MHz)
TILE_CYCLES = 300
"""Start-up of the transfers of a tile (bm1684.md 12: 137 cycles a load, 45 a store)."""
_SLOWER = 4
"""How many times the fewest cycles the shape of a feature map may take to be kept: its bytes take longer to move.

Small elements of a single image also leave slots of their words empty. Words that take less than the start of transfers
are kept in any case.
"""
PIXELS = 16
"""Pixels that the execution units take at a time in the vendor's cycle estimates (bm1684.md 12)."""


class LocalKernel(TiledKernel):
    """An op computed in the local memory of this chip."""

    tiler: ClassVar[Tiler] = Tiler(CHIP.lmem_size, CHIP.alignment, BYTES_PER_CYCLE, TILE_CYCLES)

    @classmethod
    def fits(cls, work: TileWork) -> bool:
        """Whether the buffers of a tile fit local memory side by side."""
        used = (*(buffer.lane_bytes for buffer in (*work.inputs, *work.outputs)), *work.scratch)
        return sum(map(cls.tiler.rounded, used)) <= cls.tiler.lane_bytes


def dims4(value: Value) -> Shape:
    """Shape of a 4-D value."""
    n, c, h, w = value.shape
    return n, c, h, w


def item_bytes(value: Value) -> int:
    """Bytes of an element."""
    return value.type.numpy.itemsize


def words_of(shape: Shape, item: int = 4) -> Shape:
    """Word-images of a feature map (bm1684.md 4.2)."""
    n, c, h, w = shape
    return -(-n * item // 4), c, h, w


def pass_cycles(shape: Shape, item: int = 4) -> int:
    """Cycles of one element-wise instruction: 16 pixels of all lanes in 2 cycles (bm1684.md 12)."""
    n, c, h, w = words_of(shape, item)
    return 2 * n * -(-c // CHIP.lanes) * -(-h * w // PIXELS)


@lru_cache(maxsize=4096)
def flat_view(shape: tuple[int, ...], item: int = 4) -> Shape:
    """A 4-D shape with the same elements in the same order, good for element-wise work.

    4-D shapes stay unless they use the machine badly. Others become (N, C, 1, W): N fills the slots of a word where the
    size allows, C is the divisor that takes the fewest cycles.
    """
    size = prod(shape)
    slots = next(s for s in (4 // item, 2, 1) if s <= 4 // item and size % s == 0)
    rest = size // slots
    divisors = (c for c in range(1, min(rest, MAX_CHANNELS) + 1) if rest % c == 0 and rest // c <= MAX_SIZE)
    choices = [(slots, c, 1, rest // c) for c in divisors] or [_square(slots, rest)]
    flat = min(choices, key=lambda dims: (pass_cycles(dims, item), -dims[1]))
    if len(shape) == 4 and max(shape) <= MAX_SIZE:
        n, c, h, w = shape
        if pass_cycles((n, c, h, w), item) <= slowest(pass_cycles(flat, item), item):
            return n, c, h, w
    return flat


def slowest(fewest: int, item: int) -> int:
    """Cycles that the shape of a feature map may take to be kept, where the best shape takes `fewest`."""
    return max(TILE_CYCLES * (item == 4), _SLOWER * (4 // item) * fewest)


def _square(slots: int, size: int) -> Shape:
    """(slots, C, H, W) of `size` / slots elements with the largest C and W that their fields allow."""
    c = next(d for d in range(min(size, MAX_CHANNELS), 0, -1) if size % d == 0)
    w = next(d for d in range(min(size // c, MAX_SIZE), 0, -1) if size // c % d == 0)
    return slots, c, size // c // w, w


def elementwise_grid(view: Shape, item: int = 4) -> tuple[Axis, ...]:
    """Tiles of any size within the limits of one instruction; image tiles hold whole words."""
    n, c, h, w = view
    return (
        Axis(n, 4 // item, MAX_SIZE),
        Axis(c, CHIP.lanes, MAX_CHANNELS),
        Axis(h, 1, MAX_SIZE),
        Axis(w, 1, MAX_SIZE),
    )


def activation_in(value: Value, view: Shape, box: Box, axes: str = "nchw") -> Buffer:
    """A tile of an activation, or of a constant of that shape, to load, aligned."""
    dims, item = extents(box), item_bytes(value)
    return Buffer(
        lane_bytes(dims, item),
        axes,
        prod(dims) * item,
        lambda build, address: build.load_box(value, view, box, address),
        not is_activation(value),
        held(value, view, box),
    )


def activation_out(value: Value, view: Shape, box: Box) -> Buffer:
    """A tile of a result to store, aligned."""
    dims, item = extents(box), item_bytes(value)
    return Buffer(
        lane_bytes(dims, item),
        "nchw",
        prod(dims) * item,
        lambda build, address: build.store_box(value, view, box, address),
        holds=held(value, view, box),
    )


def sizes(name: str, shape: Shape) -> dict[str, int]:
    """Size fields of `res0`, `opd0` or `opd1`."""
    return {f"{name}_{axis}": size for axis, size in zip("nchw", shape)}


def strides(name: str, steps: tuple[int, int, int, int]) -> dict[str, int]:
    """Stride fields of an operand, in words."""
    return {f"{name}_{axis}_str": step for axis, step in zip("nchw", steps)}


def plane(address: int, shape: Shape, item: int = 4) -> Range:
    """The bytes of an aligned feature map."""
    return address, address + lane_bytes(shape, item)


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
