"""Operands of commands on 32-bit words in local memory."""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.lanes.facts import Range, Shape, Strides


class Words(NamedTuple):
    """A tensor of words.

    Attributes:
        address: byte offset of the first word in its lane. lane: where channel 0 lies; only transfers reach other lanes
            than the first.
        strides: in words, 0 repeats; None = the aligned default layout.
        within: the bytes of the buffer that it is a part of, as long as commands shall count as touching all of it.
    """

    address: int
    shape: Shape
    strides: Strides | None = None
    lane: int = 0
    within: Range | None = None


class Immediate(NamedTuple):
    """A constant for all elements, as the bits of a word."""

    bits: int


Source = Words | Immediate
