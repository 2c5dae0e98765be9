"""The end of the mode channel with shifts: from sums of 16 bits to bytes.

Halfwords are shifted by as many bits as a vector says, whose one image counts for all images of a word, and a sum with
0 saturates to bytes (bm1684.md 6.4).
"""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684.build import Build, lane_bytes
from bmcompiler.backends.bm1684.chip import CHIP, channel_rows, pixel_strides
from bmcompiler.backends.bm1684.instructions.packed import Number, Packed, emit_packed
from bmcompiler.backends.bm1684.isa import Eu
from bmcompiler.backends.bm1684.packed.int_steps import packed_cycles
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import is_constant
from bmcompiler.backends.lanes.kernels.channel_constants import channel_buffer
from bmcompiler.codegen.tiling import Buffer
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Int16s, Int32s
from bmcompiler.numeric.factors import CHANNEL, shifts
from bmcompiler.ops.modes import Products

RULE = "Factors of output channels must be constant shifts of i16, and the result i8 or u8"
_SLOTS = 4


def takes_factors(op: Products, factors: Value | None) -> bool:
    """Whether a layer has no factors of channels, or such as `RULE` says."""
    if op.mode != CHANNEL or factors is None:
        return op.mode != CHANNEL
    return factors.dtype == "i16" and is_constant(factors) and op.type.dtype in ("i8", "u8")


def shifts_buffer(factors: Value, c0: int, c1: int) -> Buffer:
    """Amounts to shift the channels [c0, c1) by: a word for each, whose low half counts."""
    return channel_buffer(CHIP, factors, "shifts", lambda build: _amounts, (1, 1), 4, (c0, c1))


def _amounts(factors: Int16s) -> Int32s:
    return -shifts(factors).astype(np.int32) & 0xFFFF


def end_cycles(cycles: LaneCycles, op: Products, dims: Shape) -> int:
    """Cycles of the commands of `emit_end`."""
    last = bool(op.activation and _signed(op)) * packed_cycles(cycles, dims, 1, 1)
    each = (
        packed_cycles(cycles, part, 2, 2, pair=True) + packed_cycles(cycles, part, 1, 2) for part, _ in _parts(dims)
    )
    return last + sum(each)


def emit_end(op: Products, build: Build, dims: Shape, sums: int, result: int, shifts: int) -> None:
    """From sums, as a convolution writes halfwords, to packed bytes."""
    _, c, _, w = dims
    channel, signed = pixel_strides((1, *dims[1:]))[1] // 4, _signed(op)
    amounts, zero = Packed(shifts, 2, signed, (0, 1, 0, 0), one=True), Number(0, 2, signed)
    for part, number in _parts(dims):
        first = sums + number * 4 * channel * channel_rows(0, c)
        halves = Packed(first, 2, signed, (1, channel, 2 * w, 2))
        emit_packed(build, Eu.SHIFT, part, halves, halves, amounts, arithmetic=signed)
        made = Packed(result + number * lane_bytes((_SLOTS, *dims[1:]), 1), 1)
        emit_packed(build, Eu.ADD, part, made, halves, zero)
    if op.activation and signed:
        whole = Packed(result, 1, True)
        emit_packed(build, Eu.MAX, dims, whole, whole, Number(0, 1, True))


def _parts(dims: Shape) -> list[tuple[Shape, int]]:
    """Images that share words, and how many times as many are before them."""
    n, c, h, w = dims
    return [((min(n - first, _SLOTS), c, h, w), first // _SLOTS) for first in range(0, n, _SLOTS)]


def _signed(op: Products) -> bool:
    return op.type.dtype == "i8"
