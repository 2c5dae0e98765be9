"""Cycles of the commands of `instructions.packed` on integers that share words."""

from __future__ import annotations

from bmcompiler.backends.bm1684.machine import MACHINE
from bmcompiler.backends.lanes.facts import Shape


def packed_cycles(dims: Shape, result: int, operand: int, pair: bool = False) -> int:
    """Of `emit_packed`; result, operand: bytes of the elements of the result and of a. pair: b is a tensor, too."""
    return MACHINE.cycles.pass_cycles(dims, max(result, operand), pair=pair)


def pixel_cycles(dims: Shape, pair: bool = False) -> int:
    """Of `emit_packed` on all of `pixel_halves`."""
    n, c, h, w = dims
    return packed_cycles((2 * -(-n // 4), c, h, 2 * w), 2, 2, pair)


def pack_words_cycles(dims: Shape) -> int:
    """Of `pack_words`."""
    n, c, h, w = dims
    return (n > 1) * packed_cycles((2 * n, c, h, w), 1, 2) + packed_cycles(dims, 1, 2)


def multiply_cycles(dims: Shape, multiplier: int, item: int = 1) -> int:
    """Of `int_requantize.emit_multiply`."""
    if multiplier <= 255:
        return packed_cycles(dims, item, 1)
    return (2 + (item == 1)) * packed_cycles(dims, 2, 1)
