"""Operands of commands on words in local memory."""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.lanes.facts import LaneFacts, Range, Shape, Strides


class Words(NamedTuple):
    """A tensor of words.

    Attributes:
        address: byte offset of the first word in its lane. lane: where channel 0 lies; only transfers reach other lanes
            than the first.
        strides: in words, 0 repeats; None = the aligned default layout.
        within: the bytes of the buffer that it is a part of, as long as commands shall count as touching all of it.
        item: bytes of a word (`LaneFacts.word_item`); recipes of fp32 have words of 32 bits.
        dtype: float type that commands which compute take the words for.
    """

    address: int
    shape: Shape
    strides: Strides | None = None
    lane: int = 0
    within: Range | None = None
    item: int = 4
    dtype: str = "f32"


class Immediate(NamedTuple):
    """A constant for all elements, as the bits of a word."""

    bits: int


Source = Words | Immediate


def steps_of(chip: LaneFacts, words: Words) -> Strides:
    """The strides of a tensor, in words."""
    return words.strides or chip.aligned_strides(words.shape, words.lane, words.item)


def bytes_of(chip: LaneFacts, words: Words) -> Range:
    """The bytes of a lane that a command on a tensor counts as touching."""
    if words.within is not None:
        return words.within
    n, c, h, w = words.shape
    counts = (n, chip.channel_rows(words.lane, c), h, w)
    last = sum((size - 1) * step for size, step in zip(counts, steps_of(chip, words)))
    return words.address, words.address + words.item * (last + 1)
